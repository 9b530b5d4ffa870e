"""`embeddings`: one vector per distinct text of a month, as Parquet in the store."""

import dagster as dg
import pandas as pd

from mail_assets.defs.assets.metadata import rows_as_markdown
from mail_assets.defs.assets.months import Metadata, make_months
from mail_assets.defs.partitions import PREFIX, YEAR, asset_key
from mail_assets.defs.resources import EncoderResource, WorkspaceResource
from mail_assets.encoding.local_model import LocalModel
from mail_assets.month import ListMonth
from mail_assets.steps.encode_chunks import encode_chunks
from mail_assets.steps.encoder_probe import ProbedEncoder
from mail_assets.store.embeddings import file_key, read_first_embeddings
from mail_assets.tables.chunks import count_unencoded
from mail_assets.tables.partitions import Counts
from mail_assets.workspace import Workspace

SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("text_hash", "fixed_size_binary[32]", "sha256 of what the encoder saw"),
        dg.TableColumn("vector", "fixed_size_list<float>", "of length 1"),
    ]
)


def build_embeddings(
    partitions: dg.MultiPartitionsDefinition, code_version: str, kind: str
) -> dg.AssetsDefinition:
    """Build the asset; its code version is the encoder's fingerprint, `kind` what computes."""

    @dg.asset(
        key_prefix=PREFIX,
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=[asset_key("chunks")],
        tags={"layer": "index"},
        kinds={kind, "parquet"},
        metadata={"dagster/column_schema": SCHEMA},
        code_version=code_version,
    )
    def embeddings(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource, encoder: EncoderResource
    ) -> dg.MaterializeResult:
        """One vector per distinct text of a month and encoder fingerprint. A text that any
        month has encoded before is never encoded again.
        """
        used = encoder.tokens_used
        with workspace.open(context) as opened:
            # a server is paid for each text, and its model is its own affair
            local = isinstance(encoder.model, LocalModel)
            probed = ProbedEncoder(encoder, opened.connection, opened.log) if local else encoder
            made = make_months(
                context,
                lambda month: encode_chunks(opened, month, probed),
                rows="texts",
                show=lambda month: _show(opened, encoder.fingerprint, month, workspace.samples),
            )
            left = count_unencoded(opened.connection, encoder.fingerprint)
        return dg.MaterializeResult(
            metadata={
                **made.counts,
                "dagster/table_name": f"embeddings.{encoder.fingerprint}",
                **_remaining(left, made.counts),
                "model": encoder.name,
                "precision": encoder.precision,
                "provider": encoder.provider,
                "fingerprint": encoder.fingerprint,
                "endpoint_tokens": encoder.tokens_used - used,
            },
            data_version=made.version,
        )

    return embeddings


def _remaining(left: int, counts: Counts) -> Counts:
    """Return the chunks of the corpus that wait for this encoder, and their hours at this rate.

    A run that encoded nothing knows no rate.
    """
    if not counts["encoded"]:
        return {"left": left}
    return {
        "left": left,
        "hours_left": round(left * counts["seconds"] / counts["encoded"] / 3600, 2),
    }


def _show(
    workspace: Workspace, fingerprint: str, month: ListMonth, shows_samples: bool
) -> Metadata:
    files, key = workspace.store, file_key(month, fingerprint)
    if not shows_samples:
        return {"dagster/uri": files.url(key)}
    rows = [
        {"text_hash": text_hash.hex()[:12], **{f"v{i}": vector[i] for i in range(4)}}
        for text_hash, vector in read_first_embeddings(files, key, 5).items()
    ]
    return {"dagster/uri": files.url(key), "sample": rows_as_markdown(pd.DataFrame(rows))}
