"""Finds the faults of a home: its server, months, indexes, files and Dagster's history.

operations/examine.py finds the faults of the mail database and the indexes.
"""

import datetime as dt
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

import dagster as dg
import psycopg

from mail_assets.defs.failures import CHECK, find_command, find_rebuild, read_failures
from mail_assets.defs.instance import DagsterStorageError, open_instance
from mail_assets.defs.pruning import HistoryError, count_prunable_runs
from mail_assets.defs.runs import Failures, abandoned_runs, failed_months
from mail_assets.encoding.models import REMOTE_SCHEME, compute_fingerprint
from mail_assets.encoding.open import open_encoder
from mail_assets.errors import UnavailableError
from mail_assets.indexes.names import index_name, manifest_name
from mail_assets.indexes.vectors import open_vectors_bucket
from mail_assets.indexes.words import open_mail_words, open_words_bucket
from mail_assets.month import ListMonth
from mail_assets.operations import KEEP_DAYS
from mail_assets.operations.damage import (
    examine_damage,
    examine_schema,
    examine_tables,
    find_stopping,
    open_indexes,
)
from mail_assets.operations.examine import (
    BACKFILL,
    Finding,
    examine_defaults,
    examine_disks,
    examine_empty_lists,
    examine_encoder,
    examine_extensions,
    examine_forgotten,
    examine_lists,
    examine_months,
    examine_months_outside,
    examine_published,
    examine_server,
    examine_silent_lists,
    examine_vectors,
    examine_words,
    not_examined,
    span,
)
from mail_assets.postgres.database import MAIL, embedded
from mail_assets.postgres.embedded import PORT
from mail_assets.postgres.programs import OldDataError, PostgresError, find_bindir
from mail_assets.settings.settings import Settings
from mail_assets.steps.fetch_archive import REMEDY
from mail_assets.store.open import open_store, store_folder
from mail_assets.tables.encoded_texts import read_probe
from mail_assets.tables.health import read_server_version
from mail_assets.tables.indexes import live_index
from mail_assets.workspace import Workspace

#: Finding about months whose archive a run has refused; its remedy accepts the loss.
REFUSED = "the last run has refused an archive that has lost messages; if that is meant"

#: Number of runs that are not needed, and days by which they are overdue; weekly pruning leaves
#: none.
MANY_RUNS, LATE_DAYS = 100, 30


def examine_home(settings: Settings, deep: Callable[[str], None] | None = None) -> list[Finding]:
    """Return the faults of a home, the most basic first; nothing is changed.

    If `deep` is given, all rows, files and indexes are also read and compared. It is called with
    lines of progress.

    Raises:
        psycopg.OperationalError: the server of MAIL_PG_DSN does not answer.
    """
    # before the database: with a full disk the server does not start, or ends during a query
    store = store_folder(settings.store)
    disks = [*examine_disks([settings.home, *([store] if store else [])])]
    try:
        with settings.database.connect("doctor") as connection:
            missing = [*examine_tables(connection)]
            if not missing and deep:
                missing = [*examine_schema(connection)]
            if missing:  # other queries may fail until this is repaired
                return [*disks, *missing]
            damage = [*_examine_deep(settings, connection, deep)] if deep else []
            stopping = find_stopping(damage)
            return [
                *disks,
                *_examine_version(settings, connection),
                *examine_server(connection, psql_command(settings)),
                *examine_extensions(
                    connection,
                    psql_command(settings),
                    needs_vector=settings.vectors.startswith("pgvector:"),
                ),
                *stopping,  # runs of months fail until these are repaired
                *_examine_dagster(settings),
                *examine_lists(connection, settings.lists, settings.lists_file),
                *examine_published(connection, settings.languages),
                *examine_empty_lists(connection, settings.lists),
                *_examine_coverage(settings, connection),
                *examine_defaults(connection, settings.list_defaults),
                *examine_months(
                    connection, partial(_has_month, settings), _filled_index(settings, connection)
                ),
                *_examine_indexes(settings, connection),
                *examine_forgotten(connection),
                *_examine_encoder(settings, connection),
                *(one for one in damage if one not in stopping),
            ]
    except (PostgresError, psycopg.OperationalError) as error:
        if settings.pg_dsn and isinstance(error, psycopg.OperationalError):
            raise
        return _without_server(settings, error, disks)


def _examine_coverage(settings: Settings, connection: psycopg.Connection) -> Iterator[Finding]:
    """Find lists without recent mail, and stored months outside the range of lists.toml."""
    now = dt.datetime.now(dt.UTC)
    if not settings.last_month or settings.last_month >= f"{now:%Y-%m}":
        going = [name for name, one in settings.lists.items() if not one.ended]
        yield from examine_silent_lists(connection, going, now)
    yield from examine_months_outside(
        connection, settings.lists, settings.first_month, settings.last_month
    )


def _without_server(
    settings: Settings, error: Exception, disks: Sequence[Finding]
) -> list[Finding]:
    """Return the findings about a server that does not start, or that ended during a query."""
    if settings.pg_dsn:
        return [*disks, Finding("the server is not fit", str(error), "set MAIL_PG_DSN to another")]
    remedy = "mail-assets up"
    if isinstance(error, OldDataError):
        remedy = "mail-assets backup --all FOLDER; mail-assets restore FOLDER"
    if disks:
        remedy = f"make room, then `{remedy}`"
    return [
        *(one._replace(remedy="make room there by hand: prune needs the server") for one in disks),
        Finding("the embedded server does not start", str(error), remedy),
    ]


