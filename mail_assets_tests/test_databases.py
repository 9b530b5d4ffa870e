"""The database of a test is emptied and reused if only rows have changed."""

import psycopg
import pytest

from mail_assets_tests.databases import Databases

OID = "select oid from pg_database where datname = current_database()"


@pytest.mark.parametrize(
    ("change", "is_kept"),
    [
        ("insert into removals (digest, kind, reason, removed_by) values ('x', 'message', '', '')",
         True),
        ("create table other ()", False),
        ("create schema other", False),
        ("alter table messages alter subject set default 'x'", False),
        ("drop index former_archives_kept_until", False),
        ("grant select on removals to public", False),
        ("delete from schema_migrations", False),
        ("analyze removals", False),
    ],
)  # fmt: skip
def test_database_is_used_again_if_only_rows_changed(
    mail_databases: Databases, change: str, is_kept: bool
) -> None:
    dsn = mail_databases.take()
    with psycopg.connect(dsn) as connection:
        connection.execute(change.encode())
        before = connection.execute(OID).fetchone()
    mail_databases.give_back(dsn)
    again = mail_databases.take()
    with psycopg.connect(again) as connection:
        assert (connection.execute(OID).fetchone() == before) is is_kept
        assert connection.execute("select * from removals").fetchall() == []
    mail_databases.give_back(again)
