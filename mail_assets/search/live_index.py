"""The live vector index: looked up for each search, and searched with its own encoder.

An open searcher uses a newly promoted index from its next query on. If an index is retired during a
search, the search is repeated. indexes/live.py promotes an index.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import psycopg

from mail_assets.encoding.models import DEFAULT_PRECISION, STATIC, LocalModel
from mail_assets.postgres.statements import Pending
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Floats, Match, MissingIndexError, VectorError, VectorIndex
from mail_assets.words.index import WordsError

if TYPE_CHECKING:
    from mail_assets.encoding.open import Encoder

#: Queries whose vectors are cached (2 MB), for another page, filter or count.
KEPT_VECTORS = 1_000

L = TypeVar("L")
T = TypeVar("T")


class LiveName(NamedTuple):
    """Identity of an index: encoder and precision."""

    encoder: str
    precision: str


class Model(NamedTuple):
    """An encoder; `encode_query` caches the vectors of the last queries."""

    encoder: "Encoder"
    encode_query: Callable[[str], Floats]


@dataclass(frozen=True)
class VectorSearch:
    """A vector index that is searched by text, with the encoder that made its vectors.

    `open_encoder` takes name and precision, `encode_query` also the text.
    """

    name: LiveName
    index: VectorIndex
    open_encoder: Callable[[str, str], "Encoder"]
    encode_query: Callable[[str, str, str], Floats]

    def max_constraints(self) -> int:
        """Return how many constraints a filter may have; each value of $in is one."""
        return self.index.capabilities.max_constraints

    def max_matches(self) -> int:
        """Return how many matches the index returns at most."""
        return self.index.capabilities.max_top_k

    def nearest(
        self,
        text: str,
        top_k: int,
        where: Filter | None,
        *,
        from_mail: bool = False,
        estimate: bool = False,
    ) -> list[Match]:
        """Return the vectors nearest to a query, nearest first.

        The vector of a text `from_mail` is not cached: the message may be forgotten. With
        `estimate`, distances may be estimates; `measure` returns exact ones.
        """
        if from_mail:
            vector = self.open_encoder(*self.name).encode_query(text)
        else:
            vector = self.encode_query(*self.name, text)
        try:
            return self.index.query(vector, top_k, where, metadata=False, estimate=estimate)
        except MissingIndexError:
            raise MissingIndexError(
                f"{self.index.label}: nothing is indexed yet with encoder {' '.join(self.name)}; "
                "run `mail-assets backfill`, or search with --mode fulltext"
            ) from None

    def measure(self, text: str, matches: Sequence[Match]) -> Mapping[str, float]:
        """Return the exact distances of matches, by key."""
        return self.index.measure(self.encode_query(*self.name, text), matches)

    def reranker(self) -> Model | None:
        """Return the model that a static index was derived from; None for other indexes."""
        if self.name.precision != STATIC:
            return None
        return self._model(LiveName(self.name.encoder, DEFAULT_PRECISION))

    def similarities(self, text: str, others: Sequence[str]) -> list[float]:
        """Return the cosine similarity of a query to each text, by the model."""
        if not others:
            return []
        model = self.reranker() or self._model(self.name)
        query = model.encode_query(text)
        return [round(float(one @ query), 6) for one in model.encoder.encode_documents(others)]

    def unknown_share(self, text: str) -> float:
        """Return the share of tokens unknown to the encoder; 0 for a model on a server."""
        encoder = self.open_encoder(*self.name)
        if not isinstance(encoder.model, LocalModel):
            return 0.0
        from mail_assets.encoding.checkpoint import unknown_share

        return unknown_share(text, encoder.tokenizer)

    def _model(self, name: LiveName) -> Model:
        return Model(self.open_encoder(*name), functools.partial(self.encode_query, *name))


#: Sends the query for the live vector index; reading the answer opens the index.
AskVectors: TypeAlias = Callable[[psycopg.Connection], Pending[VectorSearch]]


class LiveIndex:
    """The live index of a bucket.

    `ask_live` sends the query for its encoder and precision. The other two functions open the index
    and the encoder of that name. The index stays open until another is live; opening takes 3 ms.
    """

    def __init__(
        self,
        ask_live: Callable[[psycopg.Connection], Pending[LiveName]],
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

    def ask(self, connection: psycopg.Connection) -> Pending[VectorSearch]:
        """Send the query. Reading the answer opens the index, which may take seconds at first.

        Raises:
            LifecycleError: on reading, if this version does not have the encoder of the index.
        """
        return self._ask_live(connection).then(self._open)

    def _open(self, live: LiveName) -> VectorSearch:
        self._open_encoder(*live)  # now, so that it does not count as search time
        if self._kept is None or self._kept[0] != live:
            self._kept = live, self._open_index(*live)
        return VectorSearch(live, self._kept[1], self._open_encoder, self._encode_query)


def follow_live(
    look_up: Callable[[], L],
    identify: Callable[[L], object],
    ask: Callable[[L], T],
    is_empty: Callable[[T], bool],
) -> T:
    """Return `ask(look_up())`; repeat both if an index was retired meanwhile.

    `identify` returns the identity of the indexes in use. An index that is being deleted fails or
    is empty: LanceDB may delete the newest version before the first one, which has no rows.

    Raises:
        VectorError, WordsError: a live index fails.
    """
    first = look_up()
    try:
        answer = ask(first)
    except (VectorError, WordsError):
        again = look_up()
        if identify(first) == identify(again):
            raise
        return ask(again)
    if not is_empty(answer):
        return answer
    again = look_up()
    return answer if identify(first) == identify(again) else ask(again)
