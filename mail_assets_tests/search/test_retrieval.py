"""Indexes are searched as deep as needed, if filters are applied afterwards."""

from typing import Any

import psycopg
import pytest

from mail_assets.search import look_up, retrieval
from mail_assets.search.fulltext import ENOUGH
from mail_assets.search.language.request import Request
from mail_assets.search.matches import ConfirmedMatches, IndexMatches, confirm_matches
from mail_assets.search.retrieval import deepen, widen
from mail_assets.search.searcher import Searcher
from mail_assets.search.semantic import HYBRID_CHUNKS
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Match
from mail_assets.words.index import WordIndex, WordMatch, WordQuery
from mail_assets_tests.sample_corpus import Corpus, Search, ids
from mail_assets_tests.search.fixed_indexes import FixedVectors, asking

MOST = 4_800


@pytest.mark.parametrize(
    ("asked", "found", "passed", "depth"),
    [
        (150, 150, 100, 0),  # enough pass
        (150, 149, 0, 0),  # the index has no more matches
        (150, 150, 90, 400),  # four times as deep, to avoid another request
        (1_200, 1_200, 80, 3_000),  # twice the depth that would suffice at the same share
        (150, 150, 15, 2_000),  # a tenth passes: at that share 1,000 would suffice
        (150, 150, 1, MOST),
        (150, 150, 0, MOST),  # directly, not in steps
        (MOST, MOST, 0, 0),
    ],
)
def test_next_depth_follows_the_share_that_passed(
    asked: int, found: int, passed: int, depth: int
) -> None:
    assert deepen(asked, found, passed, 100, MOST) == depth


@pytest.mark.parametrize(
    ("share", "depth"), [(None, 400), (1.0, 200), (0.5, 400), (0.06, 3_334), (0.01, MOST)], ids=str
)
def test_first_depth_follows_the_share_of_all_messages(share: float | None, depth: int) -> None:
    assert widen(100, share, MOST) == depth


class DeepWords:
    """A word index that finds any number of messages; the database has none of them."""

    label = "deep words"

    def __init__(self, words: WordIndex) -> None:
        self.depths: list[int] = []
        self.filters: list[object] = []
        self._match = words.search(WordQuery((), (("leas",),)), 1)[0]

    def search(self, query: WordQuery, top_k: int, where: object = None) -> list[WordMatch]:
        self.depths.append(top_k)
        self.filters.append(where)
        return [self._match._replace(message_id=f"{n}@x", score=1.0) for n in range(top_k)]

    def list_ids(self, query: WordQuery, most: int, where: object = None) -> list[str]:
        return [f"{n}@x" for n in range(most)]


def make_chunks(_: str, top_k: int, where: object) -> list[Match]:
    return [Match(f"{n}#0", 0.1, {}) for n in range(top_k)]


