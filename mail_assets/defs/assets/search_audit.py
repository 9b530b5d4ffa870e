"""`search_audit`: how much is searched, how quickly, and how often in vain."""

import datetime as dt
from collections.abc import Iterable, Sequence
from itertools import groupby

import dagster as dg

from mail_assets.defs.assets.metadata import table_columns
from mail_assets.defs.audit.figures import Figures, sum_up
from mail_assets.defs.partitions import PREFIX, asset_key
from mail_assets.defs.resources import DatabaseResource
from mail_assets.tables.catalog import full_name
from mail_assets.tables.search_audit import DayPart, collect_searches, read_days

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
