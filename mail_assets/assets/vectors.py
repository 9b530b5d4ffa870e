"""`vectors`: the index in the vector bucket that search asks."""

import dagster as dg

from mail_assets.assets.months import OWNERS, each_month, sample_metadata, table_metadata
from mail_assets.partitions import YEAR
from mail_assets.resources.archives import StoreResource
from mail_assets.resources.database import DatabaseResource
from mail_assets.resources.encoder import EncoderResource
from mail_assets.resources.vector_bucket import VectorBucketResource
from mail_assets.steps.vectors import VERSION, index_spec, write_month


def build_vectors(partitions: dg.MultiPartitionsDefinition, kind: str) -> dg.AssetsDefinition:
    """Build the asset; `kind` is the bucket's URL scheme, for the UI."""

    @dg.asset(
        partitions_def=partitions,
        backfill_policy=YEAR,
        # of messages: sender, date and subject, which the embeddings know nothing of
        deps=["messages", "embeddings"],
        group_name="index",
        kinds={kind},
        owners=OWNERS,
        code_version=VERSION,
    )
    def vectors(
        context: dg.AssetExecutionContext,
        database: DatabaseResource,
        store: StoreResource,
        encoder: EncoderResource,
        vector_bucket: VectorBucketResource,
    ) -> dg.MaterializeResult:
        """One vector per chunk in the vector bucket, in an index whose name carries the
        encoder's fingerprint. Keys in the bucket = keys in the manifest = chunks.
        """
        files = store.open()
        spec = index_spec(encoder.name, encoder.precision)
        index = vector_bucket.open().index(spec)
        with database.connect("vectors", context.run.run_id) as connection:
            made = each_month(
                context,
                lambda archive: write_month(
                    connection,
                    files,
                    index,
                    vector_bucket.url,
                    encoder.fingerprint,
                    archive.list,
                    archive.month,
                    context.log.info,
                ),
                rows="chunks",
                show=lambda archive: sample_metadata(connection, "vectors", archive),
            )
            about = table_metadata(connection, "vectors")
        about["dagster/table_name"] = f"{vector_bucket.url} {spec.name}"
        return dg.MaterializeResult(
            metadata={**made.counts, **about, "index": spec.name}, data_version=made.version
        )

    return vectors
