"""`chunks`: the new text of each message, in pieces of the encoder's size."""

import dagster as dg

from mail_assets.defs.assets.metadata import table_columns
from mail_assets.defs.assets.months import materialize_table
from mail_assets.defs.partitions import PREFIX, YEAR, asset_key
from mail_assets.defs.resources import EncoderResource, WorkspaceResource
from mail_assets.steps.cut_chunks import cut_chunks
from mail_assets.text.chunking import CHUNKER_VERSION


def build_chunks(partitions: dg.MultiPartitionsDefinition) -> dg.AssetsDefinition:
    """Build the asset."""

    @dg.asset(
        key_prefix=PREFIX,
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=[asset_key("messages")],
        tags={"layer": "text"},
        kinds={"postgres"},
        metadata=table_columns("chunks"),
        code_version=CHUNKER_VERSION,
    )
    def chunks(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource, encoder: EncoderResource
    ) -> dg.MaterializeResult:
        """The new text of each message, cut at paragraphs, sentences and lines. `spans` point
        into messages.body_text, and the text of a chunk is exactly those spans.
        """
        tokenizer, sizes = encoder.tokenizer(), encoder.model.sizes
        with workspace.open(context) as opened:
            return materialize_table(
                context,
                opened,
                lambda month: cut_chunks(opened, month, tokenizer, sizes),
                rows="chunks",
            )

    return chunks
