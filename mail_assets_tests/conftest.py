"""Fixtures of all tests: a PostgreSQL server for the session, a fresh database for each test, and
the sample lists indexed once.
"""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from mail_assets.postgres import embedded
from mail_assets.postgres.database import Database
from mail_assets.postgres.embedded import Cluster
from mail_assets.processes.machine import count_physical_cores
from mail_assets.search.language.request import Request
from mail_assets.search.open import open_searcher
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher
from mail_assets.tables.lists import EVERY_LIST, show_lists
from mail_assets_tests.databases import (
    Databases,
    dagster_url,
    database_name,
    drop_database,
    end_sessions,
    new_database,
)
from mail_assets_tests.initdb_copies import initdb_once
from mail_assets_tests.kept_worlds import KeptWorlds
from mail_assets_tests.sample_corpus import Corpus, Search, build_corpus
from mail_assets_tests.world import World

REPOSITORY = Path(__file__).resolve().parent.parent
CORPORA = REPOSITORY.parent / "shared" / "corpora"

#: File system in memory: copying a database there takes a third of the processor time.
MEMORY = Path("/dev/shm")
#: Free bytes in MEMORY from which it is used; a worker's server takes a few hundred megabytes.
ENOUGH_MEMORY = 8 << 30


# Properties have the same examples in each run, and no time limit for slow machines
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


def pytest_configure() -> None:
    """Remove the user's settings: no test may use the database or the buckets in them."""
    for name in [*os.environ]:
        if name.startswith(("MAIL_", "DAGSTER_")) and name != "MAIL_PG_BIN":
            del os.environ[name]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the workers of `pytest -n auto`: cores plus one, because tests also wait.

    At most 8, because each has its own server and models.
    """
    return min(count_physical_cores() + 1, 8)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the files that have a slow test, so that none runs alone at the end.

    `pytest --dist loadfile --no-loadscope-reorder` gives each worker one file at a time.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collection, and collect less often.

    They exist to the end, and scanning them takes 1/15 of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """Restore the environment: commands set variables for their process, such as DAGSTER_HOME."""
    before = dict(os.environ)
    yield
    if os.environ != before:
        os.environ.clear()
        os.environ.update(before)


#: Options without durability: on a busy disk, initdb takes 0.7 s instead of 4 s, and dropping a
#: database 0.02 s instead of 1 s. Without autovacuum, plans and locks do not depend on its timing.
SETTINGS_OF_TESTS = """
fsync = off
full_page_writes = off
autovacuum = off
"""


@pytest.fixture(scope="session", autouse=True)
def settings_of_tests(
    tmp_path_factory: pytest.TempPathFactory, model_cache: Path
) -> Iterator[None]:
    """Start fast servers without background work, and build each model once for all worlds."""
    settings = embedded.SERVER_SETTINGS + SETTINGS_OF_TESTS
    # WAL segments of 1 MB instead of 16: about sixty servers are copied
    options = (*embedded.INITDB_OPTIONS, "--no-sync", "--wal-segsize=1")
    with pytest.MonkeyPatch.context() as patch, initdb_once(tmp_path_factory.mktemp("initdb")):
        patch.setattr(embedded, "SERVER_SETTINGS", settings)
        patch.setattr(embedded, "INITDB_OPTIONS", options)
        patch.setattr(World, "models", model_cache)
        yield


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running embedded server, removed at the end; in memory if there is plenty of it."""
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH_MEMORY:
        for left in MEMORY.glob("mail-assets-tests-*"):  # by a process that was killed
            if not Path("/proc", left.name.split("-")[3]).exists():
                shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=f"mail-assets-tests-{os.getpid()}-", dir=MEMORY))
        folder.chmod(0o755)  # the server's account enters it
    else:
        folder = tmp_path_factory.mktemp("postgres")
    server = Cluster(folder)
    try:
        yield server.start()
    finally:
        end_sessions()
        server.remove()


@pytest.fixture(scope="session")
def mail_template(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of an empty mail database; copying it is faster than a migration."""
    dsn = new_database(cluster)
    with Database(tmp_path_factory.mktemp("template"), dsn).connect("test") as connection:
        return str(connection.info.dbname)


@pytest.fixture
def postgres_dsn(cluster: Cluster) -> Iterator[str]:
    """The DSN of an empty database, dropped afterwards."""
    dsn = new_database(cluster)
    yield dsn
    drop_database(cluster, dsn)


@pytest.fixture(scope="session")
def mail_databases(cluster: Cluster, mail_template: str) -> Databases:
    """Empty mail databases, which tests use one after the other."""
    return Databases(cluster, mail_template)


@pytest.fixture
def mail_dsn(mail_databases: Databases) -> Iterator[str]:
    """The DSN of a mail database with all tables and no rows, used only by this test."""
    dsn = mail_databases.take()
    yield dsn
    mail_databases.give_back(dsn)


@pytest.fixture(scope="session")
def home_databases(cluster: Cluster, mail_template: str) -> Databases:
    """Databases with the tables of mail and of Dagster, as of a home with a single database."""
    from dagster_postgres import DagsterPostgresStorage

    from mail_assets.defs.instance_storage import complete_tables

    dsn = new_database(cluster, mail_template)
    url = dagster_url(dsn)
    complete_tables(DagsterPostgresStorage(url), url)
    return Databases(cluster, database_name(dsn))


@pytest.fixture
def home_dsn(home_databases: Databases) -> Iterator[str]:
    """The DSN of a database with all tables of mail and of Dagster, used only by this test."""
    dsn = home_databases.take()
    yield dsn
    home_databases.give_back(dsn)


@pytest.fixture
def migrated(tmp_path: Path, mail_dsn: str) -> Iterator[psycopg.Connection]:
    """A connection to a mail database with all tables and no rows; it may show all lists."""
    with Database(tmp_path, mail_dsn).connect("test") as connection:
        show_lists(connection, EVERY_LIST)
        yield connection


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of prepared models, one for each precision."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def corpus(cluster: Cluster, model_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The sample lists and a small hostile one, indexed with the real model."""
    return build_corpus(tmp_path_factory.mktemp("corpus"), new_database(cluster), model_cache)


@pytest.fixture(scope="session")
def searcher(corpus: Corpus) -> Iterator[Searcher]:
    """A searcher over the corpus."""
    with open_searcher(corpus.search_settings) as searcher:
        yield searcher


@pytest.fixture
def search(searcher: Searcher) -> Search:
    """A function that searches the corpus; its arguments are the fields of Request."""

    def search(query: str, **fields: Any) -> Response:
        return searcher.search(Request(query, **fields))

    return search


@pytest.fixture(scope="session")
def kept_worlds(
    cluster: Cluster, mail_template: str, tmp_path_factory: pytest.TempPathFactory
) -> KeptWorlds:
    """Worlds that are filled once and copied."""
    return KeptWorlds(cluster, mail_template, tmp_path_factory.mktemp("kept"))


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    """The URL of a local S3 server."""
    from mail_assets_tests.s3 import serve_s3

    with serve_s3() as url:
        yield url


@pytest.fixture
def s3(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of an empty bucket."""
    from mail_assets_tests.s3 import empty_bucket

    with empty_bucket(s3_endpoint, monkeypatch) as client:
        yield client


@pytest.fixture
def world(tmp_path: Path, mail_dsn: str) -> World:
    """An empty world, with its own folders and database."""
    return World(tmp_path, mail_dsn)
