"""pgvector: the HNSW index, exact ranking of few rows, upserts that change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import psycopg
import pytest

from mail_assets.postgres.programs import vector_cpu_ok
from mail_assets.vectors import pgvector
from mail_assets.vectors.index import MissingIndexError, VectorError, VectorIndex
from mail_assets.vectors.open import open_bucket
from mail_assets_tests.vectors.samples import MAIL, clustered, mail_vectors, make_index
from mail_assets_tests.waits import wait_until

pytestmark = pytest.mark.skipif(
    not vector_cpu_ok(), reason="this CPU cannot run the pgvector of the embedded server"
)
TABLE = 'vectors."mail"'


@pytest.fixture
def index(vectors_dsn: str) -> VectorIndex:
    return make_index("pgvector:", dsn=vectors_dsn)


def test_hnsw_index_is_built_from_the_threshold_on_and_once(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgvector, "INDEX_ROWS", 500)
    index.put(mail_vectors(clustered(499)))
    index.maintain()
    assert index.describe()["search"] == "exact"
    index.put(mail_vectors(clustered(1), start=499))
    index.maintain()
    index.maintain()
    assert index.describe()["search"] == "hnsw"


def test_interrupted_build_is_replaced(
    index: VectorIndex, vectors_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgvector, "INDEX_ROWS", 1)
    index.put(mail_vectors(clustered(20)))
    index.maintain()
    with psycopg.connect(vectors_dsn) as connection:
        connection.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid IN"
            " (SELECT oid FROM pg_class WHERE relname LIKE '%embedding%')"
        )
    assert index.describe()["search"] == "exact"
    index.maintain()
    assert index.describe()["search"] == "hnsw"


def test_only_one_process_maintains_at_a_time(
    index: VectorIndex, vectors_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgvector, "INDEX_ROWS", 1)
    index.put(mail_vectors(clustered(20)))
    with psycopg.connect(vectors_dsn, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(hashtext(%s))", ['"vectors"."mail"'])
        index.maintain()
        assert index.describe()["search"] == "exact"
    index.maintain()
    assert index.describe()["search"] == "hnsw"


@pytest.mark.parametrize(
    ("exact_rows", "max_scan"), [(0, 20_000), (20_000, 100)], ids=["iterative scan", "exact"]
)
def test_rare_filter_finds_every_match_over_the_hnsw_index(
    vectors_dsn: str, monkeypatch: pytest.MonkeyPatch, exact_rows: int, max_scan: int
) -> None:
    monkeypatch.setattr(pgvector, "INDEX_ROWS", 1_000)
    monkeypatch.setattr(pgvector, "EXACT_ROWS", exact_rows)
    # Among so few rows the planner would sort the matches instead of asking the HNSW index; the
    # second setting makes the index miss most of them, should the exact form ask it after all.
    options = f"-c enable_sort=off -c hnsw.max_scan_tuples={max_scan}"
    dsn = f"{vectors_dsn}&options={quote(options)}"
    index = make_index("pgvector:", dsn=dsn)
    index.put(mail_vectors(clustered(3_000)))
    index.maintain()
    for query in clustered(5, seed=1):
        found = index.query(query, 20, {"month": 200003})
        assert {match.key for match in found} == {f"key-{n:05}" for n in range(2, 3_000, 300)}


def test_putting_the_same_again_rewrites_no_row(index: VectorIndex, vectors_dsn: str) -> None:
    stored = mail_vectors(clustered(50))
    changed = mail_vectors(clustered(1, seed=5), start=7)
    index.put(stored)
    with psycopg.connect(vectors_dsn) as connection:
        query = f"SELECT key, xmin::text FROM {TABLE}"
        before: dict[str, str] = dict(connection.execute(query).fetchall())
        connection.commit()
        index.put([*stored[:7], *changed, *stored[8:]])
        after: dict[str, str] = dict(connection.execute(query).fetchall())
    assert {key for key in after if after[key] != before[key]} == {"key-00007"}


def test_every_field_has_a_btree(index: VectorIndex, vectors_dsn: str) -> None:
    with psycopg.connect(vectors_dsn) as connection:
        rows = connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'vectors' AND tablename = 'mail'"
        ).fetchall()
    assert sorted(row[0].partition(" USING ")[2] for row in rows) == [
        "btree (key)",
        "btree (list)",
        "btree (month)",
        "btree (sender)",
    ]


def test_no_server_is_an_error_without_the_password() -> None:
    bucket = open_bucket("pgvector:", dsn="postgresql://me:hidden@127.0.0.1:1/mail")
    with pytest.raises(
        VectorError, match=r"(?s)index mail in pgvector:mail@127.*check the DSN"
    ) as caught:
        bucket.index(MAIL).ensure()
    assert "hidden" not in str(caught.value)


def backends(dsn: str, *, end: bool = False) -> list[int]:
    """Return the server's processes that serve the vectors of this database, or end them."""
    query = (
        "SELECT pid, CASE WHEN %s THEN pg_terminate_backend(pid, 60000) END FROM pg_stat_activity"
        " WHERE application_name = 'mail_assets vectors' AND datname = current_database()"
    )
    with psycopg.connect(dsn) as connection:
        return [row[0] for row in connection.execute(query, [end])]


