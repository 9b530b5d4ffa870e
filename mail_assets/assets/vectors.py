"""`vectors`: the months of the index in the vector bucket, and `vector_index`, the whole."""

import dagster as dg

from mail_assets.assets.months import OWNERS, each_month, sample_metadata, table_metadata
from mail_assets.partitions import YEAR, Archive
from mail_assets.resources.archives import StoreResource
from mail_assets.resources.database import DatabaseResource
from mail_assets.resources.encoder import EncoderResource
from mail_assets.resources.vector_bucket import VectorBucketResource
from mail_assets.steps.outcome import Outcome
from mail_assets.steps.vectors import VERSION, index_spec, write_month
from mail_assets.store.indexes import make_first_live, record_index


def build_vector_index(kind: str) -> dg.AssetSpec:
    """Build the index as a whole, which the months of `vectors` make together."""
    return dg.AssetSpec(
        "vector_index",
        deps=["vectors"],
        group_name="index",
        kinds={kind},
        owners=OWNERS,
        description="The index in the vector bucket as a whole: what search asks. Its check lists "
        "every key, so it runs by itself and in no month's run.",
    )


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
            record_index(
                connection,
                vector_bucket.url,
                spec.name,
                encoder.name,
                encoder.precision,
                encoder.fingerprint,
            )

            def write(archive: Archive) -> Outcome:
                outcome = write_month(
                    connection,
                    files,
                    index,
                    vector_bucket.url,
                    encoder.fingerprint,
                    archive.list,
                    archive.month,
                    context.log.info,
                )
                if outcome.counts["chunks"]:
                    make_first_live(connection, vector_bucket.url, spec.name)
                return outcome

            made = each_month(
                context,
                write,
                rows="chunks",
                show=lambda archive: sample_metadata(connection, "vectors", archive),
            )
            about = table_metadata(connection, "vectors")
        about["dagster/table_name"] = f"{vector_bucket.url} {spec.name}"
        return dg.MaterializeResult(
            metadata={**made.counts, **about, "index": spec.name}, data_version=made.version
        )

    return vectors
