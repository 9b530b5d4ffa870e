"""What all partitioned assets have in common: walk the months of a run, report each.

A month that fails does not stop the others: a broken archive fails its partition alone. The
run fails in the end and names the months that are done and those that are not.

[metadata] The metadata of a table in the UI: its name, columns and rows, and a few rows as a sample.

[sample_records] The rows of months that Dagster's event log shows, as samples of what a run has made.

Dagster has no way to change a record or to wipe the records of a month
(`wipe_asset_partitions` is not implemented by its PostgreSQL storage): a run is deleted whole, with
its log and its records of other months. The UI shows those as missing until their next run, which
finds nothing to do.
"""

import os
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import dagster as dg
import pandas as pd
import psycopg

from mail_assets.defs.instance import open_instance
from mail_assets.defs.partitions import asset_key, months_of_run, partition_key
from mail_assets.defs.runs import MonthFinished, log_month
from mail_assets.errors import MonthError
from mail_assets.month import ListMonth
from mail_assets.reading.browsing import declared_columns, full_name, row_count, sample
from mail_assets.settings.settings import Settings
from mail_assets.sources.source import SourceError
from mail_assets.steps.outcome import Outcome
from mail_assets.tables.partitions import Counts, digest_of
from mail_assets.workspace import Workspace


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
    """Return the metadata of a table after a run: its full name, and how many rows it has."""
    return {"dagster/table_name": full_name(connection, table), "dagster/row_count": rows}


def sample_metadata(
    connection: psycopg.Connection, table: str, month: ListMonth | None
) -> dict[str, dg.MarkdownMetadataValue]:
    """Return a few rows of a month, to read; of the whole table where it has no months."""
    return {"sample": rows_as_markdown(sample(connection, table, month))}


def rows_as_markdown(rows: pd.DataFrame) -> dg.MarkdownMetadataValue:
    """Return rows as the UI shows them."""
    return dg.MetadataValue.md(rows.to_markdown(index=False) if len(rows) else "no rows")


#: What belongs to one month; everything else (no server, no memory) ends the run at once.
MONTHLY_ERRORS = (
    MonthError,
    FileNotFoundError,
    # a value or a row that PostgreSQL refuses
    psycopg.DataError,
    psycopg.errors.ProgramLimitExceeded,
)

#: What Dagster records beside the figures; its own type for this is not public.
Metadata = Mapping[str, Any]

#: Makes one month of an asset.
Step = Callable[[ListMonth], Outcome]


class Made(NamedTuple):
    """What a run made: the sums over its months, and one version for what is in them now."""

    counts: Counts
    version: dg.DataVersion


class _Month(NamedTuple):
    """One month that is done."""

    outcome: Outcome
    metadata: Metadata


def materialize_table(
    context: dg.AssetExecutionContext,
    workspace: Workspace,
    step: Step,
    rows: str,
    about: Metadata = MappingProxyType({}),
) -> dg.MaterializeResult:
    """Run a step for each month of the run, and report the asset as the table of its name.

    `rows` names the figure that counts a month's rows; `about` goes before what the table says of
    itself.

    Raises:
        dagster.Failure: some months failed; the others are recorded as materialized.
    """
    table, connection = context.asset_key.path[-1], workspace.connection
    shows_samples = context.resources.workspace.samples

    def show(month: ListMonth) -> Metadata:
        return sample_metadata(connection, table, month) if shows_samples else {}

    made = make_months(context, step, rows, show)
    known = table_metadata(connection, table, row_count(connection, table))
    return dg.MaterializeResult(
        metadata={**made.counts, **known, **about},
        data_version=made.version,
    )


def make_months(
    context: dg.AssetExecutionContext,
    step: Step,
    rows: str,
    show: Callable[[ListMonth], Metadata],
) -> Made:
    """Run a step for each month of the run and report each under its own partition.

    `rows` names the figure that counts a month's rows; `show` returns what else there is to see
    of a month.

    Raises:
        dagster.Failure: some months failed; the others are recorded as materialized.
    """
    done: dict[ListMonth, _Month] = {}
    failed: dict[ListMonth, Exception] = {}
    for month in months_of_run(context):
        try:
            outcome = step(month)
        except MONTHLY_ERRORS as error:
            context.log.error(f"{month}: {error}")
            context.log.debug(traceback.format_exc())
            failed[month] = error
            continue
        done[month] = _Month(outcome, _metadata(outcome, rows) | dict(show(month)))
        finished = MonthFinished(context.asset_key.path[-1], month, outcome.counts, outcome.changed)
        log_month(context.log, finished, _line(context.asset_key, month, outcome))
    if failed:
        _report_failure(context, done, failed)
    for month, made in done.items():
        context.add_asset_metadata(made.metadata, partition_key=str(partition_key(month)))
    outcomes = [made.outcome for made in done.values()]
    return Made(_sums(outcomes), _version(outcomes))


