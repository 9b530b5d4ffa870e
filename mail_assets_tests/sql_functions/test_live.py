"""The functions follow the live index, use the indexes of Postgres, and name what is missing."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest

from mail_assets.postgres.database import Database
from mail_assets.postgres.programs import vector_cpu_ok
from mail_assets.sql_functions import install_functions
from mail_assets.tables.indexes import NewIndex, make_first_live, record_index, switch_live
from mail_assets.vectors import pgvector
from mail_assets.vectors.filters import FieldType
from mail_assets.vectors.index import Floats, IndexSpec, Vector, VectorIndex
from mail_assets.vectors.open import open_bucket
from mail_assets_tests.sql_functions.conftest import call, vector_text
from mail_assets_tests.vectors.samples import unit

pytestmark = pytest.mark.skipif(
    not vector_cpu_ok(), reason="the embedded server's pgvector does not run on this processor"
)

URL = "pgvector:"
FIELDS: dict[str, FieldType] = {"list": "string", "sent_at": "number"}
#: One message a day, each with the chunk ID#0.
MAIL = """
insert into messages
select 'quiet', '2000-01', 'm' || n, 0, '', '', '2000-01-01'::timestamptz + n * '1 hour'
       ::interval, 'date', '', 'about ' || n, 'about ' || n, 'Ann', 'ann@example.org',
       '{}', '{}', '{}', '{}', '{}', '', 'plain', '', '[]', '[]', '{}', '{}',
       to_tsvector('simple', 'word' || n || ' common')
  from generate_series(0, %(count)s - 1) as n
"""
CHUNKS = """
insert into chunks
select 'm' || n || '#0', 'quiet', '2000-01', 'm' || n, 0, 0, 'text ' || n, '{}', 1, ''
  from generate_series(0, %(count)s - 1) as n
