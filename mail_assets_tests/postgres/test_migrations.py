"""The schema and migrations are applied once, in order, in one transaction."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mail_assets.postgres.statements import SQL, MigrationError, migrate, migrations
from mail_assets_tests.waits import LONG

#: Waits until the others wait too, then migrates argv[1] with the files of argv[2].
MIGRATOR = """
import sys
from pathlib import Path
import psycopg
from mail_assets.postgres.statements import migrate

with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    connection.execute("select pg_advisory_lock_shared(1)")
    print(len(migrate(connection, Path(sys.argv[2]))))
"""

OWN_SCHEMA = r"create schema mail_assets\) and name it first in MAIL_PG_DSN"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the schema and two made-up migrations."""
    folder = tmp_path / "sql"
    folder.mkdir()
    shutil.copy(SQL / "schema.sql", folder)
    write(folder, "001_first", "create table first (n integer);")
    write(folder, "002_second", "-- 100 %\ncreate table second (); create table third ()")
    write(folder, "named", "-- name: nothing\nselect 1")
    return folder


@pytest.fixture
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        yield connection


def write(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.sql").write_text(text, encoding="utf-8")


def tables(connection: psycopg.Connection) -> set[str]:
    rows = connection.execute("select relname from pg_stat_user_tables").fetchall()
    return {name for (name,) in rows}


def test_the_schema_comes_before_the_migrations() -> None:
    numbered = sorted(path.stem for path in SQL.glob("[0-9][0-9][0-9]_*.sql"))
    found = migrations()
    assert [m.number for m in found] == [*range(len(numbered) + 1)]
    assert [m.name for m in found] == ["schema", *(name[4:] for name in numbered)]


def test_migrations_are_applied_once(connection: psycopg.Connection, folder: Path) -> None:
    assert [m.name for m in migrate(connection, folder)] == ["schema", "first", "second"]
    assert tables(connection) >= {"schema_migrations", "messages", "first", "second", "third"}
    connection.execute("insert into first values (1)")
    assert migrate(connection, folder) == []
    assert connection.execute("select n from first").fetchall() == [(1,)]


def test_only_missing_migrations_are_applied(connection: psycopg.Connection, folder: Path) -> None:
    assert [m.number for m in migrate(connection, folder, until=1)] == [0, 1]
    write(folder, "003_more", "alter table first add m integer")
    assert [m.number for m in migrate(connection, folder)] == [2, 3]
    rows = connection.execute("select number, name from schema_migrations order by 1").fetchall()
    assert rows == [(0, "schema"), (1, "first"), (2, "second"), (3, "more")]


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
    assert done == ["0", "0", "4"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("schema", "create table first ();"), r"sql/schema\.sql was changed after it was applied"),
        (("001_first", "create table first (n bigint);"), r"sql/001_first\.sql was changed"),
        (("001_first", "create table first (n integer); "), r"sql/001_first\.sql was changed"),
        (("004_late", "select 1"), "without gaps"),
        (("002_twice", "select 1"), "without gaps"),
        (("000_none", "select 1"), "without gaps"),
    ],
)
def test_files_that_do_not_fit_the_database_are_refused(
    connection: psycopg.Connection, folder: Path, change: tuple[str, str], reason: str
) -> None:
    migrate(connection, folder)
    before = tables(connection)
    write(folder, *change)
    with pytest.raises(MigrationError, match=reason):
        migrate(connection, folder)
    assert tables(connection) == before


def test_a_newer_database_is_refused(connection: psycopg.Connection, folder: Path) -> None:
    migrate(connection, folder)
    (folder / "002_second.sql").unlink()
    with pytest.raises(MigrationError, match=r"has migration 2, .* knows 1: update mail_assets"):
        migrate(connection, folder)


def test_a_database_of_version_0_1_must_be_filled_again(
    connection: psycopg.Connection, folder: Path
) -> None:
    connection.execute(
        "create table schema_migrations (number integer, name text, sha256 text);"
        "insert into schema_migrations values (1, 'mail', 'a'), (2, 'conversations', 'b')"
    )
    remedy = r"fill it again: `mail-assets down --delete-data` and `mail-assets backfill`, or"
    with pytest.raises(MigrationError, match=remedy) as refused:
        migrate(connection, folder)
    assert "\n" not in str(refused.value)
    assert tables(connection) == {"schema_migrations"}


def test_tables_of_another_program_are_not_touched(connection: psycopg.Connection) -> None:
    connection.execute("create table messages (body text)")
    with pytest.raises(MigrationError, match=rf'"messages" already exists; .*{OWN_SCHEMA}'):
        migrate(connection)
    assert tables(connection) == {"messages"}


def test_a_failing_migration_leaves_nothing(connection: psycopg.Connection, folder: Path) -> None:
    write(folder, "003_wrong", "create table fourth (); select 1 / 0")
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(connection, folder)
    assert tables(connection) == set()
    write(folder, "003_wrong", "create table fourth ()")
    assert len(migrate(connection, folder)) == 4


def test_a_user_who_may_only_read_can_connect(connection: psycopg.Connection, folder: Path) -> None:
    migrate(connection, folder)
    connection.execute("set default_transaction_read_only = on")
    assert migrate(connection, folder) == []
    write(folder, "003_more", "create table more ()")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        migrate(connection, folder)


#: The table of migrations of another program.
RAILS = "create table public.schema_migrations (version varchar primary key)"


@pytest.mark.parametrize(
    ("installed", "foreign", "path", "reason"),
    [
        ("public", "", "trial, public", r"in the schema public, and trial comes .*public.*trial"),
        ("trial", "", '"$user", public, trial', r"in the schema trial, and public comes before it"),
        ("", RAILS, "public", rf"public has the migrations of another .*{OWN_SCHEMA}"),
        ("trial", RAILS, "public, trial", r"public has the migrations of another program"),
        ("public", "", "missing, none", r"no schema that exists .*create schema mail_assets"),
        ("public", "", "", r"no schema that exists"),
    ],
)
def test_only_the_first_schema_of_the_path_is_used(
    connection: psycopg.Connection, installed: str, foreign: str, path: str, reason: str
) -> None:
    connection.execute("create schema trial")
    if foreign:
        connection.execute(foreign.encode())
    if installed:
        connection.execute(f"set search_path = {installed}".encode())
        migrate(connection)
    before = tables(connection)
    connection.execute("select set_config('search_path', %s, false)", (path,))
    with pytest.raises(MigrationError, match=reason):
        migrate(connection)
    assert tables(connection) == before


def test_tables_in_later_schemas_do_not_matter(connection: psycopg.Connection) -> None:
    connection.execute("create table messages (body text)")
    connection.execute(RAILS)
    connection.execute("create schema mail_assets; set search_path = mail_assets, public")
    assert migrate(connection) == migrations()
    assert migrate(connection) == []
    foreign = connection.execute(
        "select tablename from pg_tables where schemaname = 'public' order by 1"
    ).fetchall()
    assert foreign == [("messages",), ("schema_migrations",)]


def test_two_installations_share_a_database(connection: psycopg.Connection) -> None:
    connection.execute("create schema trial; set search_path = public")
    migrate(connection)
    connection.execute("set search_path = trial")
    assert migrate(connection) == migrations()
    connection.execute("set search_path = trial, public")
    assert migrate(connection) == []


def test_trigrams_are_found_in_another_schema(connection: psycopg.Connection) -> None:
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
