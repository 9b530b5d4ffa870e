"""The jobs: the chain for some months, test queries, the upkeep of the index.

https://docs.dagster.io/guides/build/jobs
"""

import dagster as dg

from mail_assets.defs.asset_keys import asset_key
from mail_assets.defs.query_job import serve_test_queries
from mail_assets.defs.resources.encoder import EncoderResource
from mail_assets.defs.resources.vector_bucket import VectorBucketResource

_QUALITY = dg.AssetSelection.assets(asset_key("search_quality"))

#: Everything from the archive to the vectors, and the threads, which have no partitions.
#: Quality is measured by itself: one month says little of it.
refresh_archives = dg.define_asset_job(
    "refresh_archives",
    selection=dg.AssetSelection.all() - _QUALITY,
    description="Fetch the archive of a month and carry it through to the vector bucket.",
)


@dg.op
def maintain_index(
    context: dg.OpExecutionContext, encoder: EncoderResource, vector_bucket: VectorBucketResource
) -> None:
    """Bring the index's search structures up to date: LanceDB compacts and indexes here.

    Never in a partition's own run: it loses to any concurrent write.
    """
    index = vector_bucket.open_index(encoder).index
    index.maintain()
    context.add_output_metadata(dict(index.describe()))


@dg.job(description="Compact and index the vector bucket, where the backend wants it.")
def maintain_vectors() -> None:
    """Keep the index fast."""
    maintain_index()


@dg.job(description="Ask the live index test queries; the hits are in the op's metadata.")
def test_queries() -> None:
    """Ask test queries."""
    serve_test_queries()


#: Only the check: listing a whole bucket takes minutes where it holds millions of keys.
reconcile_vectors = dg.define_asset_job(
    "reconcile_vectors",
    selection=dg.AssetSelection.checks(dg.AssetCheckKey(asset_key("vector_index"), "reconciled")),
    description="List the whole vector bucket and compare it with the manifest and the chunks.",
)

measure_quality = dg.define_asset_job(
    "measure_quality",
    selection=_QUALITY,
    description="Ask the judged queries of MAIL_QUALITY_SET, and compare with what was recorded.",
)

JOBS = (refresh_archives, maintain_vectors, reconcile_vectors, test_queries, measure_quality)
