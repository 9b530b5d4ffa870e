"""What all partitioned assets have in common: walk the months of a run, report each.

A month that fails does not stop the others: a broken archive fails its partition alone. The
run fails in the end and names the months that are done and those that are not.
"""

import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

import dagster as dg
import pandas as pd
import psycopg

from mail_assets.mail.mbox import ArchiveError
from mail_assets.partitions import Archive, archive_keys
from mail_assets.sources.base import SourceError
from mail_assets.steps.outcome import Outcome, StepError
from mail_assets.store.catalog import columns, full_name, row_count, sample
from mail_assets.store.embeddings import EmbeddingsError
from mail_assets.store.partitions import Counts, digest_of
from mail_assets.vectors.index import VectorError

#: What belongs to one month; everything else (no server, no memory) ends the run at once.
MONTHLY_ERRORS = (
    ArchiveError,
    EmbeddingsError,
    FileNotFoundError,
    SourceError,
    StepError,
    VectorError,
    # a value or a row that PostgreSQL refuses
    psycopg.DataError,
    psycopg.errors.ProgramLimitExceeded,
)

OWNERS = ["team:mail-archives"]


#: What Dagster records beside the figures; its own type for this is not public.
About = Mapping[str, Any]


class Made(NamedTuple):
    """What a run made: the sums over its months, and one version for what they hold now."""

    counts: Counts
    version: dg.DataVersion


class _Month(NamedTuple):
    """One month that is done."""

    outcome: Outcome
    metadata: About


def each_month(
    context: dg.AssetExecutionContext,
    step: Callable[[Archive], Outcome],
    rows: str,
    show: Callable[[Archive], About],
) -> Made:
    """Run a step for each month and report each under its own partition.

    `rows` names the figure that counts the partition's rows; `show` returns what else there
    is to see of a month.

    Raises:
        dagster.Failure: some months failed; the others are recorded as materialized.
    """
    done: dict[Archive, _Month] = {}
    failed: dict[Archive, Exception] = {}
    for archive in archive_keys(context):
        try:
            outcome = step(archive)
        except MONTHLY_ERRORS as error:
            context.log.error(f"{archive}: {error}")
            context.log.debug(traceback.format_exc())
            failed[archive] = error
            continue
        done[archive] = _Month(outcome, _metadata(outcome, rows) | dict(show(archive)))
        context.log.info(_line(context.asset_key, archive, outcome))
    if failed:
        _report_failure(context, done, failed)
    for archive, month in done.items():
        context.add_asset_metadata(month.metadata, partition_key=str(archive.key))
    outcomes = [month.outcome for month in done.values()]
    return Made(_sums(outcomes), _version(outcomes))


def table_metadata(connection: psycopg.Connection, table: str) -> dict[str, Any]:
    """Return Dagster's own metadata of a table: name, columns, rows."""
    schema = [
        dg.TableColumn(c.name, c.type, constraints=dg.TableColumnConstraints(nullable=c.nullable))
        for c in columns(connection, table)
    ]
    return {
        "dagster/table_name": full_name(connection, table),
        "dagster/column_schema": dg.TableSchema(schema),
        "dagster/row_count": row_count(connection, table),
    }


def sample_metadata(
    connection: psycopg.Connection, table: str, archive: Archive
) -> dict[str, dg.MarkdownMetadataValue]:
    """Return a few rows of a month, to read."""
    return {"sample": as_markdown(sample(connection, table, archive.list, archive.month))}


def as_markdown(rows: pd.DataFrame) -> dg.MarkdownMetadataValue:
    """Return rows as the UI shows them."""
    return dg.MetadataValue.md(rows.to_markdown(index=False) if len(rows) else "no rows")


def _line(asset: dg.AssetKey, archive: Archive, outcome: Outcome) -> str:
    what = f"{asset.to_user_string()} {archive}"
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
    done: Mapping[Archive, _Month],
    failed: Mapping[Archive, Exception],
) -> NoReturn:
    """Record the months that are done, then fail: Dagster records none of a failed step."""
    for archive, month in done.items():
        version = _version([month.outcome]).value
        context.log_event(
            dg.AssetMaterialization(
                context.asset_key,
                partition=archive.key,
                metadata=month.metadata,
                tags={"dagster/data_version": version},
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