def await_backends(dsn: str, most: int) -> None:
    """Wait until no more are left: a session ends some time after its client has closed it."""
    wait_until(lambda: len(backends(dsn)) <= most)


def test_query_reconnects_when_the_server_closed_the_session(vectors_dsn: str) -> None:
    await_backends(vectors_dsn, 0)
    index = make_index("pgvector:", dsn=vectors_dsn)
    stored = mail_vectors(clustered(5))
    index.put(stored)
    [before] = backends(vectors_dsn)
    for one in stored:
        assert index.query(one.values, 1)[0].key == one.key
    assert backends(vectors_dsn, end=True) == [before]  # as a restart does
    assert index.query(stored[0].values, 1)[0].key == "key-00000"
    [after] = backends(vectors_dsn)
    assert after != before


def test_threads_query_in_parallel_and_keep_one_connection(vectors_dsn: str) -> None:
    index = make_index("pgvector:", dsn=vectors_dsn)
    stored = mail_vectors(clustered(40))
    index.put(stored)
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda one: index.query(one.values, 1)[0].key, stored)
        assert [*found] == [one.key for one in stored]
    keys = index.keys()  # holds a connection while it is read
    next(keys)
    assert index.count() == 40
    assert len([*keys]) == 39
    await_backends(vectors_dsn, 2)


def test_statement_that_fails_leaves_the_connection_usable(vectors_dsn: str) -> None:
    index = open_bucket("pgvector:", dsn=vectors_dsn).index(MAIL)
    with pytest.raises(MissingIndexError):
        index.count()
    index.ensure()
    assert index.count() == 0
    await_backends(vectors_dsn, 1)


@pytest.fixture
def shared_dsn(vectors_dsn: str) -> Iterator[str]:
    """A database with the schemas a and b, for an installation each."""
    with psycopg.connect(vectors_dsn, autocommit=True) as connection:
        connection.execute("create extension if not exists vector")
        connection.execute("create schema a; create schema b")
        yield vectors_dsn
        connection.execute("drop schema if exists a, b, c cascade")


def open_in(dsn: str, schema: str) -> VectorIndex:
    path = quote(f"-csearch_path={schema},public")
    return open_bucket("pgvector:", dsn=f"{dsn}&options={path}").index(MAIL)


def touch_every_way(index: VectorIndex) -> Iterator[Callable[[], object]]:
    yield index.ensure
    yield index.count
    yield index.drop
    yield index.maintain
    yield lambda: [*index.keys()]
    yield lambda: index.delete(["mail-0"])
    yield lambda: index.put(mail_vectors(clustered(1)))


def test_vectors_of_another_installation_are_not_touched(shared_dsn: str) -> None:
    first, second = open_in(shared_dsn, "a"), open_in(shared_dsn, "b")
    first.ensure()
    first.put(mail_vectors(clustered(3)))
    for touch in touch_every_way(second):
        with pytest.raises(VectorError, match="schema a, this one is in the schema b"):
            touch()
    bucket = open_bucket("pgvector:", dsn=f"{shared_dsn}&options=-csearch_path%3Db")
    with pytest.raises(VectorError, match="installation in the schema a"):
        bucket.indexes()
    assert first.count() == 3


@pytest.mark.parametrize(
    "change", ["comment on schema vectors is null", "alter schema a rename to c", "drop schema a"]
)
def test_unmarked_schema_is_taken_over(shared_dsn: str, change: str) -> None:
    open_in(shared_dsn, "a").ensure()
    with psycopg.connect(shared_dsn, autocommit=True) as connection:
        connection.execute(change.encode())
    second = open_in(shared_dsn, "b")
    second.ensure()
    assert second.count() == 0
    with psycopg.connect(shared_dsn, autocommit=True) as connection:
        connection.execute("create schema if not exists a")
    with pytest.raises(VectorError, match="installation in the schema b"):
        open_in(shared_dsn, "a").ensure()


def test_existing_comment_stays(shared_dsn: str) -> None:
    with psycopg.connect(shared_dsn, autocommit=True) as connection:
        connection.execute("create schema vectors; comment on schema vectors is 'ours'")
        open_in(shared_dsn, "a").ensure()
        said = connection.execute("select obj_description('vectors'::regnamespace)").fetchone()
    assert said == ("ours",)
