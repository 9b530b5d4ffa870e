"""Look-ups of a search before it asks the indexes, in one round trip to PostgreSQL.

- the live indexes
- the query in the stems of each language
- the number of messages that the word statistics cover
- messages whose whole subject is the query
- mail of commits that change files or functions in the query
- the ids of the messages that pass filters which no index covers, if they are few

After each ANALYZE another round trip finds lists that are stored but not searched.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import psycopg

from mail_assets.postgres.statements import Pending, planned_once, statement
from mail_assets.search.direct_hits import (
    ChangedNames,
    ask_linked,
    ask_whole_subjects,
    read_changed_names,
)
from mail_assets.search.field_conditions import IndexFilter
from mail_assets.search.filters import MessageFilter
from mail_assets.search.language.request import VECTOR_MODES
from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.live_index import AskVectors, VectorSearch
from mail_assets.search.matches import SubjectHit
from mail_assets.search.query import (
    Frequencies,
    FrequencyReader,
    Query,
    ask_query,
    count_candidates,
)
from mail_assets.tables.health import find_left_lists
from mail_assets.words.index import WordIndex

#: Most messages that PostgreSQL finds beforehand for a filter. The other indexes are then asked
#: about these only, and miss none. Of more messages, the best are read until enough pass.
FEW = 10_000
#: SPREAD: size of an evenly spread sample, which estimates whether an index would find MANY
#: messages. Fewer than LEAST sampled matches may be chance: with FEW matches among 2 million
#: messages, none of 100,000 samples had 10.
SPREAD, MANY, LEAST = 300, 15_000, 10
#: Most messages with the words of a phrase in which PostgreSQL compares the order; 5 us each.
MOST_COMPARED = 25_000
#: Queries whose stems are cached.
KEPT_QUERIES = 1_000

#: Sends the query for the live word index; reading the answer opens the index.
AskWords: TypeAlias = Callable[[psycopg.Connection], Pending[WordIndex]]


class Passing(NamedTuple):
    """The ids of the messages that pass; None if there are many, or if the indexes can tell.

    They meet all fields except those `checked` on hits (filters.py); with `says_all` also the
    words, if any. If there are many, `share` is their estimated share of all messages, 0 to 1.
    """

    ids: tuple[str, ...] | None = None
    share: float | None = None
    says_all: bool = False


class LookedUp(NamedTuple):
    """The values that a search looks up before it asks the indexes.

    - `filters`: with the required words of the query; `vector_filter` is the part that the vector
      index checks.
    - `subjects`: messages whose whole subject is the query.
    - `changed`: the files and functions that the query names; `linked`: mail of commits that change
      them.
    - `has_patches`: series of patches are stored, whose versions are one hit.
    - `opening_ms`: milliseconds spent on opening index and encoder; they are not search time.
    """

    query: Query
    filters: MessageFilter
    vector_filter: IndexFilter
    frequencies: Frequencies
    words: WordIndex
    vectors: VectorSearch | None
    passing: Passing
    opening_ms: float
    subjects: tuple[SubjectHit, ...] = ()
    has_patches: bool = False
    linked: tuple[SubjectHit, ...] = ()
    changed: ChangedNames = ChangedNames()

    @property
    def live(self) -> tuple[object, str]:
        """Identity of the indexes in use."""
        return self.vectors and self.vectors.name, self.words.label


class LookUp:
    """Looks up over one connection; `languages` maps lists to text search configurations."""

    def __init__(
        self,
        connection: psycopg.Connection,
        ask_words: AskWords,
        ask_vectors: AskVectors,
        languages: Mapping[str, str],
    ) -> None:
        self._connection = connection
        self._ask_words = ask_words
        self._ask_vectors = ask_vectors
        self._languages = languages
        self._frequencies = FrequencyReader(connection)
        self._queries: dict[tuple[object, ...], Query] = {}
        self._left: tuple[Frequencies | None, bool] | None = None

    def read(self, parsed: ParsedRequest, filters: MessageFilter) -> LookedUp:
        """Look up what a request needs; the vector index only if its mode uses it.

        Raises:
            BucketError, LifecycleError, EncoderError: the live index cannot be searched.
        """
        needs_vectors = parsed.ranks and parsed.request.mode in VECTOR_MODES
        with self._connection.pipeline():
            passing = Pending.known(Passing())
            # unless the indexes can check all conditions
            if filters.indexed and not (parsed.ranks and filters.word_filter.complete):
                passing = self._find_passing(filters)
            with planned_once(self._connection):
                index = self._ask_vectors(self._connection) if needs_vectors else None
                words = self._ask_words(self._connection)
                frequencies = self._frequencies.ask()
                subjects = ask_whole_subjects(self._connection, parsed, filters)
                linked = ask_linked(self._connection, parsed, filters)
                patches = self._connection.execute(statement("search_patches", "has_patches"))
                asked = self._ask_query(parsed, filters)
        query = asked.read()
        began = time.perf_counter()
        opened, opened_words = index.read() if index else None, words.read()
        opening_ms = (time.perf_counter() - began) * 1000
        statistics = frequencies.read()
        limits = self.name_lists(filters, statistics).require_words(query)
        known = passing.read()
        if known.ids is not None:
            known = known._replace(says_all=limits.only_fields)
        elif _finds_phrases(query, filters.lists, statistics):
            worded = filters.require_words(query, by_index=True)
            known = self._find_passing(worded, says_all=True).read()
        where = limits.vector_filter(opened.max_constraints() if opened else 0)
        return LookedUp(
            query,
            limits,
            where,
            statistics,
            opened_words,
            opened,
            known,
            opening_ms,
            subjects.read(),
            patches.fetchone() == (True,),
            linked.read(),
            read_changed_names(parsed),
        )

    def name_lists(
        self, filters: MessageFilter, statistics: Frequencies | None = None
    ) -> MessageFilter:
        """Return the filter; it names its lists if the indexes have lists that are not searched.

        Otherwise messages of those lists would take the place of others. The lists are compared
        again whenever the statistics have changed.
        """
        if self._left is None or self._left[0] is not (statistics or self._left[0]):
            left = find_left_lists(self._connection, self._languages)
            self._left = statistics, bool(left)
        return filters.name_lists() if self._left[1] else filters

    def open_index(self) -> VectorSearch:
        """Look up and open the live vector index only."""
        return self._ask_vectors(self._connection).read()

    def read_query(self, parsed: ParsedRequest, filters: MessageFilter) -> Query:
        """Return the query in the stems of the lists that are searched."""
        return self._ask_query(parsed, filters).read()

    def _ask_query(self, parsed: ParsedRequest, filters: MessageFilter) -> Pending[Query]:
        key = (parsed, *filters.lists)
        if known := self._queries.get(key):
            return Pending.known(known)

        def keep(query: Query) -> Query:
            if len(self._queries) >= KEPT_QUERIES:
                self._queries.pop(next(iter(self._queries)))
            self._queries[key] = query
            return query

        return ask_query(self._connection, parsed, self._languages, filters.lists).then(keep)

    def _find_passing(self, filters: MessageFilter, *, says_all: bool = False) -> Pending[Passing]:
        found = filters.find_by_index()
        sample = {"spread": SPREAD, "many": MANY, "least": LEAST}
        parameters = {**found.parameters, **sample, "most": FEW + 1}
        asked = self._connection.execute(found.statement("passing"), parameters)

        def read() -> Passing:
            ((ids, are_many, share),) = asked.fetchall()
            if are_many:
                return Passing(share=share or None)
            return Passing(tuple(dict.fromkeys(ids)), says_all=says_all)

        return Pending(read)


def _finds_phrases(query: Query, lists: Sequence[str], frequencies: Frequencies) -> bool:
    """Return whether PostgreSQL should find messages that the word index finds only roughly.

    These are phrases with stop words: the index of PostgreSQL finds the words, then it compares
    their order.
    """
    asked = [one for one in query.by_language if one.required]
    if {*lists} != {name for one in asked for name in one.lists}:
        return False
    candidates = sum(count_candidates(one, frequencies) for one in asked)
    return any(one.finds_more for one in asked) and candidates <= MOST_COMPARED
