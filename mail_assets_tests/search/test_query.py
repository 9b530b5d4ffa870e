"""A query in lexemes: PostgreSQL accepts every part, and a word index is asked the same."""

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.search.language.request import Request, RequestError
from mail_assets.search.language.syntax import parse_request
from mail_assets.search.query import LanguageQuery, take_apart
from mail_assets.words.index import Phrase, Prefix, Term, WordQuery
from mail_assets_tests.search.fixed_indexes import read_query


def question(
    connection: psycopg.Connection, query: str, *, shows_addresses: bool = False
) -> LanguageQuery | None:
    request = Request(query, names_only=not shows_addresses)
    found = read_query(connection, parse_request(request), {"a": "english"}, ["a"])
    return found.by_language[0] if found.by_language else None


def test_excluded_identifier_does_not_rank() -> None:
    assert "pg_class" not in parse_request(Request("catalog -pg_class")).text
    assert "pg_class" in parse_request(Request("catalog pg_class")).text


@pytest.mark.parametrize(
    ("query", "words", "required"),
    [
        ("vacuuming tables", WordQuery((Term("vacuum"), Term("tabl"))), ""),
        (
            '"vacuum full" table',
            WordQuery(
                (Term("vacuum"), Term("full"), Term("tabl")),
                required=((Phrase(("vacuum", "full")),),),
            ),
            "('vacuum' <-> 'full')",
        ),
        ("vacuum or analyze", WordQuery((Term("vacuum"), Term("analyz"))), ""),
        (
            '"full b" or "could open"',
            WordQuery(
                (Term("full"), Term("b"), Term("could"), Term("open")),
                required=((Phrase(("full", "b")), Phrase(("could", "open"))),),
            ),
            "('full' <-> 'b' | 'could' <-> 'open')",
        ),
        ("slow -full", WordQuery((Term("slow"),), excluded=("full",)), "(!('full'))"),
        # an excluded phrase is left to PostgreSQL
        ('slow -"d e"', WordQuery((Term("slow"),)), "(!('d' <-> 'e'))"),
        (
            "-(slow full)",
            WordQuery(()),
            "(!('slow') | !('full'))",
        ),
        ("harb*", WordQuery((), required=((Prefix("harb"),),)), "('harb':*)"),
        (
            "happy* -leasing*",
            WordQuery((), ((Prefix("happy"),),), (Prefix("leasing"),)),
            "('happy':*) & (!('leasing':*))",
        ),
        (
            # of a long prefix an index compares the beginning, and would exclude too much
            "slow -harbor_lease*",
            WordQuery((Term("slow"),)),
            "(!('harbor' <-> 'lease':* | 'harbor_lease':*))",
        ),
        (
            "slow -pg_class",
            WordQuery((Term("slow"),), excluded=("pg_class",)),
            "(!('pg' <-> 'class' | 'pg_class'))",
        ),
        # the word index has no stop words: PostgreSQL decides
        ('"out of a table"', WordQuery((Term("tabl"),), required=(("tabl",),)),
         "('=out' <-> '=of' <-> '=a' <-> 'tabl')"),
        ('slow -"out of a table"', WordQuery((Term("slow"),)),
         "(!('=out' <-> '=of' <-> '=a' <-> 'tabl'))"),
        ('slow "of the"', WordQuery((Term("slow"),)), "('=of' <-> '=the')"),
        # a name of stop words is one: they are not asked one by one
        ("slow -to_date", WordQuery((Term("slow"),)), "(!('=to' <-> 'date' | 'to_date'))"),
        # a version is found by its beginnings
        ("slow -v9.6", WordQuery((Term("slow"),), excluded=("9.6.",)), "(!('9.6.'))"),
        # one stop word requires nothing; with a field PostgreSQL alone decides
        ('slow "of" -the', WordQuery((Term("slow"),)), ""),
        ("slow or from:tom", WordQuery((Term("slow"),)), ""),
        # every word is required where the newest come first
        ("slow tables sort:date", WordQuery((), required=(("slow",), ("tabl",))),
         "('slow') & ('tabl')"),
    ],
)  # fmt: skip
def test_query_has_terms_and_required_words(
    connection: psycopg.Connection, query: str, words: WordQuery, required: str
) -> None:
    found = question(connection, query)
    assert found is not None
    assert (found.words, found.required) == (words, required)
    connection.execute("select %s::tsquery", [found.required])


