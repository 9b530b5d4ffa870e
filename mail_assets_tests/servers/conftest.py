"""The servers of the session; the first test that needs one starts it."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg import sql

from mail_assets_tests.s3 import empty_bucket
from mail_assets_tests.servers.ceph import serve_ceph
from mail_assets_tests.servers.faulty_proxy import FaultyProxy
from mail_assets_tests.servers.postgres import remote_dsn, serve_pgbouncer, serve_postgres


@pytest.fixture(scope="session")
def ceph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve_ceph(tmp_path_factory.mktemp("ceph")) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_port() -> Iterator[int]:
    with serve_postgres() as port:
        yield port


@pytest.fixture
def database(postgres_port: int) -> Iterator[str]:
    """The name of an empty database in it, dropped afterwards."""
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(remote_dsn(postgres_port, "postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        yield name
        drop = sql.SQL("drop database {} with (force)")
        connection.execute(drop.format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def bouncers(postgres_port: int) -> Iterator[dict[str, int]]:
    """The ports of a PgBouncer before it, by mode."""
    with ExitStack() as stack:
        yield {
            mode: stack.enter_context(serve_pgbouncer(postgres_port, mode))
            for mode in ("session", "transaction")
        }


@pytest.fixture
def s3(ceph: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of the gateway, to which the environment leads, with an empty bucket."""
    with empty_bucket(ceph, monkeypatch) as client:
        yield client


@pytest.fixture
def proxy(ceph: str, s3: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyProxy]:
    """A proxy in front of the gateway, named in the environment; without faults at first."""
    with FaultyProxy(int(ceph.rpartition(":")[2])).run() as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{running.port}")
        yield running
