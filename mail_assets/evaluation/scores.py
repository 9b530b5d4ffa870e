"""How good a ranking is: the measures, and a judged set run through search.

What does not live here: reading the files of a judged set (judged.py), printing (cli).

    nDCG@10     DCG / the DCG of the best order, DCG = sum of (2**grade - 1) / log2(rank + 1)
                (Burges et al. 2005; with grades of 0 and 1 it is that of Järvelin, Kekäläinen
                2002)
    MRR         1 / the rank of the first relevant message, 0 where none is among the first 50
    recall@50   the share of the relevant messages among the first 50
    success@10  whether any relevant message is among the first 10

Intervals are 95 % percentiles of a bootstrap over the queries (Efron 1979), seeded.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mail_assets.evaluation.judged import Judged
from mail_assets.search.request import Request
from mail_assets.search.response import Response

if TYPE_CHECKING:
    import pandas as pd

DEPTH = 50  # messages asked for
RESAMPLES, SEED = 10_000, 20_240_301
MEASURES = ("ndcg_10", "mrr", "recall_50", "success_10")


@dataclass(frozen=True)
class Score:
    """One query in one mode."""

    mode: str
    query_id: str
    ndcg_10: float
    mrr: float
    recall_50: float
    success_10: float
    took_ms: float


@dataclass(frozen=True)
class Estimate:
    """A mean over the queries and the interval that 95 of 100 resamples lie in."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Summary:
    """One mode over all queries; latencies in milliseconds."""

    mode: str
    queries: int
    measures: Mapping[str, Estimate]
    p50_ms: float
    p95_ms: float


def ndcg(ranking: Sequence[str], relevant: Mapping[str, int], depth: int) -> float:
    """Return the normalised discounted cumulative gain of the first `depth`, 0 to 1."""
    best = sorted(relevant.values(), reverse=True)
    return _dcg([relevant.get(i, 0) for i in ranking[:depth]]) / _dcg(best[:depth])


def reciprocal_rank(ranking: Sequence[str], relevant: Mapping[str, int]) -> float:
    """Return 1 / the rank of the first relevant message, 0 where there is none."""
    return next((1 / rank for rank, i in enumerate(ranking, 1) if i in relevant), 0.0)


def recall(ranking: Sequence[str], relevant: Mapping[str, int], depth: int) -> float:
    """Return the share of the relevant messages that are among the first `depth`."""
    return len(relevant.keys() & {*ranking[:depth]}) / len(relevant)


def success(ranking: Sequence[str], relevant: Mapping[str, int], depth: int) -> float:
    """Return 1 where any relevant message is among the first `depth`, else 0."""
    return float(not relevant.keys().isdisjoint(ranking[:depth]))


def estimate(values: Sequence[float]) -> Estimate:
    """Return mean and interval; the same values always give the same interval."""
    sample = np.asarray(values, dtype=np.float64)
    draws = np.random.default_rng(SEED).integers(len(sample), size=(RESAMPLES, len(sample)))
    low, high = np.quantile(sample[draws].mean(axis=1), (0.025, 0.975))
    return Estimate(*(round(float(x), 4) for x in (sample.mean(), low, high)))


def evaluate(
    search: Callable[[Request], Response],
    judged: Sequence[Judged],
    modes: Iterable[str],
    lists: tuple[str, ...] = (),
) -> list[Score]:
    """Ask every query in every mode. The first query of a mode is asked twice and the second
    time counts: a cold cache says nothing about search.

    Raises:
        RequestError: a query cannot be asked.
    """
    scores = []
    for mode in modes:
        blank = Request("-", mode=mode, limit=DEPTH, lists=lists)
        requests = [replace(blank, query=one.text, query_id=one.query_id) for one in judged]
        search(requests[0])
        for one, request in zip(judged, requests, strict=True):
            response = search(request)
            scores.append(score(mode, one, [h.message_id for h in response.hits], response.took_ms))
    return scores


def score(mode: str, one: Judged, ranking: Sequence[str], took_ms: float) -> Score:
    """Return all measures of one ranking."""
    return Score(
        mode=str(mode),
        query_id=one.query_id,
        ndcg_10=round(ndcg(ranking, one.relevant, 10), 4),
        mrr=round(reciprocal_rank(ranking[:DEPTH], one.relevant), 4),
        recall_50=round(recall(ranking, one.relevant, DEPTH), 4),
        success_10=success(ranking, one.relevant, 10),
        took_ms=took_ms,
    )


def summarise(scores: Iterable[Score]) -> list[Summary]:
    """Return a summary for each mode, in the order of the scores."""
    modes: dict[str, list[Score]] = {}
    for one in scores:
        modes.setdefault(one.mode, []).append(one)
    return [_summary(mode, of_mode) for mode, of_mode in modes.items()]


def as_table(summaries: Iterable[Summary]) -> "pd.DataFrame":
    """Return summaries for people: a row for each mode, "mean [low, high]" in each cell."""
    import pandas as pd

    return pd.DataFrame(
        {
            "mode": one.mode,
            "queries": one.queries,
            **{name: f"{e.mean:.3f} [{e.low:.2f}, {e.high:.2f}]" for name, e in _cells(one)},
            "p50_ms": one.p50_ms,
            "p95_ms": one.p95_ms,
        }
        for one in summaries
    ).set_index("mode")


def as_json(scores: Sequence[Score]) -> dict[str, Any]:
    """Return summaries and the scores that they are made of, as json.dumps takes them."""
    return {
        "modes": [asdict(one) for one in summarise(scores)],
        "queries": [asdict(one) for one in scores],
    }


def _cells(one: Summary) -> list[tuple[str, Estimate]]:
    return [(name.replace("_", "@"), one.measures[name]) for name in MEASURES]


def _summary(mode: str, scores: Sequence[Score]) -> Summary:
    p50, p95 = np.quantile([one.took_ms for one in scores], (0.5, 0.95))
    return Summary(
        mode=mode,
        queries=len(scores),
        measures={name: estimate([getattr(one, name) for one in scores]) for name in MEASURES},
        p50_ms=round(float(p50), 1),
        p95_ms=round(float(p95), 1),
    )


def _dcg(grades: Iterable[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))
