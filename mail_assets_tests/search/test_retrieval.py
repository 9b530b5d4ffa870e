"""How deep the indexes are asked where a filter is applied behind them."""

from collections.abc import Callable, Set
from typing import Any

import psycopg
import pytest

from mail_assets.search import look_up, retrieval
from mail_assets.search.filters import MessageFilter
from mail_assets.search.fulltext import ENOUGH
from mail_assets.search.language.request import Request
from mail_assets.search.matches import ConfirmedMatches, Identity, IndexMatches, confirm_matches
from mail_assets.search.retrieval import deepen, widen
from mail_assets.search.searcher import Searcher
from mail_assets.search.semantic import HYBRID_CHUNKS
from mail_assets.vectors.index import Match
from mail_assets.words.index import WordIndex, WordMatch
from mail_assets.words.query import WordQuery
from mail_assets_tests.sample_corpus import Corpus, Search, ids
from mail_assets_tests.search.fixed_vectors import FixedVectors, asking

MOST = 4_800


@pytest.mark.parametrize(
    ("asked", "found", "passed", "depth"),
    [
        (150, 150, 100, 0),  # enough pass
        (150, 149, 0, 0),  # there is no more
        (150, 150, 90, 400),  # four times what is wanted, not to be asked again
        (1_200, 1_200, 80, 3_000),  # twice what it takes, if as many pass there
        (150, 150, 15, 2_000),  # a tenth passes: 1,000 would do, if as many did there
        (150, 150, 1, MOST),
        (150, 150, 0, MOST),  # at once, not step by step
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
    """An index of words that has as many messages as it is asked for, none of them stored."""

    label = "deep words"

    def __init__(self, words: WordIndex) -> None:
        self.asked: list[int] = []
        self._match = words.search(WordQuery((), (("leas",),)), 1)[0]

    def search(self, query: WordQuery, top_k: int, where: object = None) -> list[WordMatch]:
        self.asked.append(top_k)
        return [self._match._replace(message_id=f"{n}@x", score=1.0) for n in range(top_k)]

    def list_ids(self, query: WordQuery, most: int, where: object = None) -> list[str]:
        return [f"{n}@x" for n in range(most)]


@pytest.mark.parametrize(
    ("query", "by_words", "by_meaning"),
    [
        ("lease", [150], [50]),
        # the filter is behind both, and few messages of the corpus do not pass it
        ("lease -subject:zebra", [150, 4_800], [200, 2_000]),
        # each text would be looked through for the phrase: by words alone
        ('"the lease"', [150, 1_200], [200]),
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
    asked: list[int] = []

    def nearest(_: str, top_k: int, where: object) -> list[Match]:
        asked.append(top_k)
        return [Match(f"{n}#0", 0.1, {}) for n in range(top_k)]

    deep = DeepWords(words)
    vectors = FixedVectors(nearest, 10_000)
    searcher = Searcher(connection, asking(deep), vectors, corpus.settings.languages)  # type: ignore[arg-type]
    read: list[tuple[IndexMatches, Set[Identity]]] = []
    monkeypatch.setattr(retrieval, "confirm_matches", record_matches(read))
    assert searcher.search(Request(query, lists=("harbor-dev",))).hits == ()
    assert (deep.asked, asked) == (by_words, by_meaning)
    # what was refused once is not read again
    found = [len(one.by_words) + len(one.by_meaning) for one, _ in read]
    assert [len(refused) for _, refused in read] == [0, *found][:-1]


def record_matches(
    read: list[tuple[IndexMatches, Set[Identity]]],
) -> Callable[..., ConfirmedMatches]:
    def confirm(
        connection: psycopg.Connection,
        filters: MessageFilter,
        matches: IndexMatches,
        *lexemes: Any,
        refused: Set[Identity],
        threads: bool,
    ) -> ConfirmedMatches:
        read.append((matches, refused))
        return confirm_matches(
            connection, filters, matches, *lexemes, refused=refused, threads=threads
        )

    return confirm


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
    monkeypatch.setattr(retrieval, "SPARE", 20)
    asked: list[int] = []

    def nearest(_: str, top_k: int, where: object) -> list[Match]:
        asked.append(top_k)
        return []

    deep, vectors = DeepWords(words), FixedVectors(nearest, 10_000)
    searcher = Searcher(connection, asking(deep), vectors, corpus.settings.languages)  # type: ignore[arg-type]
    searcher.search(Request(query))
    first = (deep.asked[0], asked[0])
    assert (first >= (20 * ENOUGH, 20 * HYBRID_CHUNKS)) if is_known else (first == (150, 200))


def test_index_is_not_asked_twice_at_one_depth(
    connection: psycopg.Connection,
    corpus: Corpus,
    words: WordIndex,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the vectors too few pass; of the words there are no more."""
    monkeypatch.setattr(retrieval, "MAX_NEAREST", 400)
    asked: list[int] = []

    def nearest(_: str, top_k: int, where: object) -> list[Match]:
        asked.append(top_k)
        return [Match(f"{n}#0", 0.1, {}) for n in range(top_k)]

    class Counted:
        label = words.label
        asked = 0

        def search(self, query: WordQuery, top_k: int, where: object = None) -> list[WordMatch]:
            self.asked += 1
            return words.search(query, top_k, where)  # type: ignore[arg-type]

        def list_ids(self, query: WordQuery, most: int, where: object = None) -> list[str]:
            return words.list_ids(query, most, where)  # type: ignore[arg-type]

    counted = Counted()
    vectors = FixedVectors(nearest, 10_000)
    searcher = Searcher(connection, asking(counted), vectors, corpus.settings.languages)  # type: ignore[arg-type]
    found = searcher.search(Request("lease -subject:zebra", lists=("harbor-dev",)))
    assert found.hits
    assert (counted.asked, asked) == (1, [200, 400])


@pytest.mark.parametrize(
    ("beside", "is_deeper"),
    [
        # PostgreSQL named the messages, and knows nothing more of them
        ("subject:lease", False),
        ("subject:lease -zebra", True),
        ('subject:lease "lease"', True),
        ("(subject:lease or zebra) subject:lease", True),
        # the index of words named them
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
    beside: str,
    is_deeper: bool,
) -> None:
    query = f"queue {beside} list:harbor-dev mode:semantic"
    hit = search(query, limit=1).hits[0]
    every = [Match(f"{n}#0", 0.1, {}) for n in range(2_000)]
    every.insert(100 if is_deeper else 0, Match(hit.chunks[0].key, 0.1, {}))
    asked: list[int] = []

    def nearest(_: str, top_k: int, where: Any) -> list[Match]:
        asked.append(top_k)
        assert [*where] == ["message_id"]
        return every[:top_k]

    vectors = FixedVectors(nearest, 10_000, 10_000)
    searcher = Searcher(connection, asking(words), vectors, corpus.settings.languages)
    assert ids(searcher.search(Request(query))) == [hit.message_id]
    assert asked == ([100, 2_000] if is_deeper else [100])
