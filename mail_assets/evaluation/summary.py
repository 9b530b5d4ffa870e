"""Summaries of scores: means over the queries with their 95 % intervals, and latencies.

Intervals are the 2.5th and 97.5th percentile of a bootstrap over the queries (Efron 1979), seeded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mail_assets.evaluation.scores import MEASURES, Score

if TYPE_CHECKING:
    import pandas as pd

RESAMPLES, SEED = 10_000, 20_240_301


@dataclass(frozen=True)
class Estimate:
    """A mean over the queries and the interval that contains 95 % of the resampled means."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class ModeSummary:
    """One mode over all queries of a set; latencies in milliseconds."""

    mode: str
    queries: int
    measures: Mapping[str, Estimate]
    p50_ms: float
    p95_ms: float


def estimate_mean(values: Sequence[float]) -> Estimate:
    """Return mean and interval; the same values always give the same interval."""
    sample = np.asarray(values, dtype=np.float64)
    draws = np.random.default_rng(SEED).integers(len(sample), size=(RESAMPLES, len(sample)))
    low, high = np.quantile(sample[draws].mean(axis=1), (0.025, 0.975))
    return Estimate(*(round(float(x), 4) for x in (sample.mean(), low, high)))


def summarise_scores(scores: Iterable[Score]) -> list[ModeSummary]:
    """Return a summary for each mode, in the order of the scores."""
    modes: dict[str, list[Score]] = {}
    for one in scores:
        modes.setdefault(one.mode, []).append(one)
    return [_summary(mode, of_mode) for mode, of_mode in modes.items()]


def build_summary_table(summaries: Iterable[ModeSummary]) -> "pd.DataFrame":
    """Return summaries for people: a row for each mode, "mean [low, high]" in each cell."""
    import pandas as pd

    return pd.DataFrame(
        {
            "mode": one.mode,
            "queries": one.queries,
            **{name.replace("_", "@"): _cell(name, one.measures[name]) for name in MEASURES},
            "p50_ms": one.p50_ms,
            "p95_ms": one.p95_ms,
        }
        for one in summaries
    ).set_index("mode")


def serialize_scores(scores: Sequence[Score]) -> dict[str, Any]:
    """Return summaries and the scores that they are made of, as json.dumps takes them."""
    return {
        "modes": [asdict(one) for one in summarise_scores(scores)],
        "queries": [asdict(one) for one in scores],
    }


def _cell(name: str, one: Estimate) -> str:
    digits = 1 if name == "threads_10" else 3  # a count of up to ten, the others shares
    return f"{one.mean:.{digits}f} [{one.low:.{min(digits, 2)}f}, {one.high:.{min(digits, 2)}f}]"


def _summary(mode: str, scores: Sequence[Score]) -> ModeSummary:
    p50, p95 = np.quantile([one.took_ms for one in scores], (0.5, 0.95))
    return ModeSummary(
        mode=mode,
        queries=len(scores),
        measures={name: estimate_mean([getattr(one, name) for one in scores]) for name in MEASURES},
        p50_ms=round(float(p50), 1),
        p95_ms=round(float(p95), 1),
    )
