"""The check of `search_quality`: is search as good as it was?"""

import dagster as dg

from mail_assets.defs.partitions import asset_key
from mail_assets.defs.quality import Measurement, baseline, read_measurements
from mail_assets.defs.resources import DatabaseResource, VectorBucketResource
from mail_assets.evaluation.quality import build_change_row, compare_topics, describe_change
from mail_assets.tables.indexes import read_promotion

LOST_SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("mode", "string"),
        dg.TableColumn("query_id", "string"),
        dg.TableColumn("then", "float", "nDCG@10"),
        dg.TableColumn("now", "float", "nDCG@10"),
    ]
)


@dg.asset_check(asset=asset_key("search_quality"))
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
    changes = compare_topics(held.topics, latest.topics)
    worse = [one for one in changes if one.worse]
    return dg.AssetCheckResult(
        passed=not worse,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"against {held.recorded}: {'; '.join(map(describe_change, worse or changes))}",
        metadata={
            **{f"{one.mode}_difference": one.difference.mean for one in changes},
            "modes": dg.MetadataValue.table(
                [dg.TableRecord(build_change_row(one)) for one in changes]
            ),
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
