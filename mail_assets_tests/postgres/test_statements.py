"""Named statements are found, used and understood; migrations are applied once, in order."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import mail_assets
from mail_assets.forgetting.remove_list import LAST, MANIFESTS, TABLES
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import SQL, MigrationError, migrate, migrations, statement
from mail_assets.search.filters import MessageFilter, read_condition
from mail_assets.tables import checks
from mail_assets.tables.checks import statement_name
from mail_assets.tables.kept_rows import KEPT
from mail_assets.tables.removed_messages import HIDE_STATEMENTS
from mail_assets_tests.waits import LONG

FILES = sorted(
    path.stem for path in SQL.glob("*.sql") if not re.match(r"schema\.|\d{3}_", path.name)
)
PACKAGE = Path(mail_assets.__file__).parent

#: Of a whole list, by one function.
DAMAGE = (
    "messages", "entries", "quarantined", "removed", "wrong_senders", "wrong_archives", "chunks",
    "patches", "commits",
)  # fmt: skip

STAGED = ("messages", "threads", "chunks", "patches", "commits", "commit_links")
#: What EXPLAIN takes, after the comments.
PLANNED = re.compile(r"(--.*\n)*\(?(select|insert|update|delete|with)\b")
#: Values for parameters that are looked up while planning; null does for the others.
EXAMPLES = {"table": "messages", "language": "simple"}


def names(file: str) -> list[str]:
    text = (SQL / f"{file}.sql").read_text(encoding="utf-8")
    return re.findall(r"^-- name: (\w+)$", text, re.MULTILINE)


def texts(file: str) -> list[tuple[str, str]]:
    """Return the names and texts of a file's statements, those of manifests for both."""
    found = []
    for name in names(file):
        text = statement(file, name)
        for table in ("vectors", "words") if "{manifest}" in text else ("",):
            asset = sql.Literal(table).as_string()
            found.append((name, text.replace("{manifest}", table).replace("{asset}", asset)))
    return found


def test_statement_ends_where_the_next_begins() -> None:
    assert statement("threads", "snapshot").endswith("isolation level repeatable read")


def test_unknown_statement_is_named() -> None:
    with pytest.raises(KeyError, match=r"sql/threads\.sql has no statement named nothing"):
        statement("threads", "nothing")


@pytest.mark.parametrize("file", FILES)
def test_names_are_unique_in_a_file(file: str) -> None:
    assert len(names(file)) == len(set(names(file))) > 0


