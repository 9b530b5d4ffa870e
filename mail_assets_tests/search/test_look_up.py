"""Stored lists that are not configured are not searched, and displace no hits of others."""

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from mail_assets.search import retrieval
from mail_assets.search.language.request import Request
from mail_assets.search.open import open_searcher
from mail_assets.search.searcher import Searcher
from mail_assets.vectors.index import Match
from mail_assets.words.index import WordIndex, WordMatch, WordQuery
from mail_assets_tests.sample_corpus import ROOT, Corpus, Search
from mail_assets_tests.search.fixed_indexes import always, asking

CONFIGURED = {"harbor-dev": "english", "harbor-users": "english"}


@pytest.mark.parametrize(
    ("known", "where"),
    [
        ((*CONFIGURED,), {"list": {"$in": [*CONFIGURED]}}),
        (("harbor-dev", "harbor-es", "harbor-users"), None),
    ],
)
def test_indexes_are_asked_by_list_if_others_are_stored(
    connection: psycopg.Connection, words: WordIndex, known: tuple[str, ...], where: object
) -> None:
    class Noting:
        label = words.label
        filters: list[object] = []  # noqa: RUF012

        def search(self, query: WordQuery, top_k: int, where: Any = None) -> list[WordMatch]:
            self.filters.append(where)
            return []

    noting: Any = Noting()
    vectors = always()
    searcher = Searcher(connection, asking(noting), vectors, dict.fromkeys(known, "english"))
    searcher.search(Request("ballenas"))
    searcher.similar(ROOT, limit=1)
    assert len(noting.filters) >= 1
    assert len(vectors.filters) >= 2
    assert all(one == where for one in [*noting.filters, *vectors.filters])


def test_unconfigured_list_takes_no_place_of_others(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieval, "SEMANTIC_DEPTH", 1)
    monkeypatch.setattr(retrieval, "FLOORS", {})
    with open_searcher(replace(corpus.search_settings, languages=CONFIGURED)) as searcher:
        found = searcher.search(Request("ballenas y tortugas", mode="semantic", limit=1))
    assert found.hits


def test_unconfigured_list_is_not_searched(
    connection: psycopg.Connection, search: Search, words: WordIndex
) -> None:
    best = search("ballenas", mode="semantic").hits[0]
    assert best.message_id == "twice@example.es"
    vectors = always(*(Match(chunk.key, 0.1, {}) for chunk in best.chunks))
    searcher = Searcher(connection, asking(words), vectors, CONFIGURED)
    assert searcher.search(Request("ballenas")).hits == ()