@pytest.mark.parametrize(
    ("query", "by_words", "by_meaning"),
    [
        ("lease", [150], [50]),
        # both indexes are filtered afterwards, and most messages of the corpus pass
        ("lease -subject:zebra", [150, 4_800], [200, 2_000]),
        ('"the lease"', [150, 4_800], [200, 2_000]),
    ],
)
def test_indexes_are_asked_once_more_if_nothing_passes(
    connection: psycopg.Connection,
    corpus: Corpus,
    words: WordIndex,
    query: str,
    by_words: list[int],
    by_meaning: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, refused = [0], []

    def confirm(*given: Any, **options: Any) -> ConfirmedMatches:
        matches: IndexMatches = given[2]
        read.append(len(matches.by_words) + len(matches.by_meaning))
        refused.append(len(options["refused"]))
        return confirm_matches(*given, **options)

    monkeypatch.setattr(retrieval, "confirm_matches", confirm)
    monkeypatch.setattr(look_up, "MOST_COMPARED", 0)
    deep, vectors = DeepWords(words), FixedVectors(make_chunks, 10_000)
    searcher = Searcher(connection, asking(deep), vectors, corpus.settings.languages)  # type: ignore[arg-type]
    assert searcher.search(Request(query, lists=("harbor-dev",))).hits == ()
    assert (deep.depths, vectors.depths) == (by_words, by_meaning)
    assert refused == read[:-1]  # refused matches are not read again


@pytest.mark.parametrize("lists", [("harbor-dev",), ()])
@pytest.mark.parametrize(
    ("query", "is_named"),
    [
        ('"the lease"', True),
        ('queue "the lease" -subject:zebra', True),
        ('"the lease" -"hot zebra"', True),
        ('"the lease" or "the queue"', True),
        ('"the lease" or zebra', True),
        ('"lease"', False),  # the word index finds these by itself
        ('lease -"the queue"', False),
    ],
)
def test_phrases_with_stop_words_are_named_to_both_indexes(
    connection: psycopg.Connection,
    corpus: Corpus,
    words: WordIndex,
    query: str,
    is_named: bool,
    lists: tuple[str, ...],
) -> None:
    deep, vectors = DeepWords(words), FixedVectors(make_chunks, 10_000, 10_000)
    searcher = Searcher(connection, asking(deep), vectors, corpus.settings.languages)  # type: ignore[arg-type]
    found = searcher.look_up(Request(query, lists=lists))
    assert found.passing.says_all == is_named
    if not is_named:
        return
    searcher.retriever.retrieve(Request(query), found)
    assert ({*deep.depths}, vectors.depths) == ({150}, [50])
    named = {"message_id": {"$in": [*(found.passing.ids or ())]}}
    assert vectors.filters == [named]
    assert str(named) in str(deep.filters)


@pytest.mark.parametrize("mode", ["hybrid", "fulltext", "semantic"])
@pytest.mark.parametrize("order", ["", " sort:date", " sort:oldest"])
@pytest.mark.parametrize(
    "phrase",
    ['"the lease"', 'queue "to the"', '"of the lease" or "is not"', '"the lease" to:harbor'],
)
def test_phrases_are_the_same_where_both_indexes_read_deeper(
    search: Search, mode: str, order: str, phrase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find() -> list[str]:
        found = search(f"{phrase}{order} mode:{mode} group:message", limit=100)
        return [hit.message_id for hit in found.hits]

    monkeypatch.setattr(retrieval, "FLOORS", {})
    by_index = find()
    monkeypatch.setattr(look_up, "MOST_COMPARED", 0)
    assert by_index == find()
    assert by_index


@pytest.mark.parametrize(
    ("query", "is_known"),
    [("lease to:harbor", True), ('"lease" to:harbor', False), ('"the lease" to:harbor', False)],
)
def test_known_share_decides_the_first_depths(
    connection: psycopg.Connection,
    corpus: Corpus,
    words: WordIndex,
    query: str,
    is_known: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(look_up, "MANY", 0)
    monkeypatch.setattr(look_up, "LEAST", 1)
    monkeypatch.setattr(look_up, "MOST_COMPARED", 0)
    monkeypatch.setattr(retrieval, "SPARE", 20)
    deep, vectors = DeepWords(words), FixedVectors(lambda *_: [], 10_000)
    searcher = Searcher(connection, asking(deep), vectors, corpus.settings.languages)  # type: ignore[arg-type]
    searcher.search(Request(query))
    first = (deep.depths[0], vectors.depths[0])
    assert (first >= (20 * ENOUGH, 20 * HYBRID_CHUNKS)) if is_known else (first == (150, 200))


def test_index_is_not_asked_twice_at_one_depth(
    connection: psycopg.Connection,
    corpus: Corpus,
    words: WordIndex,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Too few vectors pass, and the word index has no more messages."""
    monkeypatch.setattr(retrieval, "MAX_NEAREST", 400)

    class Counted:
        label, list_ids = words.label, words.list_ids
        asked = 0

        def search(
            self, query: WordQuery, top_k: int, where: Filter | None = None
        ) -> list[WordMatch]:
            self.asked += 1
            return words.search(query, top_k, where)

    counted, vectors = Counted(), FixedVectors(make_chunks, 10_000)
    searcher = Searcher(connection, asking(counted), vectors, corpus.settings.languages)  # type: ignore[arg-type]
    assert searcher.search(Request("lease -subject:zebra", lists=("harbor-dev",))).hits
    assert (counted.asked, vectors.depths) == (1, [200, 400])


@pytest.mark.parametrize(
    ("others", "is_deeper"),
    [
        # PostgreSQL listed the messages by all conditions
        ("subject:lease", False),
        ("subject:lease -zebra", True),
        ('subject:lease "lease"', True),
        ("(subject:lease or zebra) subject:lease", True),
        # the word index listed them
        ('"lease"', False),
        ('"lease" -zebra', False),
        ('"lease" -"hot zebra"', True),
        ("leas*", False),
        ("harbor_lease*", True),
        ('"lease" -(hot zebra)', True),
    ],
)
def test_named_messages_need_depth_if_checks_are_left(
    connection: psycopg.Connection,
    corpus: Corpus,
    words: WordIndex,
    search: Search,
    others: str,
    is_deeper: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retrieval, "FLOORS", {})
    query = f"queue {others} list:harbor-dev mode:semantic"
    hit = search(query, limit=1).hits[0]
    every = make_chunks("", 2_000, None)
    every.insert(100 if is_deeper else 0, Match(hit.chunks[0].key, 0.1, {}))
    vectors = FixedVectors(lambda _, top_k, where: every[:top_k], 10_000, 10_000)
    searcher = Searcher(connection, asking(words), vectors, corpus.settings.languages)
    assert ids(searcher.search(Request(query, limit=1))) == [hit.message_id]
    assert vectors.depths == ([100, 2_000] if is_deeper else [100])
    assert all([*(where or {})] == ["message_id"] for where in vectors.filters)
