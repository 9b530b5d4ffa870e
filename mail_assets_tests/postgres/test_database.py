"""Connections create missing databases, refuse unfit servers, and have our settings."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mail_assets.postgres import embedded as embedded_server
from mail_assets.postgres.database import (
    DAGSTER,
    MAIL,
    TRIES,
    Database,
    MailConnection,
    add_defaults,
    check_version,
    embedded,
    embedded_dsn,
    retry_conflicts,
)
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.programs import PostgresError
from mail_assets.reading.browsing import show_message
from mail_assets.vectors.pgvector import Connections
from mail_assets.web.searchers import STATEMENT_SECONDS, open_reads
from mail_assets_tests.ports import find_free_port
from mail_assets_tests.waits import LONG
from mail_assets_tests.world import MARCH, World, mail

CONNECT = """
import sys
from pathlib import Path
from mail_assets.postgres.database import Database

with Database(Path(sys.argv[1])).connect("test") as connection:
    print(connection.execute("select count(*) from messages").fetchone()[0])
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A home whose embedded server is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="mail-assets-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        embedded(Path(folder)).remove()


@pytest.mark.parametrize("query", [
    "select %(text)s::integer",
    "create temporary table t (id text unique); insert into t values (%(text)s), (%(text)s)",
    "create temporary table t (id text check (id = '')); insert into t values (%(text)s)",
    "select ('\"' || %(text)s || '\"}')::json",
])  # fmt: skip
def test_errors_quote_no_mail(world: World, query: str) -> None:
    text = "A secret of Ann <ann@example.org>, " * (50 if "unique" in query else 400)
    with world.connect() as connection:
        cursor = psycopg.ClientCursor(connection)
        with pytest.raises(psycopg.Error) as caught:
            cursor.execute(query, {"text": text})
    assert caught.value.sqlstate is not None
    assert caught.value.sqlstate in str(caught.value)
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_first_connection_makes_everything(home: Path) -> None:
    command = [sys.executable, "-c", CONNECT, str(home)]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = [process.communicate(timeout=LONG) for process in processes]
    assert [out for out, _ in answers] == ["0\n"] * 3, answers
    with psycopg.connect(embedded(home).dsn("postgres")) as connection:
        rows = connection.execute("select datname from pg_database").fetchall()
    assert {MAIL, DAGSTER} <= {name for (name,) in rows}


def test_stopped_server_starts_on_demand_with_its_data(home: Path) -> None:
    with Database(home).connect("test") as connection:
        connection.execute("insert into partitions values ('a', 'l', 'm', 'i', 'd', '{}')")
    embedded(home).stop()
    with Database(home).connect("test") as connection:
        assert connection.execute("select count(*) from partitions").fetchone() == (1,)


def test_running_server_is_asked_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(home)
    opened: list[str] = []
    connect = MailConnection.connect

    def open_another(dsn: str, **options: Any) -> psycopg.Connection:
        opened.append(dsn)
        return connect(dsn, **options)

    with database.connect("test"):
        monkeypatch.setattr(Cluster, "_answer", lambda _: pytest.fail("it is looked at again"))
        monkeypatch.setattr(MailConnection, "connect", open_another)
        for _ in range(5):
            with database.connect("test"):
                pass
    monkeypatch.undo()  # to remove it, it is looked at
    assert len(opened) == 5


