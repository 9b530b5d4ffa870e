"""Comparison of two measurements: what counts as worse.

One index is worse than another, and search worse than it was, in one sense everywhere: nDCG@10
left the interval that it had before, or the queries' differences, resampled, are below zero
(paired bootstrap: Smucker, Allan, Carterette 2007). The first notices one query of few that falls
from the first place; the second notices many queries that lose a little.
"""

from collections.abc import Mapping
from typing import NamedTuple

from mail_assets.evaluation.summary import Estimate, estimate_mean
from mail_assets.search.request import MODES

#: nDCG@10 of each query: mode -> query id -> 0 to 1.
TopicScores = Mapping[str, Mapping[str, float]]


class LostQuery(NamedTuple):
    """A query that is answered worse than it was: its nDCG@10 then and now."""

    mode: str
    query_id: str
    then: float
    now: float


class Change(NamedTuple):
    """A mode then and now, over the queries that both answered; `lost` is in order of the loss."""

    mode: str
    then: Estimate
    now: Estimate
    difference: Estimate
    lost: tuple[LostQuery, ...]

    @property
    def worse(self) -> bool:
        """Whether the drop is more than chance in the choice of queries explains."""
        return self.now.mean < self.then.low or self.difference.high < 0


def compare_topics(then: TopicScores, now: TopicScores) -> list[Change]:
    """Return a change for each mode that has queries in both."""
    return [
        _change(mode, then[mode], now[mode])
        for mode in MODES
        if then.get(mode, {}).keys() & now.get(mode, {}).keys()
    ]


def build_change_row(change: Change) -> dict[str, str | float | bool]:
    """Return a change as a row of a table."""
    return {
        "mode": change.mode,
        "then": change.then.mean,
        "then_low": change.then.low,
        "now": change.now.mean,
        "difference": change.difference.mean,
        "difference_low": change.difference.low,
        "difference_high": change.difference.high,
        "queries_lost": len(change.lost),
        "worse": change.worse,
    }


def describe_change(change: Change, most: int = 5) -> str:
    """Return a change in one line, with the queries that lost most."""
    lost = [f"{one.query_id} {one.then:.2f} to {one.now:.2f}" for one in change.lost[:most]]
    more = f" and {len(change.lost) - most} more" if len(change.lost) > most else ""
    named = f"; worse: {', '.join(lost)}{more}" if lost else ""
    return f"{change.mode} nDCG@10 {change.now.mean:.3f} after {change.then.mean:.3f}{named}"


def _change(mode: str, then: Mapping[str, float], now: Mapping[str, float]) -> Change:
    both = [query_id for query_id in now if query_id in then]
    lost = [LostQuery(mode, one, then[one], now[one]) for one in both if now[one] < then[one]]
    return Change(
        mode,
        then=estimate_mean([then[one] for one in both]),
        now=estimate_mean([now[one] for one in both]),
        difference=estimate_mean([now[one] - then[one] for one in both]),
        lost=tuple(sorted(lost, key=lambda one: (one.now - one.then, one.query_id))),
    )
