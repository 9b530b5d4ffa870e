"""A vector index whose answer the test decides."""

from collections.abc import Callable

from mail_assets.search.semantic_leg import HYBRID_DEPTH
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Match

Nearest = Callable[[str, int, Filter | None], list[Match]]


class FixedVectors:
    """Answers every text with what a function returns."""

    def __init__(self, nearest: Nearest, max_matches: int = HYBRID_DEPTH) -> None:
        self._nearest = nearest
        self._max_matches = max_matches

    def warm_up(self) -> None:
        """Nothing has to be opened."""

    def max_matches(self) -> int:
        return self._max_matches

    def nearest(self, text: str, top_k: int, where: Filter | None) -> list[Match]:
        return self._nearest(text, top_k, where)


def always(*matches: Match) -> FixedVectors:
    """Return an index that answers every text with the same matches."""
    return FixedVectors(lambda *_: [*matches])
