"""`vectors`: the months of the index in the vector bucket, and `vector_index`, the whole."""

import dagster as dg

from mail_assets.defs.asset_keys import PREFIX, asset_key
from mail_assets.defs.assets.metadata import table_columns
from mail_assets.defs.assets.months import materialize_table
from mail_assets.defs.partitions import YEAR
from mail_assets.defs.resources.encoder import EncoderResource
from mail_assets.defs.resources.vector_bucket import VectorBucketResource
from mail_assets.defs.resources.workspace import WorkspaceResource
from mail_assets.month import ListMonth
from mail_assets.steps.outcome import Outcome
from mail_assets.steps.vector_index import VERSION, MailIndex, index_spec
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
        spec = index_spec(encoder.name, encoder.precision)
        index = vector_bucket.open().index(spec)
        mail_index = MailIndex(index, vector_bucket.url, encoder.fingerprint)
        made_by = NewIndex(spec.name, encoder.name, encoder.precision, encoder.fingerprint)
        with workspace.open(context) as opened:
            record_index(opened.connection, vector_bucket.url, made_by)

            def write(month: ListMonth) -> Outcome:
                outcome = write_vectors(opened, month, mail_index)
                if outcome.counts["chunks"]:
                    make_first_live(opened.connection, vector_bucket.url, spec.name)
                return outcome

            place = {"dagster/table_name": f"{vector_bucket.url} {spec.name}", "index": spec.name}
            return materialize_table(context, opened, write, rows="chunks", about=place)

    return vectors
