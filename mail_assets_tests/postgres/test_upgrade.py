"""A database of an earlier version is taken over: its rows stay, and nothing is made again."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.types.json import Jsonb

from mail_assets.mail.threads.tree import build_trees
from mail_assets.month import ListMonth
from mail_assets.postgres.migrations import migrate
from mail_assets.postgres.statements import SQL
from mail_assets.steps.build_threads import THREADS_VERSION, build_threads
from mail_assets.steps.summarize_threads import summarize_threads
from mail_assets.summaries.maker import ExtractiveMaker
from mail_assets.tables.mbox_archives import read_archive, read_entries
from mail_assets.tables.messages import show_message
from mail_assets.tables.partitions import State, read_state
from mail_assets.tables.removed_messages import removed_months
from mail_assets.tables.thread_summaries import read_contents
from mail_assets.tables.threads import CORPUS, Threads, read_references, replace_threads


@pytest.fixture
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        yield connection


def migrate_to(connection: psycopg.Connection, number: int, folder: Path) -> None:
    """Make the database one of the version that had `number` migrations."""
    for path in sorted(SQL.glob("[0-9][0-9][0-9]_*.sql"))[:number]:
        shutil.copy(path, folder)
    assert len(migrate(connection, folder)) == number


def insert_message(
    connection: psycopg.Connection, name: str, ordinal: int, parent: str | None = None
) -> None:
    """Insert a row of messages as it was when it held its place in the archive."""
    connection.execute(
        "insert into messages values ('dev', '2024-03', %s, 0, 'content', 'row', %s, %s, 90, now(),"
        " 'date', '', 'Leases', 'Leases', 'Jo', 'jo@example.org', '{}', '{}', '{}', %s, '{}', '',"
        " 'plain', 'Body.', '[]', '[]', '{}', '{}', '')",
        (name, ordinal, 100 * ordinal, [parent] if parent else []),
    )


def archive_message(
    connection: psycopg.Connection, name: str, attachments: list[dict[str, bool]]
) -> None:
    """Insert a row of messages as it is since it has no place in the archive of its own."""
    connection.execute(
        "insert into messages values ('dev', '2024-03', %s, 0, 'content', 'row', now(), 'date', '',"
        " 'Leases', 'Leases', 'Jo', 'jo@example.org', '{}', '{}', '{}', '{}', '{}', '', 'plain',"
        " 'The lease is over.', '[[\"text\", 0, 18]]', %s, '{}', '{}', '')",
        (name, Jsonb(attachments)),
    )


def places(connection: psycopg.Connection, table: str) -> list[tuple[str, str]]:
    """Return what changes with any write to a row."""
    query = f"select ctid::text, xmin::text from {table} order by ctid"
    return connection.execute(query.encode()).fetchall()


def test_the_state_of_the_threads_of_version_4_is_found_and_nothing_is_built_again(
    connection: psycopg.Connection, tmp_path: Path
) -> None:
    migrate_to(connection, 4, tmp_path)
    insert_message(connection, "1@example.org", 0)
    insert_message(connection, "2@example.org", 1, "1@example.org")
    with connection.transaction():
        threads = Threads(build_trees(read_references(connection)), {})
        digest = replace_threads(connection, Threads([], {}), threads, "").digest
        connection.execute("delete from thread_changes")
    state = State(THREADS_VERSION, digest, {"messages": 2, "threads": 1, "ghosts": 0})
    connection.execute(
        "insert into partitions values ('threads', '*', '*', %s, %s, %s)",
        (state.inputs, state.digest, Jsonb(state.counts)),
    )
    before = places(connection, "threads")

    assert migrate(connection)[0].number == 5
    assert read_state(connection, CORPUS) == state
    updated = places(connection, "partitions")
    outcome = build_threads(connection, lambda line: None)
    assert (outcome.changed, outcome.digest) == (False, digest)
    assert places(connection, "threads") == before
    assert places(connection, "partitions") == updated, "one row, and not written again"
    assert len(updated) == 1


def test_what_was_renamed_keeps_its_rows(connection: psycopg.Connection, tmp_path: Path) -> None:
    migrate_to(connection, 5, tmp_path)
    connection.execute("insert into removed values ('dev', '2024-03', 4, 'r', 'm', 'k')")
    connection.execute(
        "insert into mbox_archives (list, month, source, object) values"
        " ('dev', '2024-03', 'folder', 'archives/a')"
    )
    before = [places(connection, table) for table in ("removed", "mbox_archives")]
    migrate(connection)
    assert [places(connection, t) for t in ("removed_messages", "mbox_archives")] == before
    archive = read_archive(connection, ListMonth("dev", "2024-03"))
    assert archive is not None
    assert archive.object_key == "archives/a"
    assert removed_months(connection) == [ListMonth("dev", "2024-03")]


def test_places_in_the_archive_are_taken_over(
    connection: psycopg.Connection, tmp_path: Path
) -> None:
    migrate_to(connection, 10, tmp_path)
    insert_message(connection, "1@example.org", 0)
    insert_message(connection, "2@example.org", 2)
    connection.execute("insert into quarantine values ('dev', '2024-03', 1, 90, 10, 'bad', '1')")
    migrate(connection)
    entries = read_entries(connection, ListMonth("dev", "2024-03"))
    assert [(e.ordinal, e.offset, e.length, e.outcome, e.message_id) for e in entries] == [
        (0, 0, 90, "stored", "1@example.org"),
        (1, 90, 10, "quarantined", None),
        (2, 200, 90, "stored", "2@example.org"),
    ]
    (shown,) = show_message(connection, "2@example.org")
    assert (shown["archive_offset"], shown["archive_length"]) == (200, 90)


def test_summaries_of_version_25_stay_and_their_threads_are_what_they_were(
    connection: psycopg.Connection, tmp_path: Path
) -> None:
    migrate_to(connection, 25, tmp_path)
    archive_message(connection, "1@example.org", [])
    archive_message(connection, "2@example.org", [{"is_patch": False}])
    archive_message(connection, "3@example.org", [{"is_patch": True}])
    build_threads(connection, lambda line: None)
    summarize_threads(connection, ExtractiveMaker(), lambda line: None)
    threads = [f"{name}@example.org" for name in "123"]
    before = places(connection, "thread_summaries")
    contents = read_contents(connection, threads)

    assert migrate(connection)[0].number == 26
    assert not summarize_threads(connection, ExtractiveMaker(), lambda line: None).changed
    assert places(connection, "thread_summaries") == before
    now = read_contents(connection, threads)
    assert [now[x] == contents[x] for x in threads] == [True, True, False]
