"""`vectors`: the months of the index in the vector bucket, and `vector_index`, the whole."""

import dagster as dg

from mail_assets.defs.assets.metadata import table_columns
from mail_assets.defs.assets.months import materialize_table
from mail_assets.defs.partitions import PREFIX, YEAR, asset_key, months_of_run
from mail_assets.defs.resources import EncoderResource, VectorBucketResource, WorkspaceResource
from mail_assets.month import ListMonth
from mail_assets.steps.outcome import Outcome
from mail_assets.steps.vector_index import VERSION
from mail_assets.steps.write_vectors import write_vectors
from mail_assets.tables.indexes import NewIndex, make_first_live, record_index


def build_vector_index(kind: str) -> dg.AssetSpec:
    """Build the index as a whole, which the months of `vectors` make together."""
    return dg.AssetSpec(
        asset_key("vector_index"),
        deps=[asset_key("vectors")],
        tags={"layer": "index"},
        kinds={kind},
        description="The index in the vector bucket as a whole: what search asks. Its check lists "
        "every key, so it runs by itself and in no month's run.",
    )


def build_vectors(partitions: dg.MultiPartitionsDefinition, kind: str) -> dg.AssetsDefinition:
    """Build the asset; `kind` is the bucket's URL scheme, for the UI."""

    @dg.asset(
        key_prefix=PREFIX,
        partitions_def=partitions,
        backfill_policy=YEAR,
        # of messages: sender, date and subject, which the embeddings know nothing of
        deps=[asset_key("messages"), asset_key("embeddings")],
        tags={"layer": "index"},
        kinds={kind},
        metadata=table_columns("vectors"),
        code_version=VERSION,
    )
    def vectors(
        context: dg.AssetExecutionContext,
        workspace: WorkspaceResource,
        encoder: EncoderResource,
        vector_bucket: VectorBucketResource,
    ) -> dg.MaterializeResult:
        """One vector per chunk in the vector bucket, in an index whose name carries the
        encoder's fingerprint. Keys in the bucket = keys in the manifest = chunks.
        """
        index = vector_bucket.open_index(encoder).for_run(months_of_run(context))
        made_by = NewIndex(index.name, encoder.name, encoder.precision, index.fingerprint)
        with workspace.open(context) as opened:
            record_index(opened.connection, vector_bucket.url, made_by)

            def write(month: ListMonth) -> Outcome:
                outcome = write_vectors(opened, month, index)
                if outcome.counts["chunks"]:
                    make_first_live(opened.connection, vector_bucket.url, index.name)
                return outcome

            name = index.manifest.index_name
            place = {"dagster/table_name": name, "index": index.name}
            return materialize_table(context, opened, write, rows="chunks", about=place)

    return vectors
