"""A machine that is gone loses its session, and its locks, within a minute."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from mail_assets.postgres import embedded
from mail_assets.postgres import embedded as cluster_module
from mail_assets.postgres.database import Database, add_keepalives
from mail_assets.postgres.embedded import Cluster
from mail_assets_tests.ports import find_free_port


@pytest.fixture
def tcp_dsn(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The DSN of a server that is reached over TCP, as one on another machine is."""
    port = find_free_port()
    settings = embedded.SERVER_SETTINGS.replace("''", "'127.0.0.1'")
    monkeypatch.setattr(embedded, "SERVER_SETTINGS", settings)
    monkeypatch.setattr(cluster_module, "PORT", port)
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
    found = conninfo_to_dict(add_keepalives(dsn))
    assert (found["keepalives_idle"], found["keepalives_interval"]) == ("5", "10")
    assert (found["host"], found["dbname"]) == ("db", "mail")


def test_a_session_over_a_unix_socket_opens(mail_dsn: str, tmp_path: Path) -> None:
    with Database(tmp_path, mail_dsn).connect("test") as connection:
        assert connection.execute("select 1").fetchone() == (1,)
        assert isinstance(connection, psycopg.Connection)
