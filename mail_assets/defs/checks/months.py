"""Checks the months of partitioned assets and names those that fail.

In a run with its asset, a check reads the months of that run; if the asset has no partitions, it
reads the months that have changed since they passed. In a run without its asset, it reads all
months that were ever made. Checks are not partitioned: Dagster 1.13 has this only as a preview.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple, Protocol, TypeVar

import dagster as dg
import psycopg
from dagster_shared.record import replace

from mail_assets.defs.failures import FAILED, MONTHS_MADE, TRACEBACK, fail_months, reason_of_row
from mail_assets.defs.partitions import asset_key, is_of_months, months_of_run
from mail_assets.defs.resources import DatabaseResource
from mail_assets.errors import name_some
from mail_assets.month import ListMonth
from mail_assets.tables.checks import count_months
from mail_assets.tables.indexes import Entry
from mail_assets.tables.partitions import (
    MonthCheck,
    Versions,
    find_unchecked,
    read_versions,
    record_checked,
)

#: Severities of checks: ERROR fails a month, WARN does not.
ERROR, WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN

#: Most months shown as rows (a decade), and most months named in a sentence.
MOST_ROWS, MOST_NAMES = 120, 12

#: Keys of an index that are compared at once; they take about 10 MB.
KEYS_AT_ONCE = 50_000

#: Schema of a table without rows; Dagster takes the columns of others from their rows.
NO_MONTHS = dg.TableSchema([dg.TableColumn("month")])


class CheckedMonth(NamedTuple):
    """The result of a check for a month; `reason` follows its name in the description."""

    passed: bool
    figures: Mapping[str, Any]
    reason: str = ""


class KnownKeys(NamedTuple):
    """Keys of a month in the source table of an index, and in the index's manifest."""

    wanted: Set[str]
    entries: Mapping[str, Entry]


CheckedMonths = Mapping[ListMonth, CheckedMonth]

#: Checks some months.
Find = Callable[[psycopg.Connection, Sequence[ListMonth]], CheckedMonths]

#: An iterator of one AssetCheckResult. After yielding it the check may raise, because Dagster has
#: recorded the result by then. The type of Dagster's decorator does not mention iterators.
Results = Any


class Figures(Protocol):
    """A named tuple with the figures of a month."""

    def _asdict(self) -> dict[str, Any]: ...


_Figures = TypeVar("_Figures", bound=Figures)


def month_check(
    asset: str,
    figures: Callable[..., _Figures],
    severity: dg.AssetCheckSeverity,
    months_of: str | None = None,
) -> Callable[[Callable[[_Figures], CheckedMonth | bool]], dg.AssetChecksDefinition]:
    """Return the decorator that makes a check from a function that judges a month's figures.

    The function returns whether the month passes, or a CheckedMonth if it adds a figure or a
    reason. The check has the function's name and docstring. If a check of severity ERROR fails for
    a month, later assets of that month are not made. `months_of` is the asset whose months are
    checked, if it is not `asset`.
    """

    def decorate(judge: Callable[[_Figures], CheckedMonth | bool]) -> dg.AssetChecksDefinition:
        def find(connection: psycopg.Connection, months: Sequence[ListMonth]) -> CheckedMonths:
            found = {}
            for month, counted in count_months(connection, months, figures).items():
                result = judge(counted)
                if isinstance(result, bool):
                    result = CheckedMonth(result, counted._asdict())
                found[month] = result
            return found

        @dg.asset_check(
            asset=asset_key(asset),
            name=judge.__name__,
            description=inspect.getdoc(judge),
            blocking=severity is ERROR,
        )
        def check(context: dg.AssetCheckExecutionContext, database: DatabaseResource) -> Results:
            return check_months(context, database, find, severity, months_of)

        return check

    return decorate


def check_months(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    find: Find,
    severity: dg.AssetCheckSeverity,
    months_of: str | None = None,
) -> Iterator[dg.AssetCheckResult]:
    """Check the months that are due, record which pass, and yield the result.

    `months_of` is the asset whose months are checked, if it is not the asset of the check.

    Raises:
        StepFailedError: months failed, and no later asset of the run would skip them.
    """
    [key] = context.op_execution_context.selected_asset_check_keys
    asset = key.asset_key.path[-1]
    check = MonthCheck(asset, key.name, months_of or asset)
    with database.connect("checks", context.run.run_id) as connection:
        due = _find_due(context, connection, check)
        results = find(connection, [*due])
        passed = {month: result.passed for month, result in results.items()}
        record_checked(connection, check, due, passed)
    result = month_result(results, severity, asset if severity is ERROR else "")
    if result.passed or severity is WARN:
        yield result
        return
    failed = [month for month, one in results.items() if not one.passed]
    if len(failed) < min(len(results), MOST_ROWS) and _has_next(context, asset):
        yield _PartlyFailed(**result._asdict())
        return
    yield result
    rows = (_row(month, results[month]) for month in failed)
    raise fail_months({m: reason_of_row(key.name, r) for m, r in zip(failed, rows, strict=True)})


class _PartlyFailed(dg.AssetCheckResult):
    """Result of a blocking check that stops single months of a run, not the whole run.

    The next assets skip these months (assets/months.py), and their check months_made fails the run.
    """

    def to_asset_check_evaluation(self, step_context: Any) -> dg.AssetCheckEvaluation:
        return replace(super().to_asset_check_evaluation(step_context), blocking=False)


def _has_next(context: dg.AssetCheckExecutionContext, asset: str) -> bool:
    """Return whether the run also makes a partitioned asset from `asset`."""
    layer, key = context.job_def.asset_layer, asset_key(asset)
    return context.has_partition_key_range and any(
        key in layer.get(one).parent_keys and layer.get(one).is_partitioned
        for one in layer.executable_asset_keys
    )


