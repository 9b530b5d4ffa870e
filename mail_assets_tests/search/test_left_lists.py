"""Lists that are stored and not configured are not searched, and take no place of others."""

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from mail_assets.search import retrieval
from mail_assets.search.language.request import Request
from mail_assets.search.open import open_searcher
from mail_assets.search.searcher import Searcher
from mail_assets.vectors.index import Match
from mail_assets.words.index import WordIndex, WordMatch
from mail_assets.words.query import WordQuery
from mail_assets_tests.sample_corpus import ROOT, Corpus, Search
from mail_assets_tests.search.fixed_vectors import FixedVectors, always, asking


@pytest.mark.parametrize(
    ("known", "where"),
    [
        (("harbor-dev", "harbor-users"), {"list": {"$in": ["harbor-dev", "harbor-users"]}}),
        (("harbor-dev", "harbor-es", "harbor-users"), None),
    ],
)
def test_indexes_are_asked_by_list_if_others_are_stored(
    connection: psycopg.Connection, words: WordIndex, known: tuple[str, ...], where: object
) -> None:
    asked: list[object] = []

    class Noting:
        label = words.label

        def search(self, query: WordQuery, top_k: int, where: Any = None) -> list[WordMatch]:
            asked.append(where)
            return []

    def nearest(_: str, top_k: int, where: object) -> list[Match]:
        asked.append(where)
        return []

    languages = dict.fromkeys(known, "english")
    asking_words: Any = asking(Noting())  # type: ignore[arg-type]
    searcher = Searcher(connection, asking_words, FixedVectors(nearest), languages)
    searcher.search(Request("ballenas"))
    searcher.similar(ROOT, limit=1)
    assert len(asked) >= 3
    assert all(one == where for one in asked)


def test_unconfigured_list_takes_no_place_of_others(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieval, "SEMANTIC_DEPTH", 1)
    languages = {"harbor-dev": "english", "harbor-users": "english"}
    with open_searcher(replace(corpus.search_settings, languages=languages)) as searcher:
        found = searcher.search(Request("ballenas y tortugas", mode="semantic", limit=1))
    assert found.hits


def test_unconfigured_list_is_not_searched(
    connection: psycopg.Connection, search: Search, words: WordIndex
) -> None:
    ranked = search("ballenas", mode="semantic").hits
    assert ranked[0].message_id == "twice@example.es"
    matches = [*ranked[0].chunks]
    searcher = Searcher(
        connection,
        asking(words),
        always(*(Match(chunk.key, 0.1, {}) for chunk in matches)),
        {"harbor-dev": "english", "harbor-users": "english"},
    )
    assert searcher.search(Request("ballenas")).hits == ()
