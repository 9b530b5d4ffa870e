"""A bucket of each backend; the tests of a module share servers, but not their content."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.programs import vector_cpu_ok
from mail_assets.vectors.index import VectorIndex
from mail_assets.vectors.pgvector import SCHEMA
from mail_assets_tests.vectors.fake_s3vectors import FakeS3Vectors
from mail_assets_tests.vectors.processes import Place
from mail_assets_tests.vectors.samples import SPEC

BACKENDS = ("lance", "s3vectors", "supabase", "pgvector")
TOKEN = "a-service-key"


@pytest.fixture(scope="module")
def aws_server() -> Iterator[FakeS3Vectors]:
    with FakeS3Vectors("aws") as server:
        yield server


@pytest.fixture(scope="module")
def supabase_server() -> Iterator[FakeS3Vectors]:
    with FakeS3Vectors("supabase", token=TOKEN) as server:
        yield server


@pytest.fixture
def aws(aws_server: FakeS3Vectors, monkeypatch: pytest.MonkeyPatch) -> FakeS3Vectors:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "an-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    aws_server.reset()
    return aws_server


@pytest.fixture
def supabase(supabase_server: FakeS3Vectors) -> FakeS3Vectors:
    supabase_server.reset()
    return supabase_server


@pytest.fixture(scope="module")
def vectors_database(cluster: Cluster) -> Iterator[str]:
    """The DSN of a database for one module's tests."""
    if not vector_cpu_ok():
        pytest.skip("this CPU cannot run the pgvector of the embedded server")
    name = f"vectors_{secrets.token_hex(6)}"
    with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    yield cluster.dsn(name)
    with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def vectors_dsn(vectors_database: str) -> Iterator[str]:
    """The DSN of a database without any index."""
    yield vectors_database
    with psycopg.connect(vectors_database) as connection:
        connection.execute(
            sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(SCHEMA))
        )


@pytest.fixture(params=BACKENDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """The place of an empty bucket, for each backend in turn."""
    match request.param:
        case "lance":
            return Place(f"lance:{tmp_path / 'bucket'}")
        case "s3vectors":
            url = request.getfixturevalue("aws").url
            return Place(f"s3vectors://mail?region=eu-central-1&endpoint={url}")
        case "supabase":
            port = request.getfixturevalue("supabase").port
            url = f"supabase+http://127.0.0.1:{port}/mail"
            return Place(url, {"SUPABASE_SERVICE_KEY": TOKEN})
        case _:
            return Place("pgvector:", dsn=request.getfixturevalue("vectors_dsn"))


@pytest.fixture
def index(place: Place) -> VectorIndex:
    opened = place.open().index(SPEC)
    opened.ensure()
    return opened
