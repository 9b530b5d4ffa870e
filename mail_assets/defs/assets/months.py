"""What all partitioned assets have in common: walk the months of a run, report each.

A month that fails does not stop the others: a broken archive fails its partition alone. The
run fails in the end and names the months that are done and those that are not.
"""

import traceback
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import dagster as dg
import psycopg

from mail_assets.defs.assets.metadata import sample_metadata, table_metadata
from mail_assets.defs.partitions import months_of_run, partition_key
from mail_assets.defs.runs import MonthFinished, log_month
from mail_assets.mail.archive.compression import ArchiveError
from mail_assets.month import ListMonth
from mail_assets.sources.source import SourceError
from mail_assets.steps.outcome import Outcome, StepError
from mail_assets.store.embeddings_format import EmbeddingsFileError
from mail_assets.tables.catalog import row_count
from mail_assets.tables.partitions import Counts, digest_of
from mail_assets.vectors.index import VectorError
from mail_assets.words.errors import WordsError
from mail_assets.workspace import Workspace

#: What belongs to one month; everything else (no server, no memory) ends the run at once.
MONTHLY_ERRORS = (
    ArchiveError,
    EmbeddingsFileError,
    FileNotFoundError,
    SourceError,
    StepError,
    VectorError,
    WordsError,
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
