"""`search_quality`: how well search answers the judged set, now and over time.

[search_audit] `search_audit`: how much is searched, how quickly, and how often in vain.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from mail_assets.defs.assets.months import table_columns
from mail_assets.defs.audit.figures import Figures, sum_up
from mail_assets.defs.partitions import PREFIX, asset_key
from mail_assets.defs.quality import Answers, mode_table, worst_table
from mail_assets.defs.resources import DatabaseResource, SearchResource
from mail_assets.evaluation.judged import MIN_KNOWN, MIN_RELEVANT, JudgedQuery, read_judged_set
from mail_assets.evaluation.quality import build_quality_record
from mail_assets.evaluation.scores import score_queries
from mail_assets.indexes.live import LifecycleError, complete_indexes
from mail_assets.reading.browsing import full_name
from mail_assets.search.language.request import MODES, VECTOR_MODES, RequestError
from mail_assets.tables.indexes import IndexRecord
from mail_assets.tables.search_audit import DayPart, collect_searches, read_days

UNSET = (
    "nothing to measure: MAIL_QUALITY_SET is not set. It names a folder with queries.jsonl and "
    "qrels.tsv, as `mail-assets evaluate` takes them; docs/quality.md says how to make one"
)


class QualityConfig(dg.Config):
    """Run configuration of search_quality."""

    min_relevant: int | None = Field(
        default=None,
        ge=1,
        description=f"leave out queries with fewer relevant messages; default: {MIN_RELEVANT}, "
        f"and {MIN_KNOWN} where no query of the set has two",
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
        tags={"layer": "search"},
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
        MRR, recall@50, success@10, threads@10 with 95 % intervals, and latency. The numbers are
        those of the live index; `modes` has the other complete indexes beside it. Unpartitioned;
        kept in Dagster's history. Without MAIL_QUALITY_SET nothing is measured and nothing
        recorded.
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
        yield dg.MaterializeResult(
            metadata={
                "modes": mode_table(answers),
                "worst": worst_table(answers[0].scores, judged),
                **recorded,
                "topics": dg.MetadataValue.json(recorded["topics"]),
            }
        )

    return search_quality


def _ask(
    search: SearchResource, bucket: str, index: IndexRecord, judged: Sequence[JudgedQuery]
) -> Answers:
    """Ask an index every query; full text asks none, so that only the live one brings it."""
    with search.open_index(bucket, index) as searcher:
        modes = [mode for mode in MODES if index.live or mode in VECTOR_MODES]
        return Answers(bucket, index, score_queries(searcher.search, judged, modes))


def _recorded(live: Answers, judged: Sequence[JudgedQuery]) -> dict[str, Any]:
    return {
        "bucket": live.bucket,
        "index": live.record.name,
        **build_quality_record(judged, live.scores),
    }


#: Days that the figures are of.
DAYS = 30

SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("of", "string", "day (UTC), or surface"),
        dg.TableColumn("searches", "int"),
        dg.TableColumn("errors", "int", "could not be answered"),
        dg.TableColumn("refused", "int", "wrong, or too many"),
        dg.TableColumn("nothing_found", "float", "share of those answered"),
        dg.TableColumn("p50_ms", "int", "of those answered, rounded up"),
        dg.TableColumn("p95_ms", "int", "of those answered, rounded up"),
    ]
)


@dg.asset(
    key_prefix=PREFIX,
    # for the lineage: what is searched; it reads nothing of them
    deps=[asset_key(name) for name in ("vector_index", "word_index")],
    tags={"layer": "search"},
    kinds={"postgres"},
    metadata=table_columns("search_audit"),
    code_version="1",
)
def search_audit(
    context: dg.AssetExecutionContext, database: DatabaseResource
) -> dg.MaterializeResult:
    """One row per hour and kind of search that was served: counts, without queries and clients.
    The numbers are those of the last 30 days, by day in `days`. Each run takes over
    what was served since the last.
    """
    with database.connect("search_audit", context.run.run_id) as connection:
        changed = collect_searches(connection)
        parts = read_days(connection, dt.datetime.now(dt.UTC) - dt.timedelta(days=DAYS))
        name = full_name(connection, "search_audit")
    days = {day: sum_up(some) for day, some in groupby(parts, key=lambda part: part.day)}
    figures = {key: value for key, value in sum_up(parts)._asdict().items() if value is not None}
    return dg.MaterializeResult(
        metadata={
            **figures,
            "changed": changed,
            "days": _tabulate(days.items()),
            "surfaces": _tabulate(_by_surface(parts)),
            "dagster/table_name": name,
        }
    )


def _by_surface(parts: Sequence[DayPart]) -> list[tuple[str, Figures]]:
    ordered = sorted(parts, key=lambda part: part.surface)
    groups = groupby(ordered, key=lambda part: part.surface)
    return [(surface, sum_up(some)) for surface, some in groups]


def _tabulate(rows: Iterable[tuple[object, Figures]]) -> dg.TableMetadataValue:
    records = [
        dg.TableRecord(
            {
                "of": str(of),
                **figures._asdict(),
                "nothing_found": round(figures.nothing_found or 0.0, 3),
            }
        )
        for of, figures in rows
    ]
    return dg.MetadataValue.table(records, SCHEMA)
