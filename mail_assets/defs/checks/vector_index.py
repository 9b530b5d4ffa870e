"""The check of `vector_index`: the index as a whole holds the chunks' keys and no others.

What does not live here: the vectors of single months (vectors.py).
"""

import dagster as dg

from mail_assets.defs.asset_keys import asset_key
from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.defs.resources.encoder import EncoderResource
from mail_assets.defs.resources.vector_bucket import VectorBucketResource
from mail_assets.steps.reconcile_index import reconcile

#: An emptied bucket has a fault in each of thousands of months.
MAX_RECORDS = 100

FAULT_SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("fault", "string"),
        dg.TableColumn("list", "string"),
        dg.TableColumn("month", "string"),
        dg.TableColumn("keys", "int"),
        dg.TableColumn("examples", "string"),
    ]
)


@dg.asset_check(asset=asset_key("vector_index"), blocking=True)
def reconciled(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> dg.AssetCheckResult:
    """The whole index holds the chunks' keys, each once, and nothing else. To repair it:
    `mail-assets reconcile --repair`.
    """
    with database.connect("checks", context.run.run_id) as connection:
        found = reconcile(connection, vector_bucket.open_index(encoder))
    records = [
        dg.TableRecord({**fault.as_json(), "examples": ", ".join(fault.examples)})
        for fault in found.faults[:MAX_RECORDS]
    ]
    return dg.AssetCheckResult(
        passed=found.clean,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata={
            **found.figures._asdict(),
            **found.counts,
            "faults": dg.MetadataValue.table(records, FAULT_SCHEMA),
        },
    )
