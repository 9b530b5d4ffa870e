"""The check of `search_quality`: search is as good as it was."""

import datetime as dt
from typing import Any, NamedTuple

import dagster as dg

from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import DatabaseResource, VectorBucketResource
from mail_assets.evaluation.quality import (
    TopicScores,
    build_change_row,
    compare_topics,
    describe_change,
)
from mail_assets.tables.indexes import PromotionRecord, read_promotion

LOST_SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("mode", "string"),
        dg.TableColumn("query_id", "string"),
        dg.TableColumn("then", "float", "nDCG@10"),
        dg.TableColumn("now", "float", "nDCG@10"),
    ]
)

_ASSET = asset_key("search_quality")

#: Most materializations read: years of weekly ones.
MOST_MEASUREMENTS = 200

#: Metadata of each measurement, besides its figures.
_REQUIRED = {"bucket", "index", "judged_set", "topics"}


class _Measurement(NamedTuple):
    """One materialization: its time in seconds since 1970, its index, and its scores."""

    at: float
    bucket: str
    name: str
    judged_set: str
    topics: TopicScores


class _Baseline(NamedTuple):
    """Scores that quality is compared with, and the place where they were recorded, for people."""

    topics: TopicScores
    recorded: str


@dg.asset_check(asset=asset_key("search_quality"))
def search_quality_holds(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    vector_bucket: VectorBucketResource,
) -> dg.AssetCheckResult:
    """Search answers the judged queries as well as at the promotion of the live index. If nothing
    was recorded then, as well as in the first measurement of that index.
    """
    measured = _read_measurements(context.instance)
    with database.connect("checks", context.run.run_id) as connection:
        live = read_promotion(connection, vector_bucket.url)
    latest = measured[-1] if measured else None
    if (
        latest is None
        or live is None
        or (latest.bucket, latest.name) != (vector_bucket.url, live.name)
    ):
        return _unmeasured(live.name if live else "no index", latest)
    held = _baseline(context.instance, live, latest)
    if held is None:
        return dg.AssetCheckResult(
            passed=True,
            description="the first measurement of this index: later ones are compared with it",
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


def _unmeasured(live: str, latest: _Measurement | None) -> dg.AssetCheckResult:
    was = f"last measured of index {latest.name}, live is {live}" if latest else "never measured"
    return dg.AssetCheckResult(
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{was}: set MAIL_QUALITY_SET and materialize search_quality",
    )


def _read_measurements(
    instance: dg.DagsterInstance, since: dt.datetime | None = None
) -> list[_Measurement]:
    """Return the latest measurements, or the first ones since a time, oldest first.

    Materializations that were reported by hand have no figures and are left out.
    """
    wanted = dg.AssetRecordsFilter(_ASSET, after_timestamp=since.timestamp() if since else None)
    found = instance.fetch_materializations(
        wanted, limit=MOST_MEASUREMENTS, ascending=since is not None
    )
    records = found.records if since else reversed(found.records)
    return [*filter(None, map(_read_measurement, records))]


def _read_measurement(record: dg.EventLogRecord) -> _Measurement | None:
    event = record.asset_materialization
    values = {name: one.value for name, one in event.metadata.items()} if event else {}
    if not values.keys() >= _REQUIRED:
        return None
    bucket, index, judged_set = (str(values[one]) for one in ("bucket", "index", "judged_set"))
    topics: Any = values["topics"]
    return _Measurement(record.timestamp, bucket, index, judged_set, topics)


def _baseline(
    instance: dg.DagsterInstance, live: PromotionRecord, latest: _Measurement
) -> _Baseline | None:
    """Return the scores recorded when the live index was promoted.

    Without scores of this judged set: the first ones since then, None if these are the latest.
    """
    recorded = live.report.get("quality", {})
    if recorded.get("judged_set") == latest.judged_set:
        return _Baseline(recorded["topics"], f"its promotion on {live.since:%Y-%m-%d}")
    for one in _read_measurements(instance, live.since):
        if one[1:4] != latest[1:4]:
            continue
        if one.at == latest.at:
            return None
        day = dt.datetime.fromtimestamp(one.at, dt.UTC)
        return _Baseline(one.topics, f"its first measurement on {day:%Y-%m-%d}")
    return None