"""


@pytest.fixture
def db(mail_dsn: str, tmp_path: Path) -> Iterator[psycopg.Connection]:
    with Database(tmp_path, mail_dsn).connect("test") as connection:
        install_functions(connection, {"quiet": "simple"})
        yield connection


def fill(db: psycopg.Connection, count: int) -> None:
    for statement in (MAIL, CHUNKS):
        db.execute(statement.encode(), {"count": count})
    db.execute("analyze messages, chunks")


def made(db: psycopg.Connection, dsn: str, name: str, dimension: int, count: int) -> VectorIndex:
    """Fill an index with a vector for each chunk and record it."""
    index = open_bucket(URL, dsn=dsn).index(IndexSpec(name, dimension=dimension, fields=FIELDS))
    index.ensure()
    index.put(
        Vector(f"m{n}#0", values, {"list": "quiet", "sent_at": 946684800.0 + 3600 * n})
        for n, values in enumerate(units(count, dimension))
    )
    record_index(db, URL, NewIndex(name, f"encoder of {name}", "int8", "print"))
    return index


@pytest.fixture
def small(db: psycopg.Connection, mail_dsn: str) -> VectorIndex:
    """The live index of five messages, with vectors of eight numbers."""
    fill(db, 5)
    index = made(db, mail_dsn, "mail2-small", 8, 5)
    make_first_live(db, URL, index.spec.name)
    return index


def units(count: int, dimension: int) -> Floats:
    return np.stack([unit(seed, dimension) for seed in range(count)])


def nearest(db: psycopg.Connection, index: VectorIndex, n: int) -> str:
    values = index.get([f"m{n}#0"], data=True)[f"m{n}#0"].values
    [row] = call(db, "search_semantic", query_embedding=vector_text(values), match_count=1)
    assert row["similarity"] == pytest.approx(1, abs=1e-3)
    return str(row["message_id"])


def test_next_call_follows_a_promotion(db: psycopg.Connection, mail_dsn: str) -> None:
    fill(db, 20)
    small = made(db, mail_dsn, "mail2-small", 8, 20)
    large = made(db, mail_dsn, "mail2-large", 24, 20)
    make_first_live(db, URL, small.spec.name)
    assert nearest(db, small, 7) == "m7"
    switch_live(db, URL, large.spec.name, False, {})
    assert nearest(db, large, 7) == "m7"
    small.drop()
    assert nearest(db, large, 3) == "m3"


def test_vector_of_another_model_is_refused(db: psycopg.Connection, small: VectorIndex) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"has 3 numbers.*has 8") as got:
        call(db, "search_semantic", query_embedding="[1,2,3]")
    assert got.value.diag.message_hint == "encode the question with encoder of mail2-small"
    small.drop()
    with pytest.raises(psycopg.errors.UndefinedTable, match="the live index mail2-small has no"):
        call(db, "search_semantic", query_embedding="[1,2,3]")


@pytest.mark.parametrize("value", [0, 1e-9])
@pytest.mark.parametrize(
    "function", ["search_semantic", "search_messages_with_chunks", "search_hybrid"]
)
@pytest.mark.usefixtures("small")
def test_vector_without_a_direction_is_refused(
    db: psycopg.Connection, function: str, value: float
) -> None:
    text = {"query_text": "word1"} if function == "search_hybrid" else {}
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="query_embedding is zero"):
        call(db, function, query_embedding=vector_text([value] * 8), **text)


#: In another schema of the search path, and in ours.
OF_OTHERS = ("app.any_of(text[])", "app.search_hybrid(text)", "public.search_hybrid(text)")


def test_functions_of_others_with_our_names_stay(migrated: psycopg.Connection) -> None:
    migrated.execute("create schema app; set search_path = public, app")
    for one in OF_OTHERS:
        migrated.execute(f"create function {one} returns text return 'theirs'".encode())
    for _ in range(2):
        install_functions(migrated, {"quiet": "simple"})
        for one in OF_OTHERS:
            assert migrated.execute("select to_regprocedure(%s) is not null", [one]).fetchone() == (
                True,
            ), one


def test_functions_with_other_arguments_are_dropped(db: psycopg.Connection) -> None:
    db.execute(
        "create function any_of(text[], text) returns text language sql"
        " set search_path = public, pg_temp return 'earlier'"
    )
    install_functions(db, {"quiet": "simple"})
    named = "select oid::regprocedure::text from pg_proc where proname = 'any_of'"
    assert db.execute(named).fetchall() == [("any_of(text[])",)]


CALLS = [
    ("search_semantic", {"query_embedding": "[1]"}),
    ("search_messages_with_chunks", {"query_embedding": "[1]"}),
    ("search_hybrid", {"query_embedding": "[1]", "query_text": "word1"}),
]


@pytest.mark.parametrize(("function", "arguments"), CALLS)
@pytest.mark.parametrize("vectors", [True, False])
def test_vectors_elsewhere_are_an_error(
    db: psycopg.Connection, function: str, arguments: dict[str, str], vectors: bool
) -> None:
    if not vectors:  # as on a server without pgvector
        db.execute("drop extension vector cascade")
    assert install_functions(db, {"quiet": "simple"}, vectors=vectors) == vectors
    fill(db, 3)
    elsewhere = "lance:/var/mail/vectors"
    record_index(db, elsewhere, NewIndex("mail2-small", "small", "int8", "print"))
    make_first_live(db, elsewhere, "mail2-small")
    with pytest.raises(
        psycopg.errors.ObjectNotInPrerequisiteState, match="the vectors are in lance:/var/mail/v"
    ) as caught:
        call(db, function, **arguments)
    assert "MAIL_VECTORS=pgvector:" in (caught.value.diag.message_hint or "")
    [row] = call(db, "search_fulltext", query_text="word1")
    assert row["message_id"] == "m1"


@pytest.mark.parametrize(("arguments", "reason"), [
    ({"query_text": ""}, "query_text has 0 characters"),
    ({"query_text": "x" * 2001}, "query_text has 2001 characters"),
    ({"query_text": "x", "match_count": 0}, "match_count 0: allowed are 1 to 100"),
    ({"query_text": "x", "match_count": 101}, "match_count 101: allowed are 1 to 100"),
    ({"query_text": "x", "in_lists": ["quiet", "loud"]}, "list 'loud' is unknown.*: quiet"),
])  # fmt: skip
def test_wrong_argument_is_named(
    db: psycopg.Connection, arguments: dict[str, object], reason: str
) -> None:
    fill(db, 3)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=reason):
        call(db, "search_fulltext", **arguments)


@pytest.mark.usefixtures("small")
def test_wrong_weight_is_named(db: psycopg.Connection) -> None:
    vector = vector_text([1.0] * 8)
    given = {"query_text": "word1", "query_embedding": vector}
    assert call(db, "search_hybrid", **given, semantic_weight=0)
    for weight in ("full_text_weight", "semantic_weight", "thread_weight"):
        for value in (-1, float("nan"), float("inf"), None):
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="a weight of"):
                call(db, "search_hybrid", **given, **{weight: value})


@pytest.mark.parametrize("function", ["search_semantic", "search_messages_with_chunks"])
@pytest.mark.usefixtures("small")
def test_threshold_that_is_no_number_is_named(db: psycopg.Connection, function: str) -> None:
    vector = vector_text([1.0] * 8)
    assert call(db, function, query_embedding=vector, match_threshold=-1)
    for value in (float("nan"), None):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"match_threshold (NaN|<N)"):
            call(db, function, query_embedding=vector, match_threshold=value)


def scans(db: psycopg.Connection, table: str, method: str) -> int:
    """Return how often this transaction scanned the indexes of a table that are of one method."""
    row = db.execute(
        "select sum(pg_stat_get_xact_numscans(indexrelid)) from pg_index"
        " join pg_class on pg_class.oid = indexrelid join pg_am on pg_am.oid = relam"
        " where indrelid = %s::regclass and amname = %s",
        [table, method],
    ).fetchone()
    return int(row[0] or 0) if row else 0


@pytest.mark.slow
def test_indexes_are_used_and_settings_stay(
    db: psycopg.Connection, mail_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 5_000
    fill(db, count)
    monkeypatch.setattr(pgvector, "INDEX_ROWS", count)
    index = made(db, mail_dsn, "mail2-small", 32, count)
    index.maintain()
    make_first_live(db, URL, index.spec.name)
    table = 'vectors."mail2-small"'
    vector = vector_text(index.get(["m7#0"], data=True)["m7#0"].values)
    with db.transaction():
        db.execute("set local hnsw.ef_search = 17")
        found = call(db, "search_semantic", query_embedding=vector, match_count=5)
        assert found[0]["message_id"] == "m7"
        assert scans(db, table, "hnsw") == 1
        assert scans(db, "messages", "gin") == 0
        [row] = call(db, "search_fulltext", query_text="word77")
        assert row["message_id"] == "m77"
        assert scans(db, "messages", "gin") > 0
        # A filter that few pass is answered exactly.
        listed = call(db, "search_semantic", query_embedding=vector, in_lists=["quiet"])
        assert listed[0]["message_id"] == "m7"
        assert scans(db, table, "hnsw") == 1
        settings = (
            "select current_setting('hnsw.ef_search'), current_setting('hnsw.iterative_scan')"
        )
        assert db.execute(settings.encode()).fetchone() == ("17", "off")


def test_installing_again_replaces_lists_and_functions(db: psycopg.Connection) -> None:
    fill(db, 3)
    functions = "select count(*) from pg_proc where pronamespace = 'public'::regnamespace"
    before = db.execute(functions).fetchone()
    install_functions(db, {"quiet": "simple", "loud": "english"})
    assert db.execute(functions).fetchone() == before
    assert len(call(db, "search_fulltext", query_text="word1", in_lists=["loud", "quiet"])) == 1


def test_functions_are_in_the_schema_of_the_tables(postgres_dsn: str, tmp_path: Path) -> None:
    schema = f'odd "{secrets.token_hex(2)}'
    with psycopg.connect(postgres_dsn, autocommit=True) as plain:
        plain.execute("create schema extensions; create extension vector schema extensions")
        quoted = '"' + schema.replace('"', '""') + '"'
        plain.execute(f"create schema {quoted}".encode())
        plain.execute(
            f"alter database {plain.info.dbname} set search_path = {quoted}, extensions".encode()
        )
    with Database(tmp_path, postgres_dsn).connect("test") as db:
        install_functions(db, {"quiet": "simple"})
        fill(db, 3)
        index = made(db, postgres_dsn, "mail2-small", 8, 3)
        make_first_live(db, URL, index.spec.name)
        db.execute("set search_path = ''")
        text = f"select message_id from {quoted}.search_fulltext('word1')"
        assert db.execute(text.encode()).fetchall() == [("m1",)]
        near = f"select message_id from {quoted}.search_semantic('[1,2,3,4,5,6,7,8]')"
        assert len(db.execute(near.encode()).fetchall()) == 3
