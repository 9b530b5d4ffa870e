"""What all partitioned assets have in common: walk the months of a run, report each.

A month that fails does not stop the others: a broken archive fails its partition alone. The
run fails in the end and names the months that are done and those that are not.
"""

import traceback
from collections.abc import Callable, Iterable
from typing import Any

import dagster as dg
import psycopg

from mail_assets.mail.mbox import ArchiveError
from mail_assets.partitions import Archive, archive_keys
from mail_assets.sources.base import SourceError
from mail_assets.steps.outcome import Outcome, StepError
from mail_assets.store.catalog import columns, full_name, row_count, sample
from mail_assets.store.partitions import Counts, digest_of
from mail_assets.vectors.index import VectorError

#: What belongs to one month; everything else (no server, no memory) ends the run at once.
MONTHLY_ERRORS = (ArchiveError, FileNotFoundError, SourceError, StepError, VectorError)

OWNERS = ["team:mail-archives"]


def each_month(
    context: dg.AssetExecutionContext, step: Callable[[Archive], Outcome]
) -> tuple[Counts, dg.DataVersion, Archive]:
    """Run a step for each month; return the sums, a data version, a month worth showing.

    Raises:
        dagster.Failure: some months failed; the others are recorded as materialized.
    """
    done: dict[Archive, Outcome] = {}
    failed: dict[Archive, Exception] = {}
    for archive in archive_keys(context):
        try:
            outcome = step(archive)
        except MONTHLY_ERRORS as error:
            context.log.error(f"{archive}: {error}")
            context.log.debug(traceback.format_exc())
            failed[archive] = error
            continue
        done[archive] = outcome
        context.log.info(_line(context.asset_key, archive, outcome))
    if failed:
        _report_failure(context, done, failed)
    for archive, outcome in done.items():
        context.add_asset_metadata(
            {**outcome.counts, **_note(outcome)}, partition_key=str(archive.key)
        )
    digests = [outcome.digest for outcome in done.values()]
    version = digests[0] if len(digests) == 1 else digest_of(*digests)
    return _sums(done.values()), dg.DataVersion(version[:32]), _fullest(done)


def table_metadata(
    connection: psycopg.Connection, table: str, archive: Archive | None
) -> dict[str, Any]:
    """Return Dagster's own metadata of a table: name, columns, rows, and a few rows to read."""
    schema = [
        dg.TableColumn(c.name, c.type, constraints=dg.TableColumnConstraints(nullable=c.nullable))
        for c in columns(connection, table)
    ]
    place = archive or Archive("*", "*")
    rows = sample(connection, table, place.list, place.month)
    return {
        "dagster/table_name": full_name(connection, table),
        "dagster/column_schema": dg.TableSchema(schema),
        "dagster/row_count": row_count(connection, table),
        "sample": dg.MetadataValue.md(rows.to_markdown(index=False) if len(rows) else "no rows"),
    }


def _line(asset: dg.AssetKey, archive: Archive, outcome: Outcome) -> str:
    if outcome.note:
        return f"{archive}: {outcome.note}"
    if not outcome.changed:
        return f"{archive}: {asset.to_user_string()} unchanged"
    figures = ", ".join(f"{name} {value}" for name, value in outcome.counts.items())
    return f"{archive}: {figures}"


def _note(outcome: Outcome) -> dict[str, str]:
    return {"note": outcome.note} if outcome.note else {}


def _sums(outcomes: Iterable[Outcome]) -> Counts:
    """Add up what can be added; rates and maxima stay with their months."""
    sums: Counts = {}
    for outcome in outcomes:
        for name, value in outcome.counts.items():
            if not name.endswith(("_per_second", "_max")):
                sums[name] = round(sums.get(name, 0) + value, 3)
    return sums


def _fullest(done: dict[Archive, Outcome]) -> Archive:
    """Return the month with the largest figures: the one to show rows of."""
    return max(done, key=lambda archive: sum(done[archive].counts.values()))


def _report_failure(
    context: dg.AssetExecutionContext,
    done: dict[Archive, Outcome],
    failed: dict[Archive, Exception],
) -> None:
    """Record the months that are done, then fail: Dagster records none of a failed step."""
    for archive, outcome in done.items():
        context.log_event(
            dg.AssetMaterialization(
                context.asset_key, partition=str(archive.key), metadata=dict(outcome.counts)
            )
        )
    again = any(isinstance(error, SourceError) and error.retryable for error in failed.values())
    first = next(iter(failed.items()))
    raise dg.Failure(
        f"{len(failed)} of {len(done) + len(failed)} months failed; {first[0]}: {first[1]}",
        metadata={
            "failed": dg.MetadataValue.json({str(a): str(e) for a, e in failed.items()}),
            "done": dg.MetadataValue.json([str(a) for a in done]),
        },
        allow_retries=again,
    )
