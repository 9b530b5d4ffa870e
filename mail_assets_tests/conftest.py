"""What every test may ask for: a Postgres of the session's own, a fresh database in it."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from mail_assets.postgres.cluster import Cluster

REPOSITORY = Path(__file__).resolve().parent.parent
CORPORA = REPOSITORY.parent / "shared" / "corpora"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running embedded server, removed at the end."""
    server = Cluster(tmp_path_factory.mktemp("postgres"))
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture
def postgres_dsn(cluster: Cluster) -> Iterator[str]:
    """The DSN of an empty database, dropped afterwards."""
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    yield cluster.dsn(name)
    with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