@pytest.mark.parametrize("end", ["killed", "removed"])
def test_server_that_has_ended_is_started_again(home: Path, end: str) -> None:
    database, server = Database(home), embedded(home)
    with database.connect("test") as connection:
        connection.execute("insert into partitions values ('a', 'l', 'm', 'i', 'd', '{}')")
    if end == "killed":
        pid = int((server.paths.data / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
    else:
        server.remove()
    with database.connect("test") as connection:
        rows = connection.execute("select count(*) from partitions").fetchone()
    assert rows == (1 if end == "killed" else 0,)


def test_dagsters_url_names_its_driver(home: Path) -> None:
    dsn = embedded_dsn(home, DAGSTER, scheme="postgresql+psycopg2")
    assert dsn.startswith("postgresql+psycopg2://postgres@/dagster?host=")
    with psycopg.connect(dsn.replace("+psycopg2", "")) as connection:
        assert connection.info.dbname == DAGSTER


def test_users_own_server_is_migrated(tmp_path: Path, postgres_dsn: str) -> None:
    with Database(tmp_path / "home", postgres_dsn).connect("test") as connection:
        assert connection.execute("select count(*) from messages").fetchone() == (0,)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(("role", "run", "name"), [
    ("messages", "1a2b3c4d", "mail_assets/messages/1a2b3c4d"),
    ("search", "", "mail_assets/search"),
    ("x" * 100, "", f"mail_assets/{'x' * 51}"),
])  # fmt: skip
def test_connection_says_who_it_is(
    tmp_path: Path, postgres_dsn: str, role: str, run: str, name: str
) -> None:
    with Database(tmp_path, postgres_dsn).connect(role, run) as connection:
        shown = connection.execute("select current_setting('application_name')").fetchone()
        assert shown == (name,)


def test_connection_commits_each_statement_and_closes(tmp_path: Path, postgres_dsn: str) -> None:
    database = Database(tmp_path, postgres_dsn)
    with database.connect("test") as first, database.connect("test") as second:
        first.execute("insert into partitions values ('a', 'l', 'm', 'i', 'd', '{}')")
        assert second.execute("select count(*) from partitions").fetchone() == (1,)
    assert first.closed
    assert second.closed


def test_missing_server_is_an_operational_error(tmp_path: Path) -> None:
    dsn = f"postgresql://postgres@/mail?host={tmp_path}"
    with (
        pytest.raises(psycopg.OperationalError, match="connection"),
        Database(tmp_path, dsn).connect("test"),
    ):
        pass


class Adding:
    """Adds 1 to a row in a snapshot, while another changes it in the first `disturbed` tries."""

    def __init__(self, dsn: str, disturbed: int) -> None:
        self.dsn, self.disturbed, self.tries = dsn, disturbed, 0
        self._execute("create table counter as select 0 as value")

    def __call__(self) -> int:
        self.tries += 1
        with psycopg.connect(self.dsn, autocommit=True) as connection, connection.transaction():
            connection.execute("set transaction isolation level repeatable read")
            connection.execute("select from counter")
            if self.tries <= self.disturbed:
                self._execute("update counter set value = value + 100")
            query = "update counter set value = value + 1 returning value"
            [(value,)] = connection.execute(query).fetchall()
        return int(value)

    def _execute(self, query: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(query.encode())


@pytest.mark.parametrize("disturbed", [0, 1, TRIES - 1])
def test_conflict_is_retried(postgres_dsn: str, disturbed: int) -> None:
    adding = Adding(postgres_dsn, disturbed)
    assert retry_conflicts(adding) == 100 * disturbed + 1
    assert adding.tries == disturbed + 1


def test_conflict_in_every_try_is_raised(postgres_dsn: str) -> None:
    adding = Adding(postgres_dsn, TRIES)
    with pytest.raises(psycopg.errors.SerializationFailure, match="concurrent update"):
        retry_conflicts(adding)
    assert adding.tries == TRIES


def test_other_errors_are_not_retried(postgres_dsn: str) -> None:
    tries = []

    def refused() -> None:
        tries.append(1)
        with psycopg.connect(postgres_dsn) as connection:
            connection.execute("select 1 / 0")

    with pytest.raises(psycopg.errors.DivisionByZero):
        retry_conflicts(refused)
    assert len(tries) == 1


@pytest.mark.parametrize(("version", "major"), [(140_012, 14), (90_624, 9)])
def test_older_server_is_refused_with_what_is_needed(version: int, major: int) -> None:
    wanted = f"MAIL_PG_DSN is PostgreSQL {major}; mail_assets needs 15 or later: upgrade it"
    with pytest.raises(PostgresError, match=wanted):
        check_version(version)


@pytest.mark.parametrize("version", [150_000, 150_020, 180_006])
def test_newer_server_is_taken(version: int) -> None:
    check_version(version)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_database_without_utf8_is_refused(cluster: Cluster, tmp_path: Path, encoding: str) -> None:
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


@pytest.mark.parametrize(("changes", "hidden"), [
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
])  # fmt: skip
def test_role_that_sees_no_rows_is_refused(
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


#: Settings that anyone may have given to a role or a database, other than those we rely on.
SETTINGS = [
    ("datestyle", "SQL, DMY"),
    ("intervalstyle", "iso_8601"),
    ("extra_float_digits", "-10"),
    ("standard_conforming_strings", "off"),
    ("client_encoding", "LATIN1"),
    ("timezone", "Asia/Tokyo"),
    ("array_nulls", "off"),
    ("bytea_output", "escape"),
    ("default_transaction_isolation", "serializable"),
]

#: Limits that a server has for others: a run may wait for another of its month for hours.
LIMITS = (
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "transaction_timeout",
)

MAILS = (
    mail("late", "Żółw \\ owl, 35% _of_ it.", date="Mon, 04 Mar 2024 23:30:00 +0000",
         from_line="From ann@example.org Mon Mar  4 23:30:00 2024"),
    mail("reply", "See a.c\\n.", references="<late@example.org>", headers="Cc: O'Neil <o@x.org>"),
)  # fmt: skip


#: A summary without the time when it was made.
SUMMARY = "thread_id, content_hash, first_sent_at, last_sent_at, participants, sentences"


#: Values that one of the settings changes.
VALUES = """
select sent_at::date, sent_at::text, sent_at - timestamptz 'epoch', 1 / 3::float8,
       current_setting('transaction_isolation')
  from messages
 order by message_id
"""


def held(home: Path, dsn: str) -> dict[str, object]:
    home.mkdir()
    world = World(home, dsn)
    world.archive(MARCH, *MAILS)
    world.fill(MARCH)
    world.summaries()
    with world.connect() as connection:
        shown = show_message(connection, "late@example.org")
        values = connection.execute(VALUES).fetchall()
    summaries = world.rows("thread_summaries", SUMMARY)
    return world.holds() | {"shown": shown, "values": values, "summaries": summaries}


def set_in_database(dsn: str, name: str, value: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        change = sql.SQL("alter database {} set {} = {}").format(
            sql.Identifier(connection.info.dbname), sql.SQL(name), sql.Literal(value)
        )
        connection.execute(change)


def test_settings_of_a_database_change_nothing(
    tmp_path: Path, postgres_dsn: str, mail_dsn: str
) -> None:
    expected = held(tmp_path / "as it comes", mail_dsn)
    for name, value in SETTINGS:
        set_in_database(postgres_dsn, name, value)
    found = held(tmp_path / "home", postgres_dsn)
    assert {part for part in expected if found[part] != expected[part]} == set()


def test_limits_of_a_database_do_not_apply(tmp_path: Path, postgres_dsn: str) -> None:
    for name in LIMITS:
        set_in_database(postgres_dsn, name, "1min")
    with Database(tmp_path, postgres_dsn).connect("test") as connection:
        shown = [connection.execute(f"show {name}".encode()).fetchone() for name in LIMITS]
    assert shown == [("0",)] * len(LIMITS)


def test_pages_are_read_within_a_limit_of_their_own(postgres_dsn: str) -> None:
    with open_reads(postgres_dsn, 1) as reads, reads.connection() as connection:
        limit = connection.execute("show statement_timeout").fetchone()
    assert limit == (f"{STATEMENT_SECONDS}s",)


def test_vector_index_connections_have_our_settings(postgres_dsn: str) -> None:
    set_in_database(postgres_dsn, "datestyle", "SQL, DMY")
    connections = Connections(postgres_dsn, "test")
    with connections.session() as alone, connections.transaction() as kept:
        for session in (alone, kept):
            row = session.execute("show datestyle").fetchone()
            assert row == {"DateStyle": "ISO, DMY"}


def test_reading_connections_have_our_settings(postgres_dsn: str) -> None:
    set_in_database(postgres_dsn, "datestyle", "SQL, DMY")
    set_in_database(postgres_dsn, "client_encoding", "LATIN1")
    with open_reads(postgres_dsn, 1) as reads, reads.connection() as connection:
        assert connection.execute("show datestyle").fetchone() == ("ISO, DMY",)
        assert connection.info.encoding == "utf-8"


def test_other_options_of_the_dsn_stay(tmp_path: Path, postgres_dsn: str) -> None:
    dsn = make_conninfo(postgres_dsn, options="-cwork_mem=5MB -cdatestyle=German")
    with World(tmp_path, dsn).connect() as connection:
        assert connection.execute("show work_mem").fetchone() == ("5MB",)
        assert connection.execute("show datestyle").fetchone() == ("ISO, DMY",)


@pytest.fixture
def tcp_dsn(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The DSN of a server that is reached over TCP, as one on another machine is."""
    port = find_free_port()
    settings = embedded_server.SERVER_SETTINGS.replace("''", "'127.0.0.1'")
    monkeypatch.setattr(embedded_server, "SERVER_SETTINGS", settings)
    monkeypatch.setattr(embedded_server, "PORT", port)
    server = Cluster(tmp_path_factory.mktemp("tcp"))
    try:
        server.start()
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        server.remove()


@pytest.mark.slow
def test_both_ends_of_a_session_send_keepalives(tcp_dsn: str, tmp_path: Path) -> None:
    with Database(tmp_path, tcp_dsn).connect("test") as connection:
        asked = connection.execute(
            "select name, setting::int from pg_settings where name like 'tcp_keepalives_%'"
        ).fetchall()
        with socket.socket(fileno=os.dup(connection.fileno())) as own:
            ours = [
                own.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            ]
    assert dict(asked) == {
        "tcp_keepalives_idle": 30,
        "tcp_keepalives_interval": 10,
        "tcp_keepalives_count": 3,
    }
    assert ours == [30, 10, 3]


@pytest.mark.parametrize(
    "dsn", ["postgresql://u@db/mail?keepalives_idle=5", "host=db dbname=mail keepalives_idle=5"]
)
def test_keepalives_in_a_dsn_win(dsn: str) -> None:
    found = conninfo_to_dict(add_defaults(dsn))
    assert (found["keepalives_idle"], found["keepalives_interval"]) == ("5", "10")
    assert (found["host"], found["dbname"]) == ("db", "mail")


def test_session_over_a_unix_socket_opens(mail_dsn: str, tmp_path: Path) -> None:
    with Database(tmp_path, mail_dsn).connect("test") as connection:
        assert connection.execute("select 1").fetchone() == (1,)
        assert isinstance(connection, psycopg.Connection)
