"""Figures of searches that were counted: how many, how quick, how many in vain."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mail_assets.tables.search_audit import DayPart


class Figures(NamedTuple):
    """Figures of some searches.

    `errors` are those that could not be answered, `refused` those that were wrong or too many.
    `nothing_found` is the share of answered ones without a hit. `p50_ms` and `p95_ms` are of
    answered ones, rounded up as the counts are; None where there are none.
    """

    searches: int
    errors: int
    refused: int
    nothing_found: float | None
    p50_ms: int | None
    p95_ms: int | None


def sum_up(parts: Iterable[DayPart]) -> Figures:
    """Return the figures of some counts."""
    given = [*parts]
    answered = [part for part in given if part.status < 400]
    total = _count(answered)
    return Figures(
        searches=_count(given),
        errors=_count(part for part in given if part.status >= 500),
        refused=_count(part for part in given if 400 <= part.status < 500),
        nothing_found=_count(part for part in answered if not part.hits) / total if total else None,
        p50_ms=_find_quantile(answered, 0.5),
        p95_ms=_find_quantile(answered, 0.95),
    )


def _find_quantile(parts: Sequence[DayPart], share: float) -> int | None:
    """Return the least time that a share of the searches did not take longer than."""
    wanted = share * _count(parts)
    seen = 0
    for part in sorted(parts, key=lambda one: one.ms):
        seen += part.searches
        if seen >= wanted:
            return part.ms
    return None


def _count(parts: Iterable[DayPart]) -> int:
    return sum(part.searches for part in parts)