def calls() -> set[tuple[str, str]]:
    """Return the (file, name) of every call of `statement` in the package; "*" is a variable."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="statement"), args=[file, name]):
                    found.add((_constant(file), _constant(name)))
                case ast.Call(func=ast.Attribute(attr="statement"), args=[name]):
                    if path.parent.name == "search":  # MessageFilter.statement
                        found.add(("search", _constant(name)))
    return found


def _constant(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else "*"


MANIFEST_STATEMENTS = (
    *("read_keys", "mark_intended", "mark_written", "mark_lost", "drop_keys", "remove_keys"),
    *("count_keys", "count_by_month", "complete_vectors", "complete_words"),
)

#: What is asked of a backup by one function, and of each of its tables by another.
BACKUP_STATEMENTS = (*KEPT, *("stage", "merge", "index_again", "forget_index_states"))


CHECK_FIGURES = {one for one in vars(checks).values() if hasattr(one, "_fields")} - {ListMonth}

#: Statements of patch_series whose names stand in variables.
SERIES_STATEMENTS = (
    *("before", "after", "copy", "copy_outcomes", "copy_keys"),
    *("discard_rows", "hide_in_rows", "discard_outcomes", "hide_in_outcomes"),
)


def test_statements_are_used_and_exist() -> None:
    written = {(file, name) for file in FILES for name in names(file)}
    used = {(file, name) for file, name in calls() if "*" not in (file, name)}
    assert used <= written
    manifests = {"vectors", "words"}
    by_variable = {
        *(("browsing", name) for name in ("rows_recorded", "rows_mbox_archives")),
        *(("indexes", name) for name in MANIFEST_STATEMENTS),
        *(("reconcile", f"{what}_{one}") for what in ("expect", "intend") for one in manifests),
        *(("search", name) for name in ("newest", "by_id", "page_copies", "page_chunks")),
        *(("kept_rows", name) for name in BACKUP_STATEMENTS),
        *(("filters", name) for name in names("filters")),  # put together by search/filters.py
        *(("checks", statement_name(one)) for one in CHECK_FIGURES),
        *(("damage", name) for name in DAMAGE),
        *(("removed_messages", name) for name in HIDE_STATEMENTS),
        *(("patch_series", name) for name in SERIES_STATEMENTS),
        *(("commit_links", f"commits_of_{asset}") for asset in ("month", "patches", "messages")),
        *(("remove_list", f"delete_{table}") for table in TABLES),
        *(("remove_list", name) for name in (*MANIFESTS, *LAST)),
        *(("exports", name) for name in ("newest", "newest_of_list", "newest_of_month")),
    }
    assert written - used == by_variable


#: COPY, and what makes the staging tables or sets something: the tests of their modules run them.
UNPLANNED = (
    *("stage", "copy", "analyze_stage", "snapshot", "analyze", "give_up_early"),
    *("create_extensions", "copy_entries", "copy_outcomes", "copy_keys", "create_model"),
)

# reconcile stages one table out of another, functions has a table of its own, kept_rows takes the
# names of tables, event_log asks Dagster's database; their own tests run every statement
APART = {"filters", "reconcile", "functions", "kept_rows", "event_log"}


@pytest.mark.parametrize("file", [file for file in FILES if file not in APART])
def test_postgres_understands_every_statement(migrated: psycopg.Connection, file: str) -> None:
    conditions = tuple(map(read_condition, names("filters")))
    every = MessageFilter(conditions, {})
    whole = [(name, every.statement(name)) for name in names(file)] if file == "search" else []
    for name, text in whole or texts(file):
        parameters = {key: EXAMPLES.get(key) for key in re.findall(r"%\((\w+)\)s", text)}
        with migrated.transaction(force_rollback=True):
            for table in STAGED:
                migrated.execute(statement(table, "stage"))
            if PLANNED.match(text):
                migrated.execute(sql.SQL("explain {}").format(sql.SQL(text)), parameters or None)
            else:
                assert name in UNPLANNED


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


def test_schema_comes_before_the_migrations() -> None:
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


@pytest.mark.parametrize(("change", "reason"), [
    (("schema", "create table first ();"), r"sql/schema\.sql was changed after it was applied"),
    (("001_first", "create table first (n bigint);"), r"sql/001_first\.sql was changed"),
    (("001_first", "create table first (n integer); "), r"sql/001_first\.sql was changed"),
    (("004_late", "select 1"), "without gaps"),
    (("002_twice", "select 1"), "without gaps"),
    (("000_none", "select 1"), "without gaps"),
])  # fmt: skip
def test_files_that_do_not_fit_the_database_are_refused(
    connection: psycopg.Connection, folder: Path, change: tuple[str, str], reason: str
) -> None:
    migrate(connection, folder)
    before = tables(connection)
    write(folder, *change)
    with pytest.raises(MigrationError, match=reason):
        migrate(connection, folder)
    assert tables(connection) == before


def test_newer_database_is_refused(connection: psycopg.Connection, folder: Path) -> None:
    migrate(connection, folder)
    (folder / "002_second.sql").unlink()
    with pytest.raises(MigrationError, match=r"has migration 2, .* knows 1: update mail_assets"):
        migrate(connection, folder)


def test_version_0_1_must_be_filled_again(connection: psycopg.Connection, folder: Path) -> None:
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


def test_failing_migration_leaves_nothing(connection: psycopg.Connection, folder: Path) -> None:
    write(folder, "003_wrong", "create table fourth (); select 1 / 0")
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(connection, folder)
    assert tables(connection) == set()
    write(folder, "003_wrong", "create table fourth ()")
    assert len(migrate(connection, folder)) == 4


def test_user_who_may_only_read_can_connect(connection: psycopg.Connection, folder: Path) -> None:
    migrate(connection, folder)
    connection.execute("set default_transaction_read_only = on")
    assert migrate(connection, folder) == []
    write(folder, "003_more", "create table more ()")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        migrate(connection, folder)


#: The table of migrations of another program.
RAILS = "create table public.schema_migrations (version varchar primary key)"


@pytest.mark.parametrize(("installed", "foreign", "path", "reason"), [
    ("public", "", "trial, public", r"in the schema public, and trial comes .*public.*trial"),
    ("trial", "", '"$user", public, trial', r"in the schema trial, and public comes before it"),
    ("", RAILS, "public", rf"public has the migrations of another .*{OWN_SCHEMA}"),
    ("trial", RAILS, "public, trial", r"public has the migrations of another program"),
    ("public", "", "missing, none", r"no schema that exists .*create schema mail_assets"),
    ("public", "", "", r"no schema that exists"),
])  # fmt: skip
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
