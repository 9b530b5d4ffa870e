"""A user's own server is refused if it does not fit or shows no rows."""

from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest

from mail_assets.postgres.database import Database, check_version
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.programs import PostgresError


@pytest.mark.parametrize(("version", "major"), [(140_012, 14), (90_624, 9)])
def test_an_older_server_is_refused_with_what_is_needed(version: int, major: int) -> None:
    wanted = f"MAIL_PG_DSN is PostgreSQL {major}; mail_assets needs 15 or later: upgrade it"
    with pytest.raises(PostgresError, match=wanted):
        check_version(version)


@pytest.mark.parametrize("version", [150_000, 150_020, 180_006])
def test_a_newer_server_is_taken(version: int) -> None:
    check_version(version)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_without_utf8_is_refused(
    cluster: Cluster, tmp_path: Path, encoding: str
) -> None:
    name = f"test_{encoding.lower()}"
    with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection:
        make = f"create database {name} encoding '{encoding}' locale 'C' template template0"
        connection.execute(make.encode())
        refusal = f"{name} of MAIL_PG_DSN has the encoding {encoding}.*: use one with UTF8"
        with pytest.raises(PostgresError, match=refusal):
            Database(tmp_path, cluster.dsn(name)).connect("test").__enter__()
        connection.execute(f"drop database {name} with (force)".encode())


CLOSED = [
    "alter table messages enable row level security",
    "alter table schema_migrations enable row level security",
]
READ = "create policy reads on {} for select to {} using (true)"


@pytest.mark.parametrize(
    ("changes", "hidden"),
    [
        ([], ""),
        (CLOSED, "messages and schema_migrations"),
        ([*CLOSED, READ.format("messages", "remote_reader")], "schema_migrations"),
        ([*CLOSED, READ.format("schema_migrations", "public")], "messages"),
        ([CLOSED[0], READ.format("messages", "remote_group")], ""),
        ([CLOSED[0], READ.format("messages", "pg_monitor")], "messages"),
        ([CLOSED[0], "create policy all_of_it on messages using (true)"], ""),
        ([CLOSED[0], "create policy adds on messages for insert with check (true)"], "messages"),
        ([CLOSED[0], "create policy p on messages as restrictive using (true)"], "messages"),
        ([*CLOSED, "alter role remote_reader bypassrls"], ""),
    ],
)
def test_a_role_that_sees_no_rows_is_refused(
    migrated: psycopg.Connection, mail_dsn: str, tmp_path: Path, changes: Sequence[str], hidden: str
) -> None:
    for line in (
        "create role remote_reader login",
        "create role remote_group role remote_reader",
        "grant select on all tables in schema public to remote_reader",
        *changes,
    ):
        migrated.execute(line.encode())
    database = Database(tmp_path, f"{mail_dsn}&options=-c%20role%3Dremote_reader")
    try:
        if hidden:
            refusal = f"hides all rows of {hidden} from the role remote_reader, as after"
            with pytest.raises(PostgresError, match=refusal):
                database.connect("test").__enter__()
        else:
            with database.connect("test") as connection:
                assert connection.execute("select count(*) from messages").fetchone() == (0,)
    finally:
        migrated.execute("drop owned by remote_reader, remote_group")
        migrated.execute("drop role remote_reader, remote_group")
