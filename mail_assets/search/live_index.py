"""The live index, looked up for each query and queried with its own encoder.

So a searcher that stays open follows a promotion with its next query, and a query that was on its
way to an index that is retired is repeated. What makes an index live: steps/index_lifecycle.py.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Match, MissingIndexError, VectorError, VectorIndex

if TYPE_CHECKING:
    from mail_assets.encoding.open import Encoder


class LiveIndex:
    """Finds the vectors nearest to a text in the live index.

    `find_live` looks up the encoder and precision of the live index, as
    `steps.index_lifecycle.live_encoder` does; the others open what belongs to these two.
    """

    def __init__(
        self,
        find_live: Callable[[], tuple[str, str]],
        open_index: Callable[[str, str], VectorIndex],
        open_encoder: Callable[[str, str], "Encoder"],
    ) -> None:
        self._find_live = find_live
        self._open_index = open_index
        self._open_encoder = open_encoder

    def warm_up(self) -> None:
        """Open index and encoder, which may take seconds."""
        live = self._find_live()
        self._open_encoder(*live)
        self._open_index(*live)

    def max_matches(self) -> int:
        """Return how many matches the index returns at most."""
        return self._open_index(*self._find_live()).capabilities.max_top_k

    def nearest(self, text: str, top_k: int, where: Filter | None) -> list[Match]:
        """Return the vectors nearest to a text, nearest first.

        Raises:
            MissingIndexError: nothing is indexed yet.
            VectorError: the index fails.
            LifecycleError: this version does not have the encoder of the live index.
        """
        live = self._find_live()
        try:
            return self._query(live, text, top_k, where)
        except VectorError as error:
            # Retired since the look-up: deleted, or being deleted while it was read.
            now = self._find_live()
            if now != live:
                return self._query(now, text, top_k, where)
            if not isinstance(error, MissingIndexError):
                raise
            raise MissingIndexError(
                f"{self._open_index(*live).label}: nothing is indexed yet with encoder "
                f"{' '.join(live)}; run `mail-assets backfill`, or search with --mode fulltext"
            ) from None

    def _query(
        self, live: tuple[str, str], text: str, top_k: int, where: Filter | None
    ) -> list[Match]:
        vector = self._open_encoder(*live).encode_query(text)
        return self._open_index(*live).query(vector, top_k, where, metadata=False)
