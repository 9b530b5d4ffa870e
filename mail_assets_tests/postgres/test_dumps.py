"""A restore replaces the schema of a dump, whole or not at all, and no other."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from mail_assets.postgres.dumps import _execute, dump_database, find_distinct, restore_database
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.programs import PostgresError, find_bindir
from mail_assets_tests.databases import drop_database, new_database

OF_THEN = """
create table harbors (name text);
insert into harbors select 'then ' || n from generate_series(1, 20000) as n;
create schema app;
create table app.orders (name text);
insert into app.orders values ('then')
"""
OF_NOW = """
create table harbors (name text);
insert into harbors values ('now');
create schema app;
create table app.orders (name text);
insert into app.orders values ('now')
"""
THEN, NOW = (20_000, "then 1"), (1, "now")


@pytest.fixture
def then(cluster: Cluster) -> Iterator[str]:
    """A database with a table in the first schema of the search path, and one in another."""
    dsn = new_database(cluster)
    execute(dsn, OF_THEN)
    yield dsn
    drop_database(cluster, dsn)


@pytest.fixture
def now(postgres_dsn: str) -> str:
    """Another with the same tables."""
    execute(postgres_dsn, OF_NOW)
    return postgres_dsn


def execute(dsn: str, text: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(text.encode())


def rows(dsn: str, table: str) -> tuple[int, str]:
    with psycopg.connect(dsn) as connection:
        query = f"select count(*), min(name) from {table}"
        return connection.execute(query.encode()).fetchone() or (0, "")


def dump_whole(dsn: str, file: Path) -> None:
    dump = [str(find_bindir() / "pg_dump"), f"--dbname={dsn}", "--format=custom", f"--file={file}"]
    subprocess.run(dump, check=True)


@pytest.mark.parametrize("dump", [dump_database, dump_whole], ids=["schema", "whole"])
def test_other_schemas_stay_as_they_are(
    then: str, now: str, tmp_path: Path, dump: Callable[[str, Path], None]
) -> None:
    dump(then, tmp_path / "dump")
    restore_database(now, tmp_path / "dump")
    assert (rows(now, "harbors"), rows(now, "app.orders")) == (THEN, NOW)


def test_dump_has_no_row_of_other_schemas(then: str, tmp_path: Path) -> None:
    """Whose tables a role may not read at all."""
    execute(then, "create role dumper login; grant select on harbors to dumper")
    try:
        dump_database(make_conninfo(then, user="dumper"), tmp_path / "dump")
    finally:
        execute(then, "drop owned by dumper; drop role dumper")


def test_tables_left_out_stay(then: str, now: str, tmp_path: Path) -> None:
    for dsn, mark in ((then, "then"), (now, "now")):
        execute(dsn, f"create table mine (name text); insert into mine values ('{mark}')")
    dump_database(then, tmp_path / "dump", without=["mine"])
    restore_database(now, tmp_path / "dump")
    assert (rows(now, "harbors"), rows(now, "mine")) == (THEN, NOW)


def test_failed_restore_changes_nothing(then: str, now: str, tmp_path: Path) -> None:
    dump_database(then, tmp_path / "dump")
    execute(now, "create view app.ours as select * from harbors")
    with pytest.raises(PostgresError, match=r"view app\.ours depends on table"):
        restore_database(now, tmp_path / "dump", "insert into app.orders values ('later')")
    assert (rows(now, "harbors"), rows(now, "app.orders")) == (NOW, NOW)


def test_half_a_dump_changes_nothing(then: str, now: str, tmp_path: Path) -> None:
    dump_database(then, tmp_path / "dump")
    whole = (tmp_path / "dump").read_bytes()
    (tmp_path / "dump").write_bytes(whole[: len(whole) - 10_000])
    with pytest.raises(PostgresError, match="pg_restore: error"):
        restore_database(now, tmp_path / "dump")
    assert rows(now, "harbors") == NOW


def test_missing_dump_commits_nothing(now: str, tmp_path: Path) -> None:
    begin = "begin;\ninsert into harbors values ('later');\n"
    with pytest.raises(PostgresError, match="could not open input file"):
        _execute(now, begin, [str(tmp_path / "none")])
    assert rows(now, "harbors") == NOW


def test_dump_needs_its_schema(then: str, now: str, tmp_path: Path) -> None:
    dump_database(then, tmp_path / "dump")
    other = make_conninfo(now, options="-csearch_path=app")
    with pytest.raises(PostgresError, match="no table of the schema app: create the schema that"):
        restore_database(other, tmp_path / "dump")
    assert (rows(now, "harbors"), rows(now, "app.orders")) == (NOW, NOW)


def test_one_place_is_found_once(then: str, now: str) -> None:
    again = make_conninfo(then, application_name="again")
    other = make_conninfo(then, options="-csearch_path=app")
    databases = {"mail": then, "again": again, "other": other, "now": now}
    assert find_distinct(databases) == {"mail": then, "other": other, "now": now}
