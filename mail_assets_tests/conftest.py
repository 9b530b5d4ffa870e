"""Fixtures of all tests: a PostgreSQL server for the session, a fresh database for each test, and
the sample lists indexed once.
"""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from mail_assets.postgres.cluster import Cluster
from mail_assets.postgres.database import Database
from mail_assets.search.open import open_searcher
from mail_assets.search.request import Request
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher
from mail_assets_tests.sample_corpus import Corpus, Search, build_corpus

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


@pytest.fixture(scope="session")
def corpus(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The sample lists and a small hostile one, indexed with the real model."""
    return build_corpus(tmp_path_factory.mktemp("corpus"), new_database(cluster))


@pytest.fixture(scope="session")
def searcher(corpus: Corpus) -> Iterator[Searcher]:
    """A searcher over the corpus."""
    with open_searcher(corpus.search_settings) as searcher:
        yield searcher


@pytest.fixture
def search(searcher: Searcher) -> Search:
    """Search the corpus: the fields of Request by name."""

    def search(query: str, **fields: Any) -> Response:
        return searcher.search(Request(query, **fields))

    return search
