"""Filters hold in every mode and for every hit."""

import datetime as dt
from typing import Any

import psycopg
import pytest

from mail_assets.search import field_conditions, filters, retrieval
from mail_assets.search.filters import compile_filters
from mail_assets.search.language.request import MODES, Mode, Request, RequestError
from mail_assets.search.language.syntax import parse_request
from mail_assets.search.live_index import VectorSearch
from mail_assets.search.matches import read_copies
from mail_assets.search.searcher import Searcher
from mail_assets.vectors.filters import count_constraints
from mail_assets.words.index import WordIndex
from mail_assets_tests.sample_corpus import ROOT, Corpus, Search, ids
from mail_assets_tests.search.fixed_indexes import always, asking

LONGEST = f"{'l' * 64}@{'d' * 40}.example.es"


@pytest.mark.parametrize(
    ("fields", "expected", "whole"),
    [
        ({}, None, True),
        ({"lists": ("harbor-es",)}, {"list": {"$in": ["harbor-es"]}}, True),
        ({"after": dt.date(1970, 1, 2)}, {"sent_at": {"$gte": 86400}}, True),
        ({"before": dt.date(1969, 12, 31)}, {"sent_at": {"$lt": -86400}}, True),
        ({"query": "x has:patch"}, {"kind": {"$in": ["patch"]}}, True),
        ({"query": "x is:reply"}, None, False),
        ({"query": "x to:x month:2024-03"}, {"month": {"$in": [202403]}}, False),
        (
            {"lists": ("harbor-es",), "sender": "dddd"},
            {"$and": [{"list": {"$in": ["harbor-es"]}}, {"sender": {"$in": [LONGEST[:80]]}}]},
            True,
        ),
    ],
)
def test_vector_filter_has_the_fields_of_the_index(
    connection: psycopg.Connection,
    corpus: Corpus,
    fields: dict[str, Any],
    expected: object,
    whole: bool,
) -> None:
    parsed = parse_request(Request(**{"query": "x", **fields}))
    limits = compile_filters(connection, parsed.clauses, corpus.settings.languages)
    assert limits is not None
    assert limits.vector_filter(100) == (expected, whole)


@pytest.mark.parametrize(
    ("most", "expected", "whole"),
    [
        (100, ["list", "sender", "sent_at"], True),
        (4, ["list", "sent_at"], False),
        (1, ["sent_at"], False),
        (0, [], False),
    ],
)
def test_filter_has_at_most_the_constraints_of_the_index(
    connection: psycopg.Connection, corpus: Corpus, most: int, expected: list[str], whole: bool
) -> None:
    parsed = parse_request(
        Request("x -list:harbor-dev from:example.com after:2024-03-05", mode="fulltext")
    )
    limits = compile_filters(connection, parsed.clauses, corpus.settings.languages)
    assert limits is not None
    found = limits.vector_filter(most)
    assert [*fields_of(found.where)] == expected
    assert found.where is None or count_constraints(found.where) <= most
    assert found.complete == whole


def fields_of(where: Any) -> list[str]:
    return [name for part in (where or {}).get("$and", [where] if where else []) for name in part]


