"""`embeddings`: one vector per distinct text of a month, as Parquet in the store."""

import dagster as dg
import pandas as pd

from mail_assets.assets.months import OWNERS, About, as_markdown, each_month
from mail_assets.partitions import YEAR, Archive
from mail_assets.resources.archives import StoreResource
from mail_assets.resources.database import DatabaseResource
from mail_assets.resources.encoder import EncoderResource
from mail_assets.steps.embeddings import encode_month
from mail_assets.store.chunks import count_left
from mail_assets.store.embeddings import file_key, first_vectors
from mail_assets.store.objects import ObjectStore
from mail_assets.store.partitions import Counts

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
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=["chunks"],
        group_name="index",
        kinds={kind, "parquet"},
        owners=OWNERS,
        code_version=code_version,
        # a second encoder on the same cores makes both slower
        pool="encoder",
    )
    def embeddings(
        context: dg.AssetExecutionContext,
        database: DatabaseResource,
        store: StoreResource,
        encoder: EncoderResource,
    ) -> dg.MaterializeResult:
        """One vector per distinct text of a month and encoder fingerprint. A text that any
        month has encoded before is never encoded again.
        """
        files = store.open()
        used = encoder.tokens_used
        with database.connect("embeddings", context.run.run_id) as connection:
            made = each_month(
                context,
                lambda archive: encode_month(
                    connection, files, encoder, archive.list, archive.month, context.log.info
                ),
                rows="texts",
                show=lambda archive: _show(files, encoder.fingerprint, archive),
            )
            left = count_left(connection, encoder.fingerprint)
        return dg.MaterializeResult(
            metadata={
                **made.counts,
                "dagster/column_schema": SCHEMA,
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


def _show(files: ObjectStore, fingerprint: str, archive: Archive) -> About:
    key = file_key(archive.list, archive.month, fingerprint)
    rows = [
        {"text_hash": text_hash.hex()[:12], **{f"v{i}": vector[i] for i in range(4)}}
        for text_hash, vector in first_vectors(files, key, 5).items()
    ]
    return {"dagster/uri": files.url(key), "sample": as_markdown(pd.DataFrame(rows))}