def build_months_made(asset: str) -> dg.AssetChecksDefinition:
    """Build the check that fails a run if it could not make some months of an asset."""

    @dg.asset_check(
        asset=asset_key(asset),
        name=MONTHS_MADE,
        description="The last run of each month has made it. A month that fails does not stop the "
        "other months of its run; this check fails the run at its end.",
    )
    def months_made(context: dg.AssetCheckExecutionContext) -> Results:
        reasons, traceback = _failed_in_run(context, asset) or _failed_before(context, asset)
        results = {month: CheckedMonth(False, {}, reason) for month, reason in reasons.items()}
        yield month_result(results, ERROR)
        if reasons:
            raise fail_months(reasons, traceback)

    return months_made


#: Reasons of failed months, and the traceback of the first.
_Failed = tuple[Mapping[ListMonth, str], str]


def _failed_in_run(context: dg.AssetCheckExecutionContext, asset: str) -> _Failed | None:
    """Return the months that the step of an asset reported as failed; None if it did not run.

    It does not run if somebody runs only the check, or repeats a run from its failure.
    """
    kind = dg.DagsterEventType.STEP_OUTPUT
    step = asset_key(asset).to_python_identifier()
    records = context.instance.get_records_for_run(context.run.run_id, of_type=kind).records
    for event in (record.event_log_entry.get_dagster_event() for record in records):
        if event.step_key == step:
            said = event.step_output_data.metadata
            reasons = said[FAILED].value.items() if FAILED in said else ()
            stack = str(said[TRACEBACK].value) if TRACEBACK in said else ""
            return {ListMonth.parse(key): str(reason) for key, reason in reasons}, stack
    return None


def _failed_before(context: dg.AssetCheckExecutionContext, asset: str) -> _Failed:
    """Return the months of an asset that the UI shows as failed."""
    key = asset_key(asset)
    partitions = context.job_def.asset_layer.get(key).partitions_def
    assert partitions, f"{asset} has no months"
    keys = partitions.get_partition_keys()
    statuses = context.instance.get_status_by_partition(key, keys, partitions) or {}
    failed = [one for one, status in statuses.items() if status and status.name == "FAILED"]
    return {ListMonth.parse(one): "its last run has failed" for one in sorted(failed)}, ""


def compare_months(
    months: Sequence[ListMonth],
    read: Callable[[ListMonth], KnownKeys],
    find: Callable[[Mapping[ListMonth, KnownKeys]], Mapping[ListMonth, Counter[str]]],
    names: tuple[str, str],
) -> CheckedMonths:
    """Compare the keys of months in three places: a table, its index, and the manifest.

    Args:
        read: returns the known keys of a month.
        find: returns the keys that the index has of some months. It is called with many months,
            but not with all: the keys of a whole corpus do not fit into memory.
        names: names of the table and of the index in the figures.
    """
    results: dict[ListMonth, CheckedMonth] = {}
    known: dict[ListMonth, KnownKeys] = {}
    for month in months:
        known[month] = read(month)
        if month == months[-1] or sum(len(one.wanted) for one in known.values()) >= KEYS_AT_ONCE:
            present = find(known)
            results |= {one: _compare_keys(known[one], present[one], names) for one in known}
            known = {}
    return results


def _compare_keys(known: KnownKeys, present: Counter[str], names: tuple[str, str]) -> CheckedMonth:
    (wanted, entries), (source, place) = known, names
    manifest = {key for key, entry in entries.items() if entry.written}
    figures = {
        source: len(wanted),
        "manifest": len(manifest),
        place: present.total(),
        "missing": len(wanted - present.keys()),
        "stale": len(present.keys() - wanted),
    }
    equal = wanted == manifest == present.keys() and len(entries) == len(manifest)
    return CheckedMonth(equal and present.total() == len(present), figures)


def _find_due(
    context: dg.AssetCheckExecutionContext, connection: psycopg.Connection, check: MonthCheck
) -> Versions:
    if asset_key(check.asset) not in context.job_def.asset_layer.executable_asset_keys:
        return read_versions(connection, check)
    if is_of_months(context):
        return read_versions(connection, check, months_of_run(context))
    return find_unchecked(connection, check)


def month_result(
    results: CheckedMonths,
    severity: dg.AssetCheckSeverity,
    rebuilt: str = "",
) -> dg.AssetCheckResult:
    """Return the result for some months, with the figures of the failed months, else of all.

    `rebuilt` is the asset that repairs them when it is made again, "" if there is none. Months are
    named in the order of `results`.
    """
    failed = {month: result for month, result in results.items() if not result.passed}
    remedy = (
        f"; if a run does not repair it, materialize {rebuilt} with rebuild: true, or run "
        f"`mail-assets backfill --rebuild --only {rebuilt}`"
        if rebuilt
        else ""
    )
    rows = [
        dg.TableRecord(_row(month, result))
        for month, result in [*(failed or results).items()][:MOST_ROWS]
    ]
    return dg.AssetCheckResult(
        passed=not failed,
        severity=severity,
        description=f"failed: {_names(failed)}{remedy}" if failed else None,
        metadata={
            "months": dg.MetadataValue.table(rows, schema=None if rows else NO_MONTHS),
            "checked_months": len(results),
            "failed_months": len(failed),
        },
    )


def _row(month: ListMonth, result: CheckedMonth) -> Mapping[str, Any]:
    reason = {"reason": result.reason} if result.reason else {}
    return {"month": month.key, **reason, **result.figures}


def _names(failed: CheckedMonths) -> str:
    named = [
        f"{month} ({result.reason})" if result.reason else str(month)
        for month, result in failed.items()
    ]
    return name_some(named, MOST_NAMES)