def psql_command(settings: Settings) -> str:
    """Return a shell command that runs psql on the mail database, without the password."""
    psql = shlex.quote(str(find_bindir() / "psql"))
    if settings.pg_dsn:
        return f'{psql} "$MAIL_PG_DSN"'
    socket = shlex.quote(str(embedded(settings.home).paths.socket_folder))
    return f"{psql} -h {socket} -p {PORT} -U postgres -d {MAIL}"


def _examine_version(settings: Settings, connection: psycopg.Connection) -> Iterator[Finding]:
    if settings.pg_dsn:
        return
    program = str(find_bindir() / "postgres")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    running = read_server_version(connection)
    if running not in said.split():
        where = f"PostgreSQL {running} runs, {said.strip()} is installed"
        remedy = "mail-assets down && mail-assets up"
        yield Finding("the server is of another version", where, remedy)


def _examine_dagster(settings: Settings) -> Iterator[Finding]:
    """Find out if Dagster's storage does not answer, else find the faults of its history."""
    try:
        yield from _examine_history(settings)
    except DagsterStorageError as error:
        own = "start that server, or set DAGSTER_POSTGRES_URL as it is; unset: the embedded server"
        remedy = own if settings.dagster_url else "mail-assets down && mail-assets up"
        yield Finding("Dagster does not reach its history", str(error), remedy)


def _examine_history(settings: Settings) -> Iterator[Finding]:
    """Find months whose last run failed, runs of killed processes, and many runs to prune."""
    now = dt.datetime.now(dt.UTC)
    with open_instance(settings) as instance:
        failed = failed_months(instance, [*settings.lists], now)
        there = {month: one for month, one in failed.items() if _has_month(settings, month)}
        yield from _examine_failed(instance, there)
        for run in abandoned_runs(instance):
            yield Finding("the process of a run was killed", f"run {run.run_id}", BACKFILL)
        try:
            before = now - dt.timedelta(days=KEEP_DAYS + LATE_DAYS)
            count = count_prunable_runs(instance, before, MANY_RUNS)
        except HistoryError:
            return  # another storage than ours: it cannot be pruned
        if count >= MANY_RUNS:
            where = f"Dagster: {count} runs or more before {before:%Y-%m-%d}"
            yield Finding("history that nothing needs", where, "mail-assets prune")


def _examine_failed(
    instance: dg.DagsterInstance, failed: Mapping[ListMonth, Failures]
) -> Iterator[Finding]:
    reasons = {
        run_id: {one.subject: one.reason for one in read_failures(instance, run_id)}
        for run_id in {one.last_run for one in failed.values()}
    }

    def reason_of(month: ListMonth) -> str:
        return reasons[failed[month].last_run].get(str(month), "")

    def kind(month: ListMonth) -> tuple[str, str, str]:
        reason = reason_of(month)
        which = "a check of " if reason.startswith(CHECK) else ""
        problem = REFUSED if REMEDY in reason else f"{which}the last run has failed"
        return month.list_name, problem, find_rebuild(reason)

    for (name, problem, _), some in groupby(sorted(failed), kind):
        months = [*some]
        where, _ = span(name, months)
        yield Finding(problem, where, find_command(months, reason_of(months[0])))


def _has_month(settings: Settings, month: ListMonth) -> bool:
    last = settings.last_month or month.month
    return month.list_name in settings.lists and settings.first_month <= month.month <= last


def _filled_index(settings: Settings, connection: psycopg.Connection) -> str:
    """Return the name in the manifest of the index that runs fill, "" if another is live."""
    name = index_name(settings.encoder, settings.precision)
    live = live_index(connection, settings.vectors)
    return manifest_name(settings.vectors, name) if live and live.name == name else ""


def _examine_indexes(settings: Settings, connection: psycopg.Connection) -> Iterator[Finding]:
    configured = index_name(settings.encoder, settings.precision)
    try:
        bucket = open_vectors_bucket(settings.database, settings.vectors)
        yield from examine_vectors(connection, bucket, configured)
    except UnavailableError as error:
        yield not_examined(f"indexes in {settings.vectors}", error)
    try:
        words = open_mail_words(settings.words)
        yield from examine_words(connection, open_words_bucket(settings.words), words)
    except UnavailableError as error:
        yield not_examined(f"indexes in {settings.words}", error)


def _examine_deep(
    settings: Settings, connection: psycopg.Connection, report: Callable[[str], None]
) -> Iterator[Finding]:
    """Find damage: rows, files and index entries that differ from what was recorded."""
    workspace = Workspace(connection, open_store(settings.store), report, settings.forget_key)
    has_month = partial(_has_month, settings)
    indexes, unopened = open_indexes(
        connection,
        open_mail_words(settings.words),
        open_vectors_bucket(settings.database, settings.vectors),
        settings.encoder,
        settings.precision,
    )
    yield from unopened
    yield from examine_damage(workspace, has_month, settings.lists, indexes, psql_command(settings))


def _examine_encoder(settings: Settings, connection: psycopg.Connection) -> Iterator[Finding]:
    """Find a local encoder that makes other vectors now; searches and runs check remote ones."""
    fingerprint = compute_fingerprint(settings.encoder, settings.precision)
    is_local = not settings.encoder.startswith(REMOTE_SCHEME)
    if is_local and read_probe(connection, fingerprint) is not None:
        encoder = open_encoder(
            settings.encoder, settings.precision, settings.model_cache, settings.provider
        )
        yield from examine_encoder(connection, encoder)
