"""`chunks`: the new text of each message, in pieces of the encoder's size."""

import dagster as dg

from mail_assets.assets.months import OWNERS, each_month, sample_metadata, table_metadata
from mail_assets.partitions import YEAR
from mail_assets.resources.database import DatabaseResource
from mail_assets.resources.encoder import EncoderResource
from mail_assets.steps.chunks import chunk_month
from mail_assets.text.chunking import CHUNKER_VERSION


def build_chunks(partitions: dg.MultiPartitionsDefinition) -> dg.AssetsDefinition:
    """Build the asset."""

    @dg.asset(
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=["messages"],
        group_name="text",
        kinds={"postgres"},
        owners=OWNERS,
        code_version=CHUNKER_VERSION,
    )
    def chunks(
        context: dg.AssetExecutionContext, database: DatabaseResource, encoder: EncoderResource
    ) -> dg.MaterializeResult:
        """The new text of each message, cut at paragraphs, sentences and lines. `spans` point
        into messages.body_text, and the text of a chunk is exactly those spans.
        """
        tokenizer, sizes = encoder.tokenizer(), encoder.profile.sizes
        with database.connect("chunks", context.run.run_id) as connection:
            made = each_month(
                context,
                lambda archive: chunk_month(
                    connection, archive.list, archive.month, tokenizer, sizes
                ),
                rows="chunks",
                show=lambda archive: sample_metadata(connection, "chunks", archive),
            )
            about = table_metadata(connection, "chunks")
        return dg.MaterializeResult(metadata={**made.counts, **about}, data_version=made.version)

    return chunks
