"""Checks of the index as a whole: does it hold what it should, and is search as good as it was?

What does not live here: the vectors of single months (months.py).
"""

import dagster as dg

from mail_assets.measurements import Measurement, baseline, read_measurements
from mail_assets.resources.database import DatabaseResource
from mail_assets.resources.encoder import EncoderResource
from mail_assets.resources.vector_bucket import VectorBucketResource
from mail_assets.search.quality import as_row, compare, describe
from mail_assets.steps.reconcile import reconcile
from mail_assets.steps.vectors import index_spec
from mail_assets.store.indexes import read_promotion

LOST_SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("mode", "string"),
        dg.TableColumn("query_id", "string"),
        dg.TableColumn("then", "float", "nDCG@10"),
        dg.TableColumn("now", "float", "nDCG@10"),
    ]
)

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


@dg.asset_check(asset="vector_index", blocking=True)
def reconciled(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> dg.AssetCheckResult:
    """The whole index holds the chunks' keys, each once, and nothing else. To repair it:
    `mail-assets reconcile --repair`.
    """
    index = vector_bucket.open().index(index_spec(encoder.name, encoder.precision))
    with database.connect("checks", context.run.run_id) as connection:
        found = reconcile(connection, index, vector_bucket.url, encoder.fingerprint)
    records = [
        dg.TableRecord({**fault._asdict(), "examples": ", ".join(fault.examples)})
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


@dg.asset_check(asset="search_quality")
def search_quality_holds(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    vector_bucket: VectorBucketResource,
) -> dg.AssetCheckResult:
    """Search answers the judged queries as well as it did when the live index was promoted; where
    nothing was recorded then, as when that index was first measured.
    """
    measured = read_measurements(context.instance)
    with database.connect("checks", context.run.run_id) as connection:
        live = read_promotion(connection, vector_bucket.url)
    latest = measured[-1] if measured else None
    if (
        latest is None
        or live is None
        or (latest.bucket, latest.name) != (vector_bucket.url, live.name)
    ):
        return _unmeasured(live.name if live else "no index", latest)
    held = baseline(context.instance, live, latest)
    if held is None:
        return dg.AssetCheckResult(
            passed=True,
            description="the first measurement of this index: later ones are held to it",
        )
    changes = compare(held.topics, latest.topics)
    worse = [one for one in changes if one.worse]
    return dg.AssetCheckResult(
        passed=not worse,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"against {held.recorded}: {'; '.join(map(describe, worse or changes))}",
        metadata={
            **{f"{one.mode}_difference": one.difference.mean for one in changes},
            "modes": dg.MetadataValue.table([dg.TableRecord(as_row(one)) for one in changes]),
            "lost": dg.MetadataValue.table(
                [dg.TableRecord(lost._asdict()) for one in changes for lost in one.lost],
                LOST_SCHEMA,
            ),
        },
    )


def _unmeasured(live: str, latest: Measurement | None) -> dg.AssetCheckResult:
    was = f"last measured of index {latest.name}, live is {live}" if latest else "never measured"
    return dg.AssetCheckResult(
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{was}: set MAIL_QUALITY_SET and materialize search_quality",
    )
