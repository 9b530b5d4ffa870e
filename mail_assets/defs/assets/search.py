"""The assets about search: `search_quality` measures it, `search_audit` counts its use.

https://docs.dagster.io/guides/build/assets
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import dagster as dg
from pydantic import Field

from mail_assets.defs.assets.months import mail_asset
from mail_assets.defs.partitions import is_of_months
from mail_assets.defs.resources import DatabaseResource, SearchResource
from mail_assets.evaluation.judged import (
    MIN_KNOWN,
    MIN_RELEVANT,
    JudgedQuery,
    Score,
    find_threads,
    read_set,
    score_queries,
)
from mail_assets.evaluation.quality import (
    DECIDING_MODE,
    build_quality_record,
    build_summary_table,
    collect_topic_scores,
    summarise_scores,
)
from mail_assets.indexes.live import LifecycleError, complete_indexes
from mail_assets.reading.browsing import full_name
from mail_assets.search.language.request import MODES, VECTOR_MODES, RequestError
from mail_assets.tables.indexes import IndexRecord
from mail_assets.tables.search_audit import DayPart, collect_searches, read_days

UNSET = (
    "nothing to measure: MAIL_QUALITY_SET is not set. It names a folder with queries.jsonl and "
    "qrels.tsv, as `mail-assets evaluate` reads them; docs/quality.md describes how to make one"
)


#: Log line of an asset that does nothing in a run of months in which all assets were selected.
LEFT_OUT = "%s has no months: materialize it by its name, or run the job upkeep"


class QualityConfig(dg.Config):
    """Run configuration of search_quality."""

    min_relevant: int | None = Field(
        default=None,
        ge=1,
        description=f"leave out queries with fewer relevant messages; default: {MIN_RELEVANT}, "
        f"or {MIN_KNOWN} if most queries of the set have fewer",
    )
    beside: bool = Field(
        default=True, description="also ask the complete indexes that are not live"
    )
    buckets: list[str] = Field(
        default=[],
        description="other buckets to ask, as in MAIL_VECTORS, that this database filled",
    )


#: Number of queries with the worst answers that are shown.
WORST = 20

WORST_SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("query_id", "string"),
        dg.TableColumn("text", "string"),
        *(dg.TableColumn(f"{mode}_ndcg10", "float") for mode in MODES),
        dg.TableColumn("first", "int", "rank of the first relevant message among 50"),
        dg.TableColumn("recall50", "float"),
        dg.TableColumn("relevant", "int", "relevant messages"),
    ]
)


#: A bucket, an index in it, and the scores of the index.
_Answers = tuple[str, IndexRecord, list[Score]]


def build_search_quality(quality_set: Path | None) -> dg.AssetsDefinition:
    """Build the asset for the judged set of MAIL_QUALITY_SET."""

    @mail_asset(
        *("words", "vectors", "threads"),
        layer="search",
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
        """The quality of search on the judged queries of MAIL_QUALITY_SET, in every mode: nDCG@10,
        MRR, recall@50, success@10, threads@10, and MRR and success@10 of threads, with 95 %
        intervals, and latency. The numbers are those of the live index; `modes` also has the other
        complete indexes. Not partitioned; the history is in Dagster. Without
        MAIL_QUALITY_SET nothing is measured or recorded.
        """
        if is_of_months(context):
            context.log.info(LEFT_OUT, "search_quality")
            return
        if quality_set is None:
            context.log.warning(UNSET)
            return
        try:
            judged = read_set(quality_set, config.min_relevant).queries
            with database.connect("search_quality", context.run.run_id) as connection:
                answers = [
                    _ask(search, bucket, index, judged)
                    for bucket in dict.fromkeys([search.vectors, *config.buckets])
                    for index in complete_indexes(connection, bucket)
                    if config.beside or index.live
                ]
        except (RequestError, LifecycleError) as error:
            raise dg.Failure(str(error), allow_retries=False) from None
        if not answers or answers[0][0] != search.vectors:
            raise dg.Failure(
                f"{search.vectors}: nothing is indexed yet; run `mail-assets backfill`",
                allow_retries=False,
            )
        yield _record_quality(answers, judged)

    return search_quality


def _record_quality(
    answers: Sequence[_Answers], judged: Sequence[JudgedQuery]
) -> dg.MaterializeResult:
    """Return the scores of all indexes; the numbers are those of the first, the live index."""
    bucket, index, scores = answers[0]
    recorded = build_quality_record(judged, scores)
    return dg.MaterializeResult(
        metadata={
            "modes": _mode_table(answers),
            "worst": _worst_table(scores, judged),
            "bucket": bucket,
            "index": index.name,
            **recorded,
            "topics": dg.MetadataValue.json(recorded["topics"]),
        }
    )


def _ask(
    search: SearchResource, bucket: str, index: IndexRecord, judged: Sequence[JudgedQuery]
) -> _Answers:
    """Ask an index every query; measure full text, which uses no vectors, only once."""
    with search.open_index(bucket, index) as searcher:
        modes = [mode for mode in MODES if index.live or mode in VECTOR_MODES]
        threads = find_threads(searcher, judged)
        scores = score_queries(searcher.search, judged, modes, threads=threads)
        return bucket, index, scores


def _mode_table(answers: Sequence[_Answers]) -> dg.TableMetadataValue:
    rows = [
        dg.TableRecord(
            {
                "mode": row.pop("mode"),
                "live": index.live,
                **{str(name): value for name, value in row.items()},
                "index": index.name,
                "bucket": bucket,
            }
        )
        for bucket, index, scores in answers
        for row in build_summary_table(summarise_scores(scores)).reset_index().to_dict("records")
    ]
    return dg.MetadataValue.table(rows)


def _worst_table(scores: Sequence[Score], judged: Sequence[JudgedQuery]) -> dg.TableMetadataValue:
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


#: Days covered by the figures.
DAYS = 30

SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("of", "string", "day (UTC), or surface"),
        dg.TableColumn("searches", "int"),
        dg.TableColumn("errors", "int", "the server could not answer"),
        dg.TableColumn("refused", "int", "wrong requests, or too many"),
        dg.TableColumn("nothing_found", "float", "share of those answered"),
        dg.TableColumn("p50_ms", "int", "of those answered, rounded up"),
        dg.TableColumn("p95_ms", "int", "of those answered, rounded up"),
    ]
)


class Figures(NamedTuple):
    """Figures of some searches; SCHEMA describes them. A share or time is None without answers."""

    searches: int
    errors: int
    refused: int
    nothing_found: float | None
    p50_ms: int | None
    p95_ms: int | None


# words and vectors only for the lineage: nothing is read from them
@mail_asset(
    "words", "vectors", layer="search", kinds={"postgres"}, code_version="1", output_required=False
)
def search_audit(
    context: dg.AssetExecutionContext, database: DatabaseResource
) -> Iterator[dg.MaterializeResult]:
    """One row per hour and kind of search that was served: counts, without queries and clients.
    The numbers are those of the last 30 days, by day in `days`. Each run adds the
    searches that were served since the previous run.
    """
    if is_of_months(context):
        context.log.info(LEFT_OUT, "search_audit")
        return
    with database.connect("search_audit", context.run.run_id) as connection:
        changed = collect_searches(connection)
        parts = read_days(connection, dt.datetime.now(dt.UTC) - dt.timedelta(days=DAYS))
        name = full_name(connection, "search_audit")
    figures = {key: value for key, value in sum_up(parts)._asdict().items() if value is not None}
    yield dg.MaterializeResult(
        metadata={
            **figures,
            "changed": changed,
            "days": _tabulate(parts, "day"),
            "surfaces": _tabulate(parts, "surface"),
            "dagster/table_name": name,
        }
    )


def _tabulate(parts: Iterable[DayPart], of: str) -> dg.TableMetadataValue:
    records = []
    for value, some in groupby(sorted(parts, key=attrgetter(of)), attrgetter(of)):
        figures = sum_up(some)
        found = round(figures.nothing_found or 0.0, 3)
        records.append(
            dg.TableRecord({"of": str(value), **figures._asdict(), "nothing_found": found})
        )
    return dg.MetadataValue.table(records, SCHEMA)


def sum_up(parts: Iterable[DayPart]) -> Figures:
    """Return the figures of some counts."""
    given = [*parts]
    answered = [part for part in given if part.status < 400]
    total = _count(answered)
    return Figures(
        searches=_count(given),
        errors=_count(part for part in given if part.status >= 500),
        refused=_count(part for part in given if 400 <= part.status < 500),
        nothing_found=_count(part for part in answered if not part.hits) / total if total else None,
        p50_ms=_find_quantile(answered, 0.5),
        p95_ms=_find_quantile(answered, 0.95),
    )


def _find_quantile(parts: Sequence[DayPart], share: float) -> int | None:
    wanted = share * _count(parts)
    seen = 0
    for part in sorted(parts, key=lambda one: one.ms):
        seen += part.searches
        if seen >= wanted:
            return part.ms
    return None


def _count(parts: Iterable[DayPart]) -> int:
    return sum(part.searches for part in parts)
