"""Indexes whose answers the test decides, and queries read at once."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import psycopg

from mail_assets.postgres.pending import Pending
from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.live_index import LiveName, VectorSearch
from mail_assets.search.look_up import AskWords
from mail_assets.search.query import Query, ask_query
from mail_assets.search.semantic import HYBRID_CHUNKS
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Match
from mail_assets.words.index import WordIndex

Nearest = Callable[[str, int, Filter | None], list[Match]]


class FixedVectors:
    """Answers every text with the matches of a function; `depths` and `filters` note each call."""

    name = LiveName("fixed", "exact")

    def __init__(
        self, nearest: Nearest, max_matches: int = HYBRID_CHUNKS, max_constraints: int = 50
    ) -> None:
        self._nearest = nearest
        self._max_matches = max_matches
        self._max_constraints = max_constraints
        self.depths: list[int] = []
        self.filters: list[Filter | None] = []

    def ask(self, connection: psycopg.Connection) -> Pending[VectorSearch]:
        return Pending.known(self)

    def max_constraints(self) -> int:
        return self._max_constraints

    def max_matches(self) -> int:
        return self._max_matches

    def nearest(
        self, text: str, top_k: int, where: Filter | None, *, from_mail: bool = False
    ) -> list[Match]:
        self.depths.append(top_k)
        self.filters.append(where)
        return self._nearest(text, top_k, where)

    def reranker(self) -> None:
        """It ranks as the test decides."""

    def similarities(self, text: str, others: Sequence[str]) -> list[float]:
        return [0.0] * len(others)

    def unknown_share(self, text: str) -> float:
        return 0.0


def always(*matches: Match) -> FixedVectors:
    """Return an index that answers every text with the same matches."""
    return FixedVectors(lambda *_: [*matches])


def asking(words: WordIndex) -> AskWords:
    """Return the look-up that finds this index of words live."""
    return lambda connection: Pending.known(words)


def read_query(
    connection: psycopg.Connection,
    request: ParsedRequest,
    languages: Mapping[str, str],
    lists: Iterable[str],
) -> Query:
    """Return a query for some lists; `languages` maps lists to text search configurations."""
    return ask_query(connection, request, languages, lists).read()
