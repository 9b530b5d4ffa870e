"""Fixtures of all tests: a PostgreSQL server for the session, a fresh database for each test."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from mail_assets.postgres.cluster import Cluster
from mail_assets.postgres.database import Database

REPOSITORY = Path(__file__).resolve().parent.parent
CORPORA = REPOSITORY.parent / "shared" / "corpora"


def new_database(cluster: Cluster) -> str:
    """Create an empty database in a running cluster and return its DSN."""
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    return cluster.dsn(name)


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
    dsn = new_database(cluster)
    yield dsn
    name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
    with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection:
        drop = sql.SQL("drop database {} with (force)").format(sql.Identifier(str(name)))
        connection.execute(drop)


@pytest.fixture
def migrated(tmp_path: Path, postgres_dsn: str) -> Iterator[psycopg.Connection]:
    """A connection to an empty mail database with all tables."""
    with Database(tmp_path, postgres_dsn).connect("test") as connection:
        yield connection
