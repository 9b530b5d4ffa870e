"""Migrations: applied once, in order, by whoever comes first, wholly or not at all."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mail_assets.postgres.migrations import MigrationError, migrate, migrations
from mail_assets.postgres.statements import SQL
from mail_assets_tests.waits import LONG

#: Waits until the other is there too, migrates argv[1] with the files of argv[2].
MIGRATOR = """
import sys
from pathlib import Path
import psycopg
from mail_assets.postgres.migrations import migrate

with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    connection.execute("select pg_advisory_lock_shared(1)")
    print(len(migrate(connection, Path(sys.argv[2]))))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sql").mkdir()
    write(tmp_path / "sql", "001_first", "create table first (n integer);")
    write(tmp_path / "sql", "002_second", "-- 100 %\ncreate table second (); create table third ()")
    write(tmp_path / "sql", "named", "-- name: nothing\nselect 1")
    return tmp_path / "sql"


@pytest.fixture
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        yield connection


def write(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.sql").write_text(text, encoding="utf-8")


def tables(connection: psycopg.Connection) -> set[str]:
    rows = connection.execute("select relname from pg_stat_user_tables").fetchall()
    return {name for (name,) in rows}


ALL = {"schema_migrations", "first", "second", "third"}


def test_the_projects_own_migrations_are_in_order() -> None:
    assert [m.number for m in migrations()] == [*range(1, len(migrations()) + 1)]
    assert {m.name for m in migrations()} == {p.stem[4:] for p in SQL.glob("[0-9][0-9][0-9]_*.sql")}


def test_migrations_are_applied_once(connection: psycopg.Connection, folder: Path) -> None:
    assert [m.name for m in migrate(connection, folder)] == ["first", "second"]
    assert tables(connection) == ALL
    connection.execute("insert into first values (1)")
    assert migrate(connection, folder) == []
    assert connection.execute("select n from first").fetchall() == [(1,)]


def test_only_what_is_missing_is_applied(connection: psycopg.Connection, folder: Path) -> None:
    migrate(connection, folder)
    write(folder, "003_more", "alter table first add m integer")
    assert [m.number for m in migrate(connection, folder)] == [3]
    rows = connection.execute("select number, name from schema_migrations order by 1").fetchall()
    assert rows == [(1, "first"), (2, "second"), (3, "more")]


def test_processes_that_migrate_at_once_do_it_once(
    connection: psycopg.Connection, postgres_dsn: str, folder: Path
) -> None:
    write(folder, "003_slow", "select pg_sleep(0.5); create table slow ()")
    connection.execute("select pg_advisory_lock(1)")  # until all of them wait
    command = [sys.executable, "-c", MIGRATOR, postgres_dsn, str(folder)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    while connection.execute(waiting).fetchone() != (3,):
        assert all(process.poll() is None for process in processes)
    connection.execute("select pg_advisory_unlock(1)")
    done = sorted(process.communicate(timeout=LONG)[0].strip() for process in processes)
    assert done == ["0", "0", "3"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("001_first", "create table first (n bigint);"), r"sql/001_first\.sql was changed"),
        (("001_first", "create table first (n integer); "), r"sql/001_first\.sql was changed"),
        (("004_late", "select 1"), "without gaps"),
        (("002_twice", "select 1"), "without gaps"),
        (("000_none", "select 1"), "without gaps"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    connection: psycopg.Connection, folder: Path, change: tuple[str, str], reason: str
) -> None:
    migrate(connection, folder)
    write(folder, *change)
    with pytest.raises(MigrationError, match=reason):
        migrate(connection, folder)
    assert tables(connection) == ALL


def test_a_newer_database_is_refused(connection: psycopg.Connection, folder: Path) -> None:
    migrate(connection, folder)
    (folder / "002_second.sql").unlink()
    with pytest.raises(MigrationError, match=r"has migration 2, .* knows 1: update mail_assets"):
        migrate(connection, folder)


def test_a_failing_migration_leaves_nothing_behind(
    connection: psycopg.Connection, folder: Path
) -> None:
    write(folder, "003_wrong", "create table fourth (); select 1 / 0")
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(connection, folder)
    assert tables(connection) == set()
    write(folder, "003_wrong", "create table fourth ()")
    assert len(migrate(connection, folder)) == 3


def test_a_user_who_may_only_read_is_let_in(connection: psycopg.Connection, folder: Path) -> None:
    migrate(connection, folder)
    connection.execute("set default_transaction_read_only = on")
    assert migrate(connection, folder) == []
    write(folder, "003_more", "create table more ()")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        migrate(connection, folder)


#: How another program's table of migrations looks.
RAILS = "create table public.schema_migrations (version varchar primary key)"


@pytest.mark.parametrize(
    ("installed", "foreign", "path", "reason"),
    [
        ("public", "", "trial, public", r"in the schema public, and trial comes .*public.*trial"),
        ("trial", "", '"$user", public, trial', r"in the schema trial, and public comes before it"),
        ("", RAILS, "public", r"public has the migrations of another .*create schema mail_assets"),
        ("trial", RAILS, "public, trial", r"public has the migrations of another program"),
        ("public", "", "missing, none", r"no schema that exists .*create schema mail_assets"),
        ("public", "", "", r"no schema that exists"),
    ],
)
def test_only_the_first_schema_of_the_search_path_is_migrated_and_used(
    connection: psycopg.Connection,
    folder: Path,
    installed: str,
    foreign: str,
    path: str,
    reason: str,
) -> None:
    connection.execute("create schema trial")
    if foreign:
        connection.execute(foreign.encode())
    if installed:
        connection.execute(f"set search_path = {installed}".encode())
        migrate(connection, folder)
    before = tables(connection)
    connection.execute("select set_config('search_path', %s, false)", (path,))
    with pytest.raises(MigrationError, match=reason):
        migrate(connection, folder)
    assert tables(connection) == before


def test_a_schema_of_its_own_is_not_disturbed_by_what_is_behind_it(
    connection: psycopg.Connection,
) -> None:
    connection.execute("create table messages (body text)")
    connection.execute(RAILS)
    connection.execute("create schema mail_assets; set search_path = mail_assets, public")
    assert migrate(connection) == migrations()
    assert migrate(connection) == []
    foreign = connection.execute(
        "select tablename from pg_tables where schemaname = 'public' order by 1"
    ).fetchall()
    assert foreign == [("messages",), ("schema_migrations",)]


def test_two_installations_in_one_database_each_have_their_own_tables(
    connection: psycopg.Connection,
) -> None:
    connection.execute("create schema trial; set search_path = public")
    migrate(connection)
    connection.execute("set search_path = trial")
    assert migrate(connection) == migrations()
    connection.execute("set search_path = trial, public")
    assert migrate(connection) == []


def test_trigrams_are_used_wherever_their_extension_is(connection: psycopg.Connection) -> None:
    connection.execute("create schema extensions; create extension pg_trgm schema extensions")
    connection.execute("create schema mail_assets; set search_path = mail_assets")
    migrate(connection)
    assert connection.execute("show search_path").fetchone() == ("mail_assets",)
    for way in ("seqscan", "indexscan", "indexonlyscan"):  # of a table without rows
        connection.execute(f"set enable_{way} = off".encode())
    part = "like like_pattern('lease')"
    for condition, index in (
        (f"messages where lower(subject) {part}", "messages_subject"),
        (f"messages where join_receivers(recipients, cc) {part}", "messages_receivers"),
        (f"senders where person {part}", "senders_person"),
    ):
        plan = connection.execute(f"explain select from {condition}".encode()).fetchall()
        assert index in str(plan), plan
