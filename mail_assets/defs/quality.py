"""The history of `search_quality`: its materializations as values, and the baseline among them.

What counts as worse is decided in evaluation/quality.py.

[tables] The tables of a measurement: every mode of every index, and the queries answered worst.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import dagster as dg

from mail_assets.defs.partitions import asset_key
from mail_assets.evaluation.judged import JudgedQuery
from mail_assets.evaluation.quality import (
    DECIDING_MODE,
    TopicScores,
    build_summary_table,
    collect_topic_scores,
    summarise_scores,
)
from mail_assets.evaluation.scores import Score
from mail_assets.search.language.request import MODES
from mail_assets.tables.indexes import IndexRecord, PromotionRecord

ASSET = asset_key("search_quality")

#: Materializations read at once: years of weekly ones.
MOST = 200

#: What the metadata of a measurement has, besides its figures.
REQUIRED = {"bucket", "index", "judged_set", "topics"}


class Measurement(NamedTuple):
    """One materialization: when, in seconds since 1970, of which index, and its metadata."""

    at: float
    bucket: str
    name: str
    judged_set: str
    numbers: Mapping[str, float]
    topics: TopicScores


class Baseline(NamedTuple):
    """What quality is held against, and where that was recorded, for people."""

    topics: TopicScores
    recorded: str


def read_measurements(
    instance: dg.DagsterInstance, since: dt.datetime | None = None
) -> list[Measurement]:
    """Return the latest measurements, or the first ones since a time, oldest first.

    Materializations that were reported by hand carry no figures and are left out.
    """
    wanted = dg.AssetRecordsFilter(ASSET, after_timestamp=since.timestamp() if since else None)
    found = instance.fetch_materializations(wanted, limit=MOST, ascending=since is not None)
    records = found.records if since else reversed(found.records)
    recorded = [(record.timestamp, _values(record)) for record in records]
    return [measurement(at, values) for at, values in recorded if values.keys() >= REQUIRED]


def _values(record: dg.EventLogRecord) -> dict[str, Any]:
    event = record.asset_materialization
    return {name: value.value for name, value in event.metadata.items()} if event else {}


def measurement(at: float, values: Mapping[str, Any]) -> Measurement:
    """Return a measurement from the values of a materialization's metadata."""
    return Measurement(
        at=at,
        bucket=str(values["bucket"]),
        name=str(values["index"]),
        judged_set=str(values["judged_set"]),
        numbers={name: float(v) for name, v in values.items() if isinstance(v, int | float)},
        topics=values["topics"],
    )


def baseline(
    instance: dg.DagsterInstance, live: PromotionRecord, latest: Measurement
) -> Baseline | None:
    """Return the figures recorded when the live index was promoted; where there are none of
    this judged set, the first that were measured since it is live; None if those are the latest.
    """
    recorded = live.report.get("quality", {})
    if recorded.get("judged_set") == latest.judged_set:
        return Baseline(recorded["topics"], f"its promotion on {live.since:%Y-%m-%d}")
    for one in _alike(read_measurements(instance, live.since), latest):
        if one.at == latest.at:
            return None
        day = dt.datetime.fromtimestamp(one.at, dt.UTC)
        return Baseline(one.topics, f"its first measurement on {day:%Y-%m-%d}")
    return None


def _alike(measurements: list[Measurement], latest: Measurement) -> Iterator[Measurement]:
    for one in measurements:
        if (one.bucket, one.name, one.judged_set) == latest[1:4]:
            yield one


#: Queries shown of those that are answered worst.
WORST = 20

WORST_SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("query_id", "string"),
        dg.TableColumn("text", "string"),
        *(dg.TableColumn(f"{mode}_ndcg10", "float") for mode in MODES),
        dg.TableColumn("first", "int", "rank of the first relevant message, of the first 50"),
        dg.TableColumn("recall50", "float"),
        dg.TableColumn("relevant", "int", "relevant messages"),
    ]
)


class Answers(NamedTuple):
    """The scores of every query, asked of one index of a bucket."""

    bucket: str
    record: IndexRecord
    scores: list[Score]


def mode_table(answers: Sequence[Answers]) -> dg.TableMetadataValue:
    """Return a row for each mode of each index."""
    rows = [
        dg.TableRecord(
            {
                "mode": row.pop("mode"),
                "live": one.record.live,
                **{str(name): value for name, value in row.items()},
                "index": one.record.name,
                "bucket": one.bucket,
            }
        )
        for one in answers
        for row in build_summary_table(summarise_scores(one.scores))
        .reset_index()
        .to_dict("records")
    ]
    return dg.MetadataValue.table(rows)


def worst_table(scores: Sequence[Score], judged: Sequence[JudgedQuery]) -> dg.TableMetadataValue:
    """Return the queries that hybrid search answers worst, with the scores of the other modes."""
    by_mode = collect_topic_scores(scores)
    asked = {one.query_id: one for one in judged}
    worst = sorted(
        (one for one in scores if one.mode == DECIDING_MODE and one.ndcg_10 < 1),
        key=lambda one: (one.ndcg_10, one.query_id),
    )
    rows = [
        dg.TableRecord(
            {
                "query_id": one.query_id,
                "text": asked[one.query_id].text,
                **{f"{mode}_ndcg10": of_mode[one.query_id] for mode, of_mode in by_mode.items()},
                "first": round(1 / one.mrr) if one.mrr else None,
                "recall50": one.recall_50,
                "relevant": len(asked[one.query_id].relevant),
            }
        )
        for one in worst[:WORST]
    ]
    return dg.MetadataValue.table(rows, WORST_SCHEMA)
