"""`search_quality`: how well search answers the judged set, now and over time."""

import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
from pydantic import Field

from mail_assets.defs.asset_keys import PREFIX, asset_key
from mail_assets.defs.quality_chart import Point, Series, as_markdown
from mail_assets.defs.quality_history import Measurement, measurement, read_measurements
from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.defs.resources.search import SearchResource
from mail_assets.evaluation.judged import MIN_RELEVANT, JudgedQuery, read_judged_set
from mail_assets.evaluation.quality import DECIDING_MODE, quality_figures, topic_scores
from mail_assets.evaluation.scores import Score, score_queries
from mail_assets.evaluation.summary import summarise, summary_table
from mail_assets.search.request import MODES, VECTOR_MODES, RequestError
from mail_assets.steps.index_lifecycle import LifecycleError, complete_indexes
from mail_assets.tables.indexes import IndexRecord

UNSET = (
    "nothing to measure: MAIL_QUALITY_SET is not set. It names a folder with queries.jsonl and "
    "qrels.tsv, as `mail-assets evaluate` takes them; docs/quality.md says how to make one"
)

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


class QualityConfig(dg.Config):
    """Run configuration of search_quality."""

    min_relevant: int = Field(
        default=MIN_RELEVANT, ge=1, description="leave out queries with fewer relevant messages"
    )
    beside: bool = Field(
        default=True, description="ask the complete indexes beside the live one as well"
    )
    buckets: list[str] = Field(
        default=[],
        description="further buckets to ask, written as in MAIL_VECTORS; filled from this database",
    )


def build_search_quality(quality_set: Path | None) -> dg.AssetsDefinition:
    """Build the asset for the judged set of MAIL_QUALITY_SET."""

    @dg.asset(
        # vectors and threads for their order in a run; what is asked is the index as a whole
        key_prefix=PREFIX,
        deps=[asset_key(name) for name in ("vector_index", "vectors", "threads")],
        group_name="search",
        kinds={"dagster"},
        code_version="1",
        output_required=False,
    )
    def search_quality(
        context: dg.AssetExecutionContext,
        config: QualityConfig,
        database: DatabaseResource,
        search: SearchResource,
    ) -> Iterator[dg.MaterializeResult]:
        """How well search answers the judged queries of MAIL_QUALITY_SET, in every mode: nDCG@10,
        MRR, recall@50, success@10 with 95 % intervals, and latency. The numbers are those of the
        live index; `modes` has the other complete indexes beside it. Unpartitioned; stands in
        Dagster's history. Without MAIL_QUALITY_SET nothing is measured and nothing recorded.
        """
        if quality_set is None:
            context.log.warning(UNSET)
            return
        try:
            judged = read_judged_set(quality_set, config.min_relevant)
            with database.connect("search_quality", context.run.run_id) as connection:
                buckets = dict.fromkeys([search.vectors, *config.buckets])
                answers = [
                    _ask(search, bucket, index, judged)
                    for bucket in buckets
                    for index in complete_indexes(connection, bucket)
                    if config.beside or index.live
                ]
        except (RequestError, LifecycleError) as error:
            raise dg.Failure(str(error), allow_retries=False) from None
        if not answers or answers[0].bucket != search.vectors:
            raise dg.Failure(
                f"{search.vectors}: nothing is indexed yet; run `mail-assets backfill`",
                allow_retries=False,
            )
        recorded = _recorded(answers[0], judged)
        history = read_measurements(context.instance)
        yield dg.MaterializeResult(
            metadata={
                "over_time": _chart([*history, measurement(time.time(), recorded)]),
                "modes": dg.MetadataValue.table(_modes(answers)),
                "worst": dg.MetadataValue.table(_worst(answers[0].scores, judged), WORST_SCHEMA),
                **recorded,
                "topics": dg.MetadataValue.json(recorded["topics"]),
            }
        )

    return search_quality


class Answers(NamedTuple):
    """What an index of a bucket answered."""

    bucket: str
    made: IndexRecord
    scores: list[Score]


def _ask(
    search: SearchResource, bucket: str, index: IndexRecord, judged: Sequence[JudgedQuery]
) -> Answers:
    """Ask an index every query; full text asks none, so that only the live one brings it."""
    with search.open_index(bucket, index) as searcher:
        modes = [mode for mode in MODES if index.live or mode in VECTOR_MODES]
        return Answers(bucket, index, score_queries(searcher.search, judged, modes))


def _recorded(live: Answers, judged: Sequence[JudgedQuery]) -> dict[str, Any]:
    return {"bucket": live.bucket, "index": live.made.name, **quality_figures(judged, live.scores)}


def _modes(answers: Sequence[Answers]) -> list[dg.TableRecord]:
    """Return a row for each mode of each index."""
    return [
        dg.TableRecord(
            {
                "mode": row.pop("mode"),
                "live": one.made.live,
                **{str(name): value for name, value in row.items()},
                "index": one.made.name,
                "bucket": one.bucket,
            }
        )
        for one in answers
        for row in summary_table(summarise(one.scores)).reset_index().to_dict("records")
    ]


def _worst(scores: Sequence[Score], judged: Sequence[JudgedQuery]) -> list[dg.TableRecord]:
    """Return the queries that the mode people use answers worst, with what the others make of
    them.
    """
    by_mode = topic_scores(scores)
    asked = {one.query_id: one for one in judged}
    worst = sorted(
        (one for one in scores if one.mode == DECIDING_MODE and one.ndcg_10 < 1),
        key=lambda one: (one.ndcg_10, one.query_id),
    )
    return [
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


def _chart(measurements: Sequence[Measurement]) -> dg.MarkdownMetadataValue:
    """Return nDCG@10 of every mode over time, as far as the same queries were asked."""
    alike = [one for one in measurements if one.judged_set == measurements[-1].judged_set]
    series = [
        Series(
            mode,
            [_point(one, f"{mode}_ndcg10") for one in alike if f"{mode}_ndcg10" in one.numbers],
        )
        for mode in MODES
    ]
    switches = [
        now.at
        for before, now in pairwise(alike)
        if (before.bucket, before.name) != (now.bucket, now.name)
    ]
    return dg.MetadataValue.md(as_markdown("nDCG@10 over time", series, switches))


def _point(one: Measurement, name: str) -> Point:
    value, low, high = (one.numbers[f"{name}{end}"] for end in ("", "_low", "_high"))
    return Point(one.at, value, low, high)
