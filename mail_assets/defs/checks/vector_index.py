"""The check of `vector_index`: the live index holds the keys of the chunks and no others.

The vectors of single months are checked in vectors.py.
"""

import dagster as dg

from mail_assets.defs.checks.reconciliation import no_live_index, reconciliation_result
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import DatabaseResource, EncoderResource, VectorBucketResource
from mail_assets.steps.index_lifecycle import LifecycleError
from mail_assets.steps.reconcile_index import reconcile
from mail_assets.tables.indexes import live_index


@dg.asset_check(
    asset=asset_key("vector_index"),
    blocking=True,
    # in a run of all assets it waits for the months that the run writes
    additional_deps=[asset_key("vectors")],
)
def reconciled(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> dg.AssetCheckResult:
    """The live index holds the keys of the chunks, each once, and nothing else. To repair it:
    `mail-assets reconcile --repair`.
    """
    with database.connect("checks", context.run.run_id) as connection:
        if live_index(connection, vector_bucket.url) is None:
            return no_live_index(vector_bucket.url)
        try:
            mail_index = vector_bucket.open_live_index(connection, encoder)
        except LifecycleError as error:
            raise dg.Failure(str(error), allow_retries=False) from None
        return reconciliation_result(reconcile(connection, mail_index))
