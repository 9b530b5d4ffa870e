"""The live index, looked up once for each search and asked with its own encoder.

So a searcher that stays open follows a promotion with its next query, and a search that was on its
way to an index that is retired is repeated. What makes an index live:
steps/index_lifecycle.py.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypeVar

import psycopg

from mail_assets.encoding.models import DEFAULT_PRECISION, STATIC, LocalModel
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Match, MissingIndexError, VectorError, VectorIndex
from mail_assets.vectors.vector import Floats
from mail_assets.words.errors import WordsError
from mail_assets.words.index import WordIndex

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
