"""Every table is saved by a backup or made again, as documented."""

import re
import shutil
from pathlib import Path

import psycopg
import pytest

from mail_assets.postgres.dumps import dump_database, restore_database
from mail_assets.postgres.statements import SQL, migrate, migrations
from mail_assets.sql_functions import install_functions
from mail_assets.tables.kept_rows import (
    KEPT,
    REMADE,
    KeptRowsError,
    clear_tables,
    export_rows,
    find_migration,
    merge_rows,
    table_exists,
)
from mail_assets_tests.conftest import REPOSITORY


@pytest.fixture
def migration(tmp_path: Path) -> Path:
    folder = tmp_path / "sql"
    folder.mkdir()
    shutil.copy(SQL / "schema.sql", folder)
    (folder / "001_note.sql").write_text("alter table removals add note text not null default ''")
    return folder


def tables(connection: psycopg.Connection) -> set[str]:
    query = "select tablename from pg_tables where schemaname = 'public'"
    return {name for (name,) in connection.execute(query).fetchall()}


def test_each_table_is_kept_or_made_again(migrated: psycopg.Connection) -> None:
    assert tables(migrated) == KEPT.keys() | REMADE.keys()
    assert KEPT.keys() & REMADE.keys() == {"partitions", "thread_aliases"}, "some of their rows"


def test_only_tables_of_the_first_schema_exist(migrated: psycopg.Connection) -> None:
    assert table_exists(migrated, "removals")
    migrated.execute("create schema trial; set search_path = trial, public")
    assert not table_exists(migrated, "removals")


def test_documentation_has_each_kept_table_once() -> None:
    text = (REPOSITORY / "docs" / "operations.md").read_text()
    table = text.partition("| table in a backup |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", "\n".join(rows))) == sorted(KEPT)


def test_earlier_rows_are_migrated(postgres_dsn: str, migration: Path, tmp_path: Path) -> None:
    with psycopg.connect(postgres_dsn, autocommit=True) as earlier:
        assert len(migrate(earlier, migration, until=0)) == 1
        assert find_migration(earlier) == 0
        earlier.execute("insert into removals values ('\\xaa', 'message', 'asked', 'jo')")
        assert export_rows(earlier, "removals", tmp_path / "removals.csv") == 1
        earlier.execute("delete from removals")
        with earlier.transaction():
            assert merge_rows(earlier, "removals", tmp_path / "removals.csv") == 1
        assert [one.number for one in migrate(earlier, migration)] == [1]
        assert find_migration(earlier) == 1
        assert earlier.execute("select reason, note from removals").fetchall() == [("asked", "")]
        with earlier.transaction(), pytest.raises(KeptRowsError, match="table removals"):
            merge_rows(earlier, "removals", tmp_path / "removals.csv")


def test_existing_rows_are_not_doubled(migrated: psycopg.Connection, tmp_path: Path) -> None:
    migrated.execute("insert into promotions values ('lance:/x', 'mail2', null, false, '{}')")
    migrated.execute("insert into removals values ('\\xaa', 'message', 'asked', 'jo')")
    for table in ("promotions", "removals"):
        export_rows(migrated, table, tmp_path / table)
        with migrated.transaction():
            assert merge_rows(migrated, table, tmp_path / table) == 0
        assert migrated.execute(f"select count(*) from {table}".encode()).fetchone() == (1,)


#: Relations and functions of the schema, without those of extensions.
LEFT = """
select c.oid::regclass::text from pg_class c where c.relnamespace = 'public'::regnamespace
union all
select p.oid::regprocedure::text from pg_proc p
 where p.pronamespace = 'public'::regnamespace
   and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
"""


def test_clearing_drops_all_tables_and_functions(migrated: psycopg.Connection) -> None:
    migrated.execute(clear_tables().encode())
    assert migrated.execute(LEFT).fetchall() == []
    migrated.execute(clear_tables().encode())
    assert len(migrate(migrated)) == len(migrations())


def test_clearing_drops_public_views_but_no_others(migrated: psycopg.Connection) -> None:
    migrated.execute("create role web nologin")
    try:
        install_functions(migrated, {"harbor": "english"}, public="web")
        migrated.execute("create schema app; create view app.mine as select * from messages")
        with pytest.raises(psycopg.errors.DependentObjectsStillExist):
            migrated.execute(clear_tables().encode())
        migrated.execute("drop view app.mine")
        migrated.execute(clear_tables().encode())
        assert migrated.execute("select to_regclass('mail_public.messages')").fetchone() == (None,)
    finally:
        migrated.execute("drop owned by web; drop role web")


def test_dump_of_an_earlier_version_replaces_the_tables(
    migrated: psycopg.Connection, mail_dsn: str, postgres_dsn: str, migration: Path, tmp_path: Path
) -> None:
    migrate(migrated, migration)
    with psycopg.connect(postgres_dsn, autocommit=True) as earlier:
        migrate(earlier, migration, until=0)
        earlier.execute("insert into removals values ('\\xaa', 'message', 'asked', 'jo')")
    dump_database(postgres_dsn, tmp_path / "dump")
    restore_database(mail_dsn, tmp_path / "dump", clear_tables())
    assert find_migration(migrated) == 0
    assert [one.number for one in migrate(migrated, migration)] == [1]
    assert migrated.execute("select reason, note from removals").fetchall() == [("asked", "")]
