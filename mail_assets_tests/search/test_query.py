"""A query is taken apart, and PostgreSQL accepts every part."""

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.search.query import (
    LanguageQuery,
    parse_query,
    stem_query,
    strip_operators,
)


def question(connection: psycopg.Connection, query: str) -> LanguageQuery | None:
    found = stem_query(connection, parse_query(query), {"a": "english"}, ["a"])
    return found[0] if found else None


@pytest.mark.parametrize(
    ("query", "wanted", "unwanted"),
    [
        ("plain words", "plain words", ""),
        ("vacuum -full", "vacuum", "full"),
        ('vacuum -"lock table" -full', "vacuum", '"lock table" or full'),
        ("-full vacuum", "vacuum", "full"),
        # options of commands, and dashes in prose, exclude nothing
        ("pg_dump -t --schema-only", "pg_dump t schema-only", ""),
        ("store - a question", "store a question", ""),
        ("read-only user", "read-only user", ""),
        ("(-full)", "( full)", ""),
        ("vacuum -read-only", "vacuum", "read only"),
    ],
)
def test_a_dash_before_a_word_excludes_it_and_no_other_dash_does(
    query: str, wanted: str, unwanted: str
) -> None:
    words = parse_query(query)
    assert (" ".join(words.included.split()), words.excluded) == (wanted, unwanted)


@pytest.mark.parametrize(
    ("query", "identifiers", "parts"),
    [
        ("harbor_lease_renew", ["harbor_lease_renew"], ["harbor", "lease", "renew"]),
        ("access/heap/heapam.c", ["access/heap/heapam.c", "heapam.c"], ["heapam"]),
        ("40P01 in pg_class", ["40p01", "pg_class"], ["class"]),
        ("plain words", [], []),
    ],
)
def test_an_identifier_is_the_name_as_written_and_the_file_of_a_path(
    query: str, identifiers: list[str], parts: list[str]
) -> None:
    words = parse_query(query)
    assert (words.identifiers, words.identifier_parts) == (identifiers, parts)


def test_an_excluded_identifier_is_not_looked_for() -> None:
    assert "pg_class" not in parse_query("catalog -pg_class").identifiers
    assert "pg_class" in parse_query("catalog pg_class").identifiers


@pytest.mark.parametrize(
    ("query", "narrow", "required"),
    [
        ("vacuuming tables", "'vacuum' & 'tabl'", ""),
        ('"vacuum full" table', "'vacuum' <-> 'full' & 'tabl'", "'vacuum' <-> 'full'"),
        ("vacuum or analyze", "'vacuum' | 'analyz'", ""),
        ('"a b" or "c d"', "'b' | 'c' <-> 'd'", "'b' | 'c' <-> 'd'"),
        ("slow vacuum -full", "'slow' & 'vacuum'", "!'full'"),
        ('"b c" -"d e"', "'b' <-> 'c'", "'b' <-> 'c' & !( 'd' <-> 'e' )"),
        ("40P01", "'40p01' | '40p01'", ""),
    ],
)
def test_narrow_has_all_words_and_quotes_and_dashes_require(
    connection: psycopg.Connection, query: str, narrow: str, required: str
) -> None:
    found = question(connection, query)
    assert found is not None
    assert (found.narrow, found.required) == (narrow, required)


def test_the_pieces_of_a_name_are_kept_apart_from_the_words(
    connection: psycopg.Connection,
) -> None:
    found = question(connection, "why does harbor_lease_renew renewing fail")
    assert found is not None
    assert {*found.lexemes} == {"renew", "fail"}
    assert {*found.pieces} == {"harbor", "leas", "renew"}


@pytest.mark.parametrize(
    ("query", "meaning"),
    [
        ('"hot table" -full vacuum', "hot table vacuum"),
        ("plain words", "plain words"),
        ("-full", "-full"),
        ('""', '""'),
    ],
)
def test_the_model_reads_the_query_without_operators(query: str, meaning: str) -> None:
    assert strip_operators(query) == meaning


@pytest.mark.parametrize("query", ["the of and", "?!... ()", "-full", '-"not this"', "\u3000'"])
def test_nothing_is_asked_where_no_word_is_left(connection: psycopg.Connection, query: str) -> None:
    assert question(connection, query) is None


def test_lists_of_one_language_are_asked_together(connection: psycopg.Connection) -> None:
    languages = {"dev": "english", "users": "english", "es": "spanish", "gone": "french"}
    questions = stem_query(connection, parse_query("running"), languages, ["users", "es", "dev"])
    assert [(q.language, q.lists) for q in questions] == [
        ("english", ["dev", "users"]),
        ("spanish", ["es"]),
    ]
    assert questions[0].narrow != questions[1].narrow


NASTY = st.sampled_from(
    ["'", "''", "\\", "\\'", "&", "|", "!", ":*", "<->", "(", ")", '"', "-", "%", "$1", "%s", "\n",
     "--- a/it's\\n", "diff --git a/x'y\\ b/z", "pg_class", "a.b_c", "';drop table x;--", "or", "ж"]
)  # fmt: skip


@given(st.lists(NASTY | st.text(max_size=12), max_size=8).map(" ".join))
@settings(deadline=None, max_examples=150)
def test_no_query_is_an_error_in_postgres(connection: psycopg.Connection, query: str) -> None:
    query = query.replace("\0", "").encode("utf-8", "ignore").decode()
    found = question(connection, query)
    if found:
        connection.execute("select %s::tsquery, %s::tsquery", [found.narrow, found.required])


@pytest.mark.parametrize("query", ["ж" * 2000, "x" * 2000, "x_" * 900, "a b " * 499])
def test_a_query_as_long_as_allowed_is_no_error(connection: psycopg.Connection, query: str) -> None:
    question(connection, query)
