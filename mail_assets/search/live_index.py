"""The index that search asks: the live one, looked up by each query, with its own encoder.

So a searcher that stays open follows a promotion with its next query, and one that was on its way
to an index that is retired asks again. What does not live here: what makes an index live
(steps/index_lifecycle.py).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Match, MissingIndexError, VectorError, VectorIndex

if TYPE_CHECKING:
    from mail_assets.encoding.open import Encoder


class LiveIndex:
    """Finds the vectors nearest to a text in the live index.

    `live` looks up its encoder and precision; `steps.indexes.live_encoder` does.
    """

    def __init__(
        self,
        live: Callable[[], tuple[str, str]],
        open_index: Callable[[str, str], VectorIndex],
        open_encoder: Callable[[str, str], "Encoder"],
    ) -> None:
        self._live = live
        self._open_index = open_index
        self._open_encoder = open_encoder

    def warm_up(self) -> None:
        """Open index and encoder, which may take seconds."""
        live = self._live()
        self._open_encoder(*live)
        self._open_index(*live)

    def deepest(self) -> int:
        """Return how many matches the index gives at most."""
        return self._open_index(*self._live()).capabilities.max_top_k

    def nearest(self, text: str, top_k: int, where: Filter | None) -> list[Match]:
        """Return the nearest vectors, nearest first.

        Raises:
            MissingIndexError: nothing is indexed yet.
            VectorError: the index fails.
            LifecycleError: this version does not have the encoder of the live index.
        """
        live = self._live()
        try:
            return self._ask(live, text, top_k, where)
        except VectorError as error:
            # Retired since we looked: gone, or its files going while they were read.
            now = self._live()
            if now != live:
                return self._ask(now, text, top_k, where)
            if not isinstance(error, MissingIndexError):
                raise
            raise MissingIndexError(
                f"{self._open_index(*live).label}: nothing is indexed yet with encoder "
                f"{' '.join(live)}; run `mail-assets backfill`, or search with --mode fulltext"
            ) from None

    def _ask(
        self, live: tuple[str, str], text: str, top_k: int, where: Filter | None
    ) -> list[Match]:
        vector = self._open_encoder(*live).encode_query(text)
        return self._open_index(*live).query(vector, top_k, where, metadata=False)
