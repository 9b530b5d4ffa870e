"""The live index, looked up once for each search and asked with its own encoder.

So a searcher that stays open follows a promotion with its next query, and a search that was on its
way to an index that is retired is repeated. What makes an index live:
steps/index_lifecycle.py.

[look_up] What a search looks up before it asks the indexes, in one round trip to PostgreSQL.

The live indexes, the query in the stems of each language, whether the statistics of words are
others, and which messages pass the filters that no index knows, where they are few. After each
ANALYZE, in another one, also whether lists are stored that are not searched.
"""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypeVar

import psycopg

from mail_assets.encoding.models import DEFAULT_PRECISION, STATIC, LocalModel
from mail_assets.search.field_conditions import IndexFilter
from mail_assets.search.filters import MessageFilter
from mail_assets.search.language.request import VECTOR_MODES
from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.query import Frequencies, FrequencyReader, Query, ask_query
from mail_assets.tables.health import find_left_lists
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Floats, Match, MissingIndexError, VectorError, VectorIndex
from mail_assets.words.index import WordIndex, WordsError

if TYPE_CHECKING:
    from mail_assets.encoding.open import Encoder


#: Sends the look-up of the live index of words; what it returns reads the answer and opens it.
AskWords: TypeAlias = Callable[[psycopg.Connection], Callable[[], WordIndex]]

#: Queries whose vectors are kept, 2 MB of them: another page, filter or count asks for them again.
KEPT_VECTORS = 1_000

L = TypeVar("L")
T = TypeVar("T")

#: Encoder and precision of an index.
LiveName = tuple[str, str]


class Model(NamedTuple):
    """An encoder; `encode_query` keeps the vectors of the last queries."""

    encoder: "Encoder"
    encode_query: Callable[[str], Floats]


class VectorSearch(Protocol):
    """One vector index, which is searched by text."""

    @property
    def name(self) -> LiveName:
        """What the index is told by from others."""

    def max_constraints(self) -> int:
        """Return how many constraints a filter may have, each value of $in is one."""

    def max_matches(self) -> int:
        """Return how many matches the index returns at most."""

    def nearest(
        self, text: str, top_k: int, where: Filter | None, *, from_mail: bool = False
    ) -> list[Match]:
        """Return the vectors nearest to a query, or a text from the mail, nearest first."""

    def reranker(self) -> Model | None:
        """Return the model that ranks what is found anew, None where the index ranks by it."""

    def similarities(self, text: str, others: Sequence[str]) -> list[float]:
        """Return the cosine similarity of a query to each of some texts."""

    def unknown_share(self, text: str) -> float:
        """Return how much of a query the encoder does not know, 0 to 1."""


class VectorSource(Protocol):
    """Where the vector index of a search comes from."""

    def ask(self, connection: psycopg.Connection) -> Callable[[], VectorSearch]:
        """Send the look-up of the live index; return what reads its answer and opens it."""


@dataclass(frozen=True)
class EncodedIndex:
    """An index and the encoder that made its vectors; both functions are told an encoder's name."""

    name: LiveName
    index: VectorIndex
    open_encoder: Callable[[str, str], "Encoder"]
    encode_query: Callable[[str, str, str], Floats]

    def max_constraints(self) -> int:
        """Return how many constraints a filter may have, each value of $in is one."""
        return self.index.capabilities.max_constraints

    def max_matches(self) -> int:
        """Return how many matches the index returns at most."""
        return self.index.capabilities.max_top_k

    def nearest(
        self, text: str, top_k: int, where: Filter | None, *, from_mail: bool = False
    ) -> list[Match]:
        """Return the vectors nearest to a query, nearest first.

        The vector of a text from the mail is not kept: the message may be forgotten.

        Raises:
            MissingIndexError: nothing is indexed yet.
            VectorError: the index fails.
        """
        if from_mail:
            vector = self.open_encoder(*self.name).encode_query(text)
        else:
            vector = self.encode_query(*self.name, text)
        try:
            return self.index.query(vector, top_k, where, metadata=False)
        except MissingIndexError:
            raise MissingIndexError(
                f"{self.index.label}: nothing is indexed yet with encoder {' '.join(self.name)}; "
                "run `mail-assets backfill`, or search with --mode fulltext"
            ) from None

    def reranker(self) -> Model | None:
        """Return the model that the table of a static index was made from."""
        name, precision = self.name
        return self._model(name, DEFAULT_PRECISION) if precision == STATIC else None

    def similarities(self, text: str, others: Sequence[str]) -> list[float]:
        """Return the cosine similarity of a query to each of some texts, by the model."""
        if not others:
            return []
        model = self.reranker() or self._model(*self.name)
        query = model.encode_query(text)
        return [round(float(one @ query), 6) for one in model.encoder.encode_documents(others)]

    def unknown_share(self, text: str) -> float:
        """Return the share of a query's tokens that the encoder does not know.

        0 of a model on a server, whose tokenizer is there.
        """
        encoder = self.open_encoder(*self.name)
        if not isinstance(encoder.model, LocalModel):
            return 0.0
        from mail_assets.encoding.tokenizer import unknown_share

        return unknown_share(text, encoder.tokenizer)

    def _model(self, name: str, precision: str) -> Model:
        encode_query = functools.partial(self.encode_query, name, precision)
        return Model(self.open_encoder(name, precision), encode_query)


def follow_live(
    look_up: Callable[[], tuple[object, L]],
    ask: Callable[[L], T],
    found_nothing: Callable[[T], bool],
) -> T:
    """Return what `ask` makes of a look-up, and of another where an index was retired meanwhile.

    `look_up` also returns what the live indexes are told by. An index that is being deleted fails,
    or has nothing: LanceDB may delete the newest version before the first one, which is empty.

    Raises:
        VectorError, WordsError: an index fails, and is live all the same.
    """
    live, looked_up = look_up()
    try:
        answer = ask(looked_up)
    except (VectorError, WordsError):
        now, again = look_up()
        if live == now:
            raise
        return ask(again)
    if not found_nothing(answer):
        return answer
    now, again = look_up()
    return answer if live == now else ask(again)


class LiveIndex:
    """The live index of a bucket.

    `ask_live` sends the look-up of the encoder and precision of the live index, and returns what
    reads the answer, so that it travels with other statements; the others open what belongs to
    these two. The index stays open until another is live: to open it takes 3 ms.
    """

    def __init__(
        self,
        ask_live: Callable[[psycopg.Connection], Callable[[], LiveName]],
        open_index: Callable[[str, str], VectorIndex],
        open_encoder: Callable[[str, str], "Encoder"],
    ) -> None:
        self._ask_live = ask_live
        self._open_index = open_index
        self._open_encoder = open_encoder
        self._encode_query = functools.lru_cache(KEPT_VECTORS)(
            lambda name, precision, text: open_encoder(name, precision).encode_query(text)
        )
        self._kept: tuple[LiveName, VectorIndex] | None = None

    def ask(self, connection: psycopg.Connection) -> Callable[[], EncodedIndex]:
        """Send the look-up; what is returned opens the index, which may take seconds at first.

        Raises:
            LifecycleError: (then) this version does not have the encoder of the live index.
        """
        answer = self._ask_live(connection)

        def open_live() -> EncodedIndex:
            live = answer()
            self._open_encoder(*live)  # now: what opens an encoder is not the search's own time
            return EncodedIndex(live, self._index(live), self._open_encoder, self._encode_query)

        return open_live

    def _index(self, live: LiveName) -> VectorIndex:
        kept = self._kept
        if kept is None or kept[0] != live:
            kept = self._kept = live, self._open_index(*live)
        return kept[1]


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