def _line(asset: dg.AssetKey, month: ListMonth, outcome: Outcome) -> str:
    what = f"{asset.path[-1]} {month}"
    if outcome.note:
        return f"{what}: {outcome.note}"
    if not outcome.changed:
        return f"{what}: unchanged"
    figures = ", ".join(f"{name} {value}" for name, value in outcome.counts.items())
    return f"{what}: {figures}"


def _metadata(outcome: Outcome, rows: str) -> dict[str, Any]:
    note = {"note": outcome.note} if outcome.note else {}
    return {**outcome.counts, **note, "dagster/partition_row_count": int(outcome.counts[rows])}


def _version(outcomes: Iterable[Outcome]) -> dg.DataVersion:
    """Return one version for all months of a run: Dagster takes no more."""
    digests = [outcome.digest for outcome in outcomes]
    return dg.DataVersion((digests[0] if len(digests) == 1 else digest_of(*digests))[:32])


def _sums(outcomes: Iterable[Outcome]) -> Counts:
    """Add up what can be added; rates and maxima stay with their months."""
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
    """Record the months that are done, then fail: Dagster records none of a failed step."""
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
    again = any(isinstance(error, SourceError) and error.retryable for error in failed.values())
    first, reason = next(iter(failed.items()))
    raise dg.Failure(
        f"{len(failed)} of {len(done) + len(failed)} months failed; {first}: {reason}",
        metadata={
            "failed": dg.MetadataValue.json({one.key: str(e) for one, e in failed.items()}),
            "done": dg.MetadataValue.json([one.key for one in done]),
        },
        allow_retries=again,
    )


#: The assets whose samples show senders, subjects or text.
SHOWN = ("messages", "words", "chunks", "vectors", "threads", "thread_summaries")

#: Those of the whole corpus: a record may show a row of any month.
WHOLE = ("threads", "thread_summaries")

#: Records to a request; Dagster allows 1,000.
PAGE = 500


class SampleRecords(NamedTuple):
    """How many records show rows, and the runs that wrote them, sorted."""

    total: int
    runs: list[str]


def find_samples(instance: dg.DagsterInstance, months: Collection[ListMonth]) -> SampleRecords:
    """Return the records that show rows of months, or of the whole corpus."""
    keys = [str(partition_key(month)) for month in months]
    if not keys:
        return SampleRecords(0, [])
    runs = [
        record.event_log_entry.run_id
        for asset in SHOWN
        for record in _records(instance, asset, None if asset in WHOLE else keys)
        if record.asset_materialization and "sample" in record.asset_materialization.metadata
    ]
    return SampleRecords(len(runs), sorted({*runs}))


def clean_samples(settings: Settings, months: Collection[ListMonth], delete: bool) -> SampleRecords:
    """Return the records of the instance of this home that show rows of months.

    With `delete` the runs that wrote them are deleted, and what is left is returned: a run that
    has not ended stays.
    """
    if not os.path.lexists(settings.dagster_home / "dagster.yaml"):
        return SampleRecords(0, [])  # nothing was ever run here
    with open_instance(settings) as instance:
        found = find_samples(instance, months)
        if delete:
            delete_runs(instance, found.runs)
            found = find_samples(instance, months)
    return found


def delete_runs(instance: dg.DagsterInstance, run_ids: Collection[str]) -> None:
    """Delete runs that have ended, with everything that they have recorded."""
    for run_id in run_ids:
        run = instance.get_run_by_id(run_id)
        if run and run.is_finished:
            instance.delete_run(run_id)


def _records(
    instance: dg.DagsterInstance, asset: str, keys: list[str] | None
) -> Iterator[dg.EventLogRecord]:
    wanted = dg.AssetRecordsFilter(asset_key=asset_key(asset), asset_partitions=keys)
    cursor = None
    while True:
        page = instance.fetch_materializations(wanted, limit=PAGE, cursor=cursor)
        yield from page.records
        if not page.has_more:
            return
        cursor = page.cursor
