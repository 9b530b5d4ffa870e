"""What a search looks up before it asks the indexes, in one round trip to PostgreSQL.

The live indexes, the query in the stems of each language, whether the statistics of words are
others, and which messages pass the filters that no index knows, where they are few. After each
ANALYZE, in another one, also whether lists are stored that are not searched.
"""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import psycopg

from mail_assets.search.filters import MessageFilter
from mail_assets.search.frequencies import Frequencies, FrequencyReader
from mail_assets.search.index_filters import IndexFilter
from mail_assets.search.live_index import AskWords, VectorSearch, VectorSource
from mail_assets.search.query import Query, ask_query
from mail_assets.search.request import VECTOR_MODES
from mail_assets.search.syntax import ParsedRequest
from mail_assets.tables.health import find_left_lists
from mail_assets.words.index import WordIndex

#: Messages that an index of PostgreSQL may find for a filter, so that the others are asked about
#: these alone, and nothing is missed; of more, the best of all are looked at until enough pass.
FEW = 10_000
#: Messages, evenly spread, by which it is told beforehand that an index would find MANY; so many of
#: these are no chance: of FEW among 2 million, 10 are in none of 100,000 samples.
SPREAD, MANY, LEAST = 300, 15_000, 10
#: Queries whose stems are kept.
KEPT_QUERIES = 1_000


class Passing(NamedTuple):
    """The ids of the messages that pass, None where they are many or the indexes know them.

    Of many, `share` is about how many of all messages they are: 0 to 1.
    """

    ids: tuple[str, ...] | None = None
    share: float | None = None


class LookedUp(NamedTuple):
    """What a search starts with.

    `filters` has the words that the query requires, `vector_filter` is what the vector index checks
    of it; `passing` and `share` are those of `Passing`.
    `opening_ms` was spent on opening index and encoder, which is not the search's own time.
    """

    query: Query
    filters: MessageFilter
    vector_filter: IndexFilter
    frequencies: Frequencies
    words: WordIndex
    vectors: VectorSearch | None
    passing: tuple[str, ...] | None
    share: float | None
    opening_ms: float

    @property
    def live(self) -> tuple[object, str]:
        """What the indexes are told by from others."""
        return self.vectors and self.vectors.name, self.words.label


class LookUp:
    """Looks up over one connection; `languages` maps lists to text search configurations."""

    def __init__(
        self,
        connection: psycopg.Connection,
        ask_words: AskWords,
        vectors: VectorSource,
        languages: Mapping[str, str],
    ) -> None:
        self._connection = connection
        self._ask_words = ask_words
        self._vectors = vectors
        self._languages = languages
        self._frequencies = FrequencyReader(connection)
        self._queries: dict[tuple[object, ...], Query] = {}
        self._left: tuple[Frequencies | None, bool] | None = None

    def read(self, parsed: ParsedRequest, filters: MessageFilter) -> LookedUp:
        """Look up what a request needs; the vector index only where its mode asks one.

        Raises:
            BucketError, LifecycleError, EncoderError: the live index cannot be asked.
        """
        vectors = parsed.ranks and parsed.request.mode in VECTOR_MODES
        with self._connection.pipeline():
            index = self._vectors.ask(self._connection) if vectors else None
            words = self._ask_words(self._connection)
            frequencies = self._frequencies.ask()
            passing = self._ask_passing(parsed, filters)
            asked = self._ask_query(parsed, filters)
        # in the pipeline, the first answer that is read would take a round trip of its own
        query, known = asked(), passing()
        began = time.perf_counter()
        opened, opened_words = index() if index else None, words()
        opening_ms = (time.perf_counter() - began) * 1000
        statistics = frequencies()
        limits = self.name_lists(filters, statistics).require_words(query)
        where = limits.vector_filter(opened.max_constraints() if opened else 0)
        return LookedUp(query, limits, where, statistics, opened_words, opened, *known, opening_ms)

    def name_lists(
        self, filters: MessageFilter, statistics: Frequencies | None = None
    ) -> MessageFilter:
        """Return the filter, which names its lists to indexes that have others than are searched.

        What is found of these passes nowhere, and would take the place of what does. Whether there
        are any is read again where the statistics are others, as they are after much mail.
        """
        if self._left is None or self._left[0] is not (statistics or self._left[0]):
            left = find_left_lists(self._connection, self._languages)
            self._left = statistics, bool(left)
        return filters.name_lists() if self._left[1] else filters

    def index(self) -> VectorSearch:
        """Look up and open the live index alone."""
        return self._vectors.ask(self._connection)()

    def read_query(self, parsed: ParsedRequest, filters: MessageFilter) -> Query:
        """Return the query in the stems of the lists that are searched."""
        return self._ask_query(parsed, filters)()

    def _ask_query(self, parsed: ParsedRequest, filters: MessageFilter) -> Callable[[], Query]:
        key = (parsed, *filters.lists)
        if known := self._queries.get(key):
            return lambda: known
        asked = ask_query(self._connection, parsed, self._languages, filters.lists)

        def answer() -> Query:
            if len(self._queries) >= KEPT_QUERIES:
                self._queries.pop(next(iter(self._queries)))
            self._queries[key] = asked()
            return self._queries[key]

        return answer

    def _ask_passing(self, parsed: ParsedRequest, filters: MessageFilter) -> Callable[[], Passing]:
        """Ask for the messages that pass, unless the indexes that rank know them all."""
        if not filters.indexed or (parsed.ranks and filters.word_filter.complete):
            return Passing
        found = filters.find_by_index()
        sample = {"spread": SPREAD, "many": MANY, "least": LEAST}
        parameters = {**found.parameters, **sample, "most": FEW + 1}
        asked = self._connection.execute(found.statement("passing"), parameters)

        def answer() -> Passing:
            rows = asked.fetchall()
            if len(rows) > FEW or (rows and rows[-1][0] is None):
                return Passing(share=rows[-1][-1] or None)
            return Passing(tuple({message_id for message_id, passes, _ in rows if passes}))

        return answer
