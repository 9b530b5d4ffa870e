"""Indexes whose answers the test decides, and queries read at once."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import psycopg

from mail_assets.postgres.statements import Pending
from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.live_index import LiveName, VectorSearch
from mail_assets.search.look_up import AskWords
from mail_assets.search.query import Query, ask_query
from mail_assets.search.semantic import HYBRID_CHUNKS
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Capabilities, Match
from mail_assets.words.index import WordIndex

Nearest = Callable[[str, int, Filter | None], list[Match]]


class FixedVectors:
    """An index that answers each text with the matches of a function; notes depths and filters.

    It is its own encoder, whose vector of a text is the text, and the look-up that finds it live.
    """

    label = fingerprint = "fixed vectors"

    def __init__(
        self, nearest: Nearest, max_matches: int = HYBRID_CHUNKS, max_constraints: int = 50
    ) -> None:
        self._nearest = nearest
        self.capabilities = Capabilities(
            1, 1, 1, max_matches, 1, list_filter=False, max_constraints=max_constraints
        )
        self.depths: list[int] = []
        self.filters: list[Filter | None] = []

    def __call__(self, connection: psycopg.Connection) -> Pending[VectorSearch]:
        me: Any = self
        name = LiveName("fixed", "exact")
        return Pending.known(VectorSearch(name, me, lambda *_: me, lambda *given: given[-1]))

    def encode_query(self, text: str) -> str:
        return text

    def query(
        self, text: str, top_k: int, where: Filter | None, *, metadata: bool, estimate: bool
    ) -> list[Match]:
        self.depths.append(top_k)
        self.filters.append(where)
        return self._nearest(text, top_k, where)


def always(*matches: Match) -> FixedVectors:
    """Return an index that answers every text with the same matches."""
    return FixedVectors(lambda *_: [*matches])


def asking(words: WordIndex) -> AskWords:
    """Return the look-up that finds this word index live."""
    return lambda connection: Pending.known(words)


def read_query(
    connection: psycopg.Connection,
    request: ParsedRequest,
    languages: Mapping[str, str],
    lists: Iterable[str],
) -> Query:
    """Return a query for some lists; `languages` maps lists to text search configurations."""
    return ask_query(connection, request, languages, lists).read()
