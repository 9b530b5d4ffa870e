"""Queries with operators, without words, and in several languages."""

import re

import psycopg
import pytest

from mail_assets.search.language.request import MODES, Request
from mail_assets.search.searcher import Searcher
from mail_assets.words.index import WordIndex
from mail_assets_tests.sample_corpus import Search, ids
from mail_assets_tests.search.fixed_indexes import always, asking


@pytest.mark.parametrize(
    "query", ["the of and", "...", "?!", "()", "<>", "''", "--", "\u200b\u3000."]
)
def test_query_without_words_finds_nothing_with_a_note(search: Search, query: str) -> None:
    assert search(query, mode="fulltext").hits == ()
    response = search(query, mode="hybrid")
    assert response.hits == ()
    assert "no signs" in response.notes[0] or "no very common words" in response.notes[0]


def test_excluded_word_is_in_no_fulltext_hit(
    search: Search, connection: psycopg.Connection
) -> None:
    def texts(query: str) -> list[str]:
        """Return the subjects and the new text of all hits."""
        found = ids(search(query, mode="fulltext", limit=100, group="message"))
        rows = connection.execute(
            "select subject from messages where message_id = any(%(ids)s)"
            " union all select text from chunks where message_id = any(%(ids)s)",
            {"ids": found},
        )
        return [text for (text,) in rows]

    excluded = re.compile(r"\bworkers?\b", re.IGNORECASE)
    assert any(map(excluded.search, texts("lease worker")))
    lacking = texts("lease -worker")
    assert lacking
    assert [text for text in lacking if excluded.search(text)] == []


@pytest.mark.parametrize("sort", ["relevance", "date"])
def test_excluded_prefix_removes_only_its_words(search: Search, sort: str) -> None:
    """`harbor_lost` and `harbor_lease_renew` begin with the same eight characters."""
    every, lacking = (
        ids(search(query, mode="fulltext", sort=sort, limit=100, group="message"))
        for query in ("lease", "lease -harbor_lost*")
    )
    assert {*ids(search('"harbor_lease_renew"', mode="fulltext"))} & {*every}
    assert lacking == every


def test_quoted_phrase_is_found_as_it_stands(search: Search) -> None:
    exact = search('"completed jobs leave the hot table"', mode="fulltext")
    assert "20240301081231.GA9735@solheim.example.org" in ids(exact)
    assert ids(search('"table hot the leave jobs completed"', mode="fulltext")) == []


@pytest.mark.parametrize("mode", MODES)
def test_phrase_has_its_stop_words_too(search: Search, mode: str) -> None:
    def found(query: str) -> set[str]:
        return {*ids(search(query, mode=mode, limit=100, group="message"))}

    having, lacking = found('"of the lease"'), found('"lease" -"of the lease"')
    assert having
    assert having.isdisjoint(lacking)
    assert having | lacking == found('"lease"')
    assert found('"lease the of"') == set()


def test_phrase_with_stop_words_may_be_an_alternative(search: Search) -> None:
    either = ids(search('"of the lease" or from:nobody', mode="fulltext", limit=100))
    assert {*either} == {*ids(search('"of the lease"', mode="fulltext", limit=100))}


def test_each_list_is_searched_in_its_language(search: Search) -> None:
    found = search("ejecutamos una de las tareas", mode="fulltext")
    assert ids(found)[0] == "stems@example.es"
    assert found.hits[0].score > 0.3
    assert ids(search("repetidos leases", mode="fulltext", lists=("harbor-dev",)))


def test_message_without_chunks_is_found_by_its_words(
    connection: psycopg.Connection, words: WordIndex
) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute("delete from chunks where message_id = 'quoted@example.es'")
        searcher = Searcher(connection, asking(words), always(), {"harbor-es": "spanish"})
        for mode in ("fulltext", "hybrid"):
            hit = searcher.search(Request("ornitorrinco", mode=mode)).hits[0]
            assert (hit.message_id, hit.chunks) == ("quoted@example.es", ())
