"""Run a step for each month of a run and record each month under its own partition.

A month that fails does not stop the others. The run fails at the end and names its failed months.

No mail is recorded: the event log keeps counts, columns and links to the pages of the archive.
"""

import traceback
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import dagster as dg
import psycopg
from pydantic import Field

from mail_assets.defs.partitions import months_of_run, partition_key
from mail_assets.defs.runs import MonthFinished, log_month
from mail_assets.errors import MonthError
from mail_assets.files import find_full_disk
from mail_assets.month import ListMonth
from mail_assets.reading.browsing import declared_columns, full_name, row_count
from mail_assets.sources.source import SourceError
from mail_assets.steps.outcome import Outcome
from mail_assets.tables.partitions import Counts, digest_of
from mail_assets.web.requests import month_url
from mail_assets.workspace import Workspace

#: Errors of a single month; any other, such as a server that is down, ends the run at once.
MONTHLY_ERRORS = (
    MonthError,
    FileNotFoundError,
    # a value or a row that PostgreSQL refuses
    psycopg.DataError,
    psycopg.errors.ProgramLimitExceeded,
)

#: Metadata of a materialization; Dagster's own type for this is not public.
Metadata = Mapping[str, Any]

#: Makes one month of an asset.
Step = Callable[[ListMonth], Outcome]


class RebuildConfig(dg.Config):
    """Run configuration of every asset that is made from others."""

    rebuild: bool = Field(
        default=False,
        description="make it again from its inputs although they are the same, and write what "
        "differs: for rows, files or entries that are damaged",
    )


class Made(NamedTuple):
    """Result of a run: counts summed over its months, and one data version for all of them."""

    counts: Counts
    version: dg.DataVersion


class _Month(NamedTuple):
    outcome: Outcome
    metadata: Metadata


def table_columns(table: str) -> dict[str, dg.TableSchema]:
    """Return the metadata of an asset that is a table: its columns, the same in every run."""
    schema = [
        dg.TableColumn(
            column.name,
            column.type,
            column.description,
            dg.TableColumnConstraints(nullable=column.nullable),
        )
        for column in declared_columns(table)
    ]
    return {"dagster/column_schema": dg.TableSchema(schema)}


def table_metadata(connection: psycopg.Connection, table: str, rows: int) -> dict[str, Any]:
    """Return the metadata of a table after a run: its full name and its number of rows."""
    return {"dagster/table_name": full_name(connection, table), "dagster/row_count": rows}


def materialize_table(
    context: dg.AssetExecutionContext,
    workspace: Workspace,
    step: Step,
    rows: str,
    about: Metadata = MappingProxyType({}),
) -> dg.MaterializeResult:
    """Run a step for each month of the run and report the asset as the table of its name.

    Args:
        rows: name of the count that is a month's number of rows.
        about: metadata that replaces what the table says of itself.

    Raises:
        dagster.Failure: some months failed; the others are recorded as materialized.
    """
    table, connection = context.asset_key.path[-1], workspace.connection
    made = make_months(context, step, rows)
    known = table_metadata(connection, table, row_count(connection, table))
    return dg.MaterializeResult(
        metadata={**made.counts, **known, **about}, data_version=made.version
    )


def make_months(
    context: dg.AssetExecutionContext,
    step: Step,
    rows: str,
    describe: Callable[[ListMonth], Metadata] = lambda _: {},
) -> Made:
    """Run a step for each month of the run and report each under its own partition.

    Args:
        rows: name of the count that is a month's number of rows.
        describe: returns further metadata of a month.

    Raises:
        dagster.Failure: some months failed; the others are recorded as materialized.
    """
    done: dict[ListMonth, _Month] = {}
    failed: dict[ListMonth, Exception] = {}
    web_url = context.resources.workspace.web_url
    for month in months_of_run(context):
        try:
            outcome = step(month)
        except MONTHLY_ERRORS as error:
            if find_full_disk(error, ()):
                raise  # the next month would fail too
            context.log.error(f"{month}: {error}")
            context.log.debug(traceback.format_exc())
            failed[month] = error
            continue
        metadata = {
            **_metadata(outcome, rows),
            **(_page_link(web_url, month) if outcome.counts[rows] else {}),
            **describe(month),
        }
        done[month] = _Month(outcome, metadata)
        finished = MonthFinished(context.asset_key.path[-1], month, outcome.counts, outcome.changed)
        log_month(context.log, finished, _line(context.asset_key, month, outcome))
    if failed:
        _report_failure(context, done, failed)
    for month, made in done.items():
        context.add_asset_metadata(made.metadata, partition_key=str(partition_key(month)))
    outcomes = [made.outcome for made in done.values()]
    return Made(_sums(outcomes), _version(outcomes))


def _line(asset: dg.AssetKey, month: ListMonth, outcome: Outcome) -> str:
    subject = f"{asset.path[-1]} {month}"
    if outcome.note:
        return f"{subject}: {outcome.note}"
    if not outcome.changed:
        return f"{subject}: unchanged"
    counts = ", ".join(f"{name} {value}" for name, value in outcome.counts.items())
    return f"{subject}: {counts}"


def _metadata(outcome: Outcome, rows: str) -> dict[str, Any]:
    note = {"note": outcome.note} if outcome.note else {}
    return {**outcome.counts, **note, "dagster/partition_row_count": int(outcome.counts[rows])}


def _page_link(web_url: str, month: ListMonth) -> Metadata:
    if not web_url:
        return {}
    return {"page": dg.MetadataValue.url(web_url + month_url(month.list_name, month.month))}


def _version(outcomes: Iterable[Outcome]) -> dg.DataVersion:
    # Dagster takes one version for all months of a run
    digests = [outcome.digest for outcome in outcomes]
    return dg.DataVersion((digests[0] if len(digests) == 1 else digest_of(*digests))[:32])


def _sums(outcomes: Iterable[Outcome]) -> Counts:
    """Add up the counts that can be added: rates and maxima are of single months."""
    sums: Counts = {}
    for outcome in outcomes:
        for name, value in outcome.counts.items():
            if not name.endswith(("_per_second", "_max")):
                sums[name] = round(sums.get(name, 0) + value, 3)
    return sums


def _report_failure(
    context: dg.AssetExecutionContext,
    done: Mapping[ListMonth, _Month],
    failed: Mapping[ListMonth, Exception],
) -> NoReturn:
    """Record the months that are done, then fail: of a failed step Dagster records nothing."""
    for month, made in done.items():
        version = _version([made.outcome]).value
        context.log_event(
            dg.AssetMaterialization(
                context.asset_key,
                partition=partition_key(month),
                metadata=made.metadata,
                tags={"dagster/data_version": version},
            )
        )
    retryable = any(isinstance(error, SourceError) and error.retryable for error in failed.values())
    first, reason = next(iter(failed.items()))
    raise dg.Failure(
        f"{len(failed)} of {len(done) + len(failed)} months failed; {first}: {reason}",
        metadata={
            "failed": dg.MetadataValue.json({one.key: str(e) for one, e in failed.items()}),
            "done": dg.MetadataValue.json([one.key for one in done]),
        },
        allow_retries=retryable,
    )