FILTERS: list[dict[str, Any]] = [
    {"lists": ("harbor-users",)},
    {"lists": ("harbor-es", "harbor-dev")},
    {"after": dt.date(2024, 4, 1)},
    {"before": dt.date(2024, 3, 10)},
    {"after": dt.date(2024, 3, 10), "before": dt.date(2024, 3, 20)},
    {"sender": "solheim"},
    {"sender": "INGRID@solheim.example.org"},
    {"sender": "Ingrid S"},
    {"lists": ("harbor-users",), "after": dt.date(2024, 3, 5), "sender": "example.com"},
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("filters", FILTERS, ids=lambda f: ",".join(f))
def test_filters_hold_for_every_hit(search: Search, mode: str, filters: dict[str, Any]) -> None:
    response = search("harbor job queue", mode=mode, limit=100, **filters)
    assert response.hits
    lists = filters.get("lists", ("harbor-dev", "harbor-users", "harbor-es"))
    for hit in response.hits:
        sent = dt.datetime.fromisoformat(hit.sent_at).date()
        assert {*hit.lists} & {*lists}
        assert filters.get("after", dt.date.min) <= sent < filters.get("before", dt.date.max)
        sender = filters.get("sender", "").lower()
        assert sender in hit.from_email or sender in hit.from_name.lower()


def test_all_messages_of_a_small_filter_are_found_by_meaning(
    search: Search, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieval, "FLOORS", {})
    rows = connection.execute(
        "select distinct m.message_id from messages m join chunks using (message_id, list)"
        " where m.from_email = 'ingrid@solheim.example.org'"
    ).fetchall()
    fields = {"limit": 100, "group": "message", "sender": "ingrid@solheim.example.org"}
    found = ids(search("lease", mode="semantic", **fields))
    assert {*found} == {message_id for (message_id,) in rows}


@pytest.mark.parametrize("mode", MODES)
def test_sender_that_matches_nobody_finds_nothing(search: Search, mode: str) -> None:
    response = search("jobs", mode=mode, sender="nobody@nowhere.example")
    assert (response.hits, response.short) == ((), True)


def find_senders(
    connection: psycopg.Connection, sender: str, *, names_only: bool = False
) -> set[str]:
    """Return the ids of the messages of harbor-users that pass a sender filter."""
    clauses = parse_request(Request("x", sender=sender)).clauses
    known = {"harbor-users": "english"}
    limits = compile_filters(connection, clauses, known, names_only=names_only)
    copies = read_copies(connection, limits, "newest", most=1_000) if limits else []
    return {one.message_id for one in copies}


def test_address_does_not_match_longer_addresses(connection: psycopg.Connection) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute(
            "update messages set from_email = 'xci@example.org.test' where message_id = %s", [ROOT]
        )
        assert ROOT not in find_senders(connection, "ci@example.org")
        assert ROOT in find_senders(connection, "ci@example")


@pytest.mark.parametrize("names_only", [False, True])
@pytest.mark.parametrize(
    ("sender", "is_meant"),
    [
        ("Clark Evans", True),
        ("evans, clark", True),
        ("Evans Clark C.", True),
        ("lark 100%_x", True),
        ("Clark", True),
        (", evans ,", True),
        ("Clark Evan Evansson", False),
        ("Clark 100%x", False),
        ("Clark Yuki", False),
        (",", False),
    ],
)
def test_person_is_found_by_words_of_the_name_in_any_order(
    connection: psycopg.Connection, sender: str, is_meant: bool, names_only: bool
) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute(
            "update messages set from_name = 'Clark C. Evans (100%%_X)' where message_id = %s",
            [ROOT],
        )
        found = find_senders(connection, sender, names_only=names_only)
    assert (ROOT in found) is is_meant


def test_word_of_an_address_matches_nobody_by_names_only(connection: psycopg.Connection) -> None:
    assert find_senders(connection, "ingrid solheim.example")
    assert not find_senders(connection, "ingrid solheim.example", names_only=True)


def test_sender_with_too_many_addresses_is_refused(
    connection: psycopg.Connection,
    corpus: Corpus,
    words: WordIndex,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(field_conditions, "MAX_SENDERS", 2)
    searcher = Searcher(connection, asking(words), always(), corpus.settings.languages)
    with pytest.raises(RequestError, match="'example' matches more than 2 addresses"):
        searcher.search(Request("lease", mode="fulltext", sender="example"))


@pytest.mark.parametrize("mode", MODES)
def test_sender_of_many_addresses_is_checked_by_postgresql(
    search: Search, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    pushed = ids(search("lease", mode=mode, limit=100, sender="example.com"))
    monkeypatch.setattr(filters, "MAX_WORD_CONSTRAINTS", 0)
    monkeypatch.setattr(VectorSearch, "max_constraints", lambda _: 0)
    assert {*ids(search("lease", mode=mode, limit=100, sender="example.com"))} == {*pushed} != set()


def test_sender_longer_than_the_index_keeps_is_found(search: Search) -> None:
    found = search("una jirafa", mode="semantic", sender="dddd")
    assert ids(found) == ["longest@example.es"]
    assert len(found.hits[0].from_email) > 80


@pytest.mark.parametrize("name", ["nobody", "HARBOR-DEV", "harbor-dev'", ""])
def test_unknown_list_is_refused_with_the_known_ones(search: Search, name: str) -> None:
    with pytest.raises(RequestError, match="harbor-dev, harbor-es, harbor-users"):
        search("jobs", lists=("harbor-dev", name))


@pytest.mark.parametrize("query", ["x to:ingrid", "x subject:lease", "x file:patch"])
def test_disguised_addresses_are_looked_for_in_hits_alone(
    connection: psycopg.Connection, corpus: Corpus, query: str
) -> None:
    parsed = parse_request(Request(query, names_only=True))
    known = corpus.settings.languages
    limits = compile_filters(connection, parsed.clauses, known, names_only=True)
    assert limits is not None
    found = limits.find_by_index()
    assert "%(signs_" not in found.statement("passing")
    assert "%(signs_" in found.statement("confirmed")
