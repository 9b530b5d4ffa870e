"""Debian's PostgreSQL in place of the embedded server, alone and behind PgBouncer."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from mail_assets.operations.backup import BackupPlan, back_up, restore_backup
from mail_assets.postgres.database import Database, shares_sessions
from mail_assets.postgres.programs import PostgresError
from mail_assets.tables.partitions import Partition, locked
from mail_assets_tests.cli.conftest import Home
from mail_assets_tests.servers.faulty_proxy import FaultyProxy
from mail_assets_tests.servers.postgres import remote_dsn
from mail_assets_tests.world import APRIL, MARCH, World, mail

pytestmark = [pytest.mark.servers, pytest.mark.slow]


@pytest.fixture(params=["direct", "session"])
def dsn(request: pytest.FixtureRequest, postgres_port: int, database: str) -> str:
    """The DSN of an empty database, and the same through a pooler that keeps sessions."""
    if request.param == "direct":
        return remote_dsn(postgres_port, database)
    bouncers: dict[str, int] = request.getfixturevalue("bouncers")
    return remote_dsn(bouncers["session"], database)


def fill(home: Path, dsn: str) -> World:
    """Return a world with two months; one changed after its first run."""
    world = World(home, dsn)
    world.archive(MARCH, *(mail(f"m{n}") for n in range(6)))
    world.archive(APRIL, mail("m1"), mail("a1"))
    world.chain(MARCH)
    world.chain(APRIL)
    world.load(*(mail(f"m{n}") for n in range(1, 8)), at=1, last="vectors")
    world.chain(MARCH)
    world.threads()
    return world


def test_remote_server_ends_with_the_same_rows(tmp_path: Path, dsn: str, mail_dsn: str) -> None:
    (tmp_path / "embedded").mkdir()
    (tmp_path / "remote").mkdir()
    expected = fill(tmp_path / "embedded", mail_dsn).holds()
    found = fill(tmp_path / "remote", dsn).holds()
    for name in expected:
        assert found[name] == expected[name], name


def test_dump_is_restored_into_a_remote_server(tmp_path: Path, dsn: str) -> None:
    (tmp_path / "home").mkdir()
    world, backup = fill(tmp_path / "home", dsn), tmp_path / "backup"
    before = world.rows("messages")
    with world.workspace() as workspace:
        back_up(workspace, backup, BackupPlan({"mail": dsn}))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop schema public cascade; create schema public")
    restore_backup({"mail": dsn}, world.store, world.forget_key, backup)
    assert world.rows("messages") == before


def test_commands_work_with_both_databases_on_a_server(
    tmp_path: Path, dsn: str, model_cache: Path
) -> None:
    home = Home(tmp_path, dsn, model_cache)
    assert home.lines("backfill")[0] == "1 month materialized, 0 failed"
    assert "names@example.es" in "\n".join(home.lines("search", "src/backend/access/heap"))
    assert home.lines("backfill")[0] == "1 month: nothing changed"


def test_sharing_pooler_is_refused(tmp_path: Path, bouncers: dict[str, int], database: str) -> None:
    shared = Database(tmp_path, remote_dsn(bouncers["transaction"], database))
    with (
        pytest.raises(PostgresError, match=r"pool_mode = transaction.*set pool_mode = session"),
        shared.connect("test"),
    ):
        pass


@contextmanager
def busy_clients(dsn: str) -> Iterator[None]:
    """Keep six clients asking for short statements, which a pooler serves by turns."""
    ended = threading.Event()

    def ask() -> None:
        with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
            while not ended.is_set():
                connection.execute("select pg_sleep(random() * 0.01)")

    with ThreadPoolExecutor(6) as pool:
        asking = [pool.submit(ask) for _ in range(6)]
        try:
            yield
        finally:
            ended.set()
    for client in asking:
        client.result()


def test_busy_pooler_is_known_by_shared_sessions(bouncers: dict[str, int], database: str) -> None:
    dsn = remote_dsn(bouncers["transaction"], database)
    with busy_clients(dsn):
        for _ in range(50):
            with psycopg.connect(dsn, autocommit=True) as connection:
                assert shares_sessions(connection, dsn)


def test_own_session_is_accepted_on_a_busy_server(dsn: str) -> None:
    with busy_clients(dsn):
        for _ in range(10):
            with psycopg.connect(dsn, autocommit=True) as connection:
                assert not shares_sessions(connection, dsn)


def test_dead_host_is_noticed_within_a_minute(
    tmp_path: Path, postgres_port: int, database: str
) -> None:
    with Database(tmp_path, remote_dsn(postgres_port, database)).connect("test") as connection:
        for name, value in (("idle", "30"), ("interval", "10"), ("count", "3")):
            assert connection.execute(f"show tcp_keepalives_{name}".encode()).fetchone() == (value,)
        with socket.socket(fileno=connection.fileno()) as ours:
            assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 10
            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 3
            ours.detach()


def test_lock_ends_with_a_connection_that_was_reset(
    tmp_path: Path, postgres_port: int, database: str
) -> None:
    part = Partition("messages", None)
    with FaultyProxy(postgres_port).run() as proxy:
        behind = Database(tmp_path, remote_dsn(proxy.port, database))
        with ExitStack() as stack:
            connection = stack.enter_context(behind.connect("test"))
            stack.enter_context(locked(connection, part))
            proxy.reset_connections()
            with pytest.raises(psycopg.OperationalError):
                connection.execute("select 1")
    direct = Database(tmp_path, remote_dsn(postgres_port, database))
    with direct.connect("test") as connection, locked(connection, part):
        pass
