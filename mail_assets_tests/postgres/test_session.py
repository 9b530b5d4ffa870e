"""Sessions have our settings and not those of a server, a database or a role."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mail_assets.postgres import embedded
from mail_assets.postgres.database import Database, add_defaults
from mail_assets.postgres.embedded import Cluster
from mail_assets.reading.browsing import show_message
from mail_assets.vectors.pgvector import Connections
from mail_assets.web.searchers import STATEMENT_SECONDS, open_reads
from mail_assets_tests.ports import find_free_port
from mail_assets_tests.world import MARCH, World, mail

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
    """All that the chain makes of a month, and what is shown of it."""
    home.mkdir()
    world = World(home, dsn)
    world.archive(MARCH, *MAILS)
    world.chain(MARCH)
    world.threads()
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
    settings = embedded.SERVER_SETTINGS.replace("''", "'127.0.0.1'")
    monkeypatch.setattr(embedded, "SERVER_SETTINGS", settings)
    monkeypatch.setattr(embedded, "PORT", port)
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


def test_a_session_over_a_unix_socket_opens(mail_dsn: str, tmp_path: Path) -> None:
    with Database(tmp_path, mail_dsn).connect("test") as connection:
        assert connection.execute("select 1").fetchone() == (1,)
        assert isinstance(connection, psycopg.Connection)