def test_pieces_of_a_name_are_kept_apart_from_the_words(connection: psycopg.Connection) -> None:
    found = question(connection, "why does harbor_lease_renew renewing fail")
    assert found is not None
    assert {*found.lexemes} == {"renew", "fail"}
    assert {*found.pieces} == {"harbor", "leas", "renew"}
    shares = {term.lexeme: term.share for term in found.words.terms}
    assert (shares["harbor_lease_renew"], shares["renew"], shares["leas"]) == (2, 1, 0.25)


@pytest.mark.parametrize("query", ["the of and", "?!... ()", "-the", '-"this"', "\u3000'"])
def test_query_without_words_is_empty(connection: psycopg.Connection, query: str) -> None:
    assert question(connection, query) is None


def test_lists_of_one_language_are_asked_together(connection: psycopg.Connection) -> None:
    languages = {"dev": "english", "users": "english", "es": "spanish", "gone": "french"}
    asked = parse_request(Request("running"))
    questions = read_query(connection, asked, languages, ["users", "es", "dev"]).by_language
    assert [(q.language, q.lists) for q in questions] == [
        ("english", ["dev", "users"]),
        ("spanish", ["es"]),
    ]
    assert questions[0].words != questions[1].words


NASTY = st.sampled_from(
    ["'", "''", "\\", "\\'", "&", "|", "!", ":*", "<->", "(", ")", '"', "-", "%", "$1", "%s", "\n",
     "--- a/it's\\n", "diff --git a/x'y\\ b/z", "pg_class", "a.b_c", "';drop table x;--", "or", "ж",
     "-it's", "-\\'", '"it\'s \\"', "it's*", "abc*", "-(", "a_b*", "from:x'"]
)  # fmt: skip


@given(st.lists(NASTY | st.text(max_size=12), max_size=8).map(" ".join), st.booleans())
@settings(max_examples=200)
def test_no_query_is_an_error_in_postgres(
    connection: psycopg.Connection, query: str, by_date: bool
) -> None:
    query = query.replace("\0", "").encode("utf-8", "ignore").decode() + " sort:date" * by_date
    try:
        found = question(connection, query)
    except RequestError:
        return
    if found:
        connection.execute("select %s::tsquery", [found.required])
        for match in found.matches.values():
            connection.execute("select %s::tsquery", [match.tsquery])


@pytest.mark.parametrize("query", ["ж" * 2000, "x" * 2000, "x_" * 900, "a b " * 499])
def test_query_as_long_as_allowed_is_no_error(connection: psycopg.Connection, query: str) -> None:
    question(connection, query)


@pytest.mark.parametrize(
    ("query", "identifiers", "parts", "words"),
    [
        ("harbor_lease_renew", "harbor_lease_renew", "", ""),
        ("a access/heap/heapam.c", "access/heap/heapam.c heapam.c", "heap/heapam.c", "a"),
        ("40P01 in pg_class", "40p01 pg_class", "", "in"),
        ("9.6.1 is out", "9.6.1", "9.6. 9.6.1.", "is out"),
        ("plain well-known words", "", "", "plain well known words"),
        ("planner/optimizer", "", "", "planner optimizer"),
    ],
)
def test_identifiers_are_names_and_the_file_of_a_path(
    query: str, identifiers: str, parts: str, words: str
) -> None:
    parsed = take_apart(query)
    found = (parsed.identifiers, parsed.identifier_parts, parsed.words)
    assert found == (identifiers.split(), parts.split(), words.split())


def test_parts_of_addresses_are_asked_where_they_are_shown(connection: psycopg.Connection) -> None:
    hidden = question(connection, "tgl@sss.example -jo")
    shown = question(connection, "tgl@sss.example -jo", shows_addresses=True)
    assert hidden
    assert shown
    assert "@" not in f"{hidden.words}{hidden.required}"
    assert {term.lexeme for term in shown.words.terms} == {
        "@tgl@sss.example", "@tgl", "@sss", "@example",
    }  # fmt: skip
    assert shown.words.excluded == ("jo", "@jo")
    assert shown.required == "(!('jo' | '@jo'))"
