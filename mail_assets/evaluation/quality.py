"""Summarize scores of search quality, compare them, and judge promotions of indexes.

Records of quality are in Dagster's history of `search_quality` and in the table `promotions`.

Intervals are the 2.5th and 97.5th percentile of a seeded bootstrap over the queries (Efron 1979).

A measurement is worse than a former one if its mean nDCG@10 is below the former interval, or if the
interval of the queries' differences is below zero (paired bootstrap: Smucker, Allan, Carterette
2007). The first test detects one query among few that falls from the first place; the second
detects many queries that lose a little.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mail_assets.errors import name_some
from mail_assets.evaluation.judged import MEASURES, JudgedQuery, Score, find_threads, score_queries
from mail_assets.indexes.live import Judge, Verdict
from mail_assets.search.language.request import MODES, Mode
from mail_assets.search.searcher import Searcher
from mail_assets.tables.indexes import IndexRecord

if TYPE_CHECKING:
    import pandas as pd

#: Resamples of a bootstrap, and the seed.
RESAMPLES, SEED = 10_000, 20_240_301


@dataclass(frozen=True)
class Estimate:
    """A mean over the queries, and the interval with 95 % of the resampled means."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class ModeSummary:
    """Means of one mode over the queries of a set; latencies in milliseconds."""

    mode: str
    queries: int
    measures: Mapping[str, Estimate]
    p50_ms: float
    p95_ms: float


def estimate_mean(values: Sequence[float]) -> Estimate:
    """Return the mean and its interval; the same values always give the same interval."""
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
    """Return summaries as a table: a row for each mode, with cells "mean [low, high]"."""
    import pandas as pd

    return pd.DataFrame(
        {
            "mode": one.mode,
            "queries": one.queries,
            **{_head(name): _cell(name, one.measures[name]) for name in MEASURES},
            "p50_ms": one.p50_ms,
            "p95_ms": one.p95_ms,
        }
        for one in summaries
    ).set_index("mode")


def serialize_scores(scores: Sequence[Score]) -> dict[str, Any]:
    """Return summaries and their scores as plain values."""
    return {
        "modes": [asdict(one) for one in summarise_scores(scores)],
        "queries": [asdict(one) for one in scores],
    }


def _head(name: str) -> str:
    """Return the heading of a measure: "ndcg_10" is nDCG at 10."""
    measure, _, depth = name.rpartition("_")
    return f"{measure}@{depth}" if depth.isdigit() else name


def _cell(name: str, one: Estimate) -> str:
    digits = 1 if name == "threads_10" else 3  # threads_10 is a count up to ten, others are shares
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


#: nDCG@10 of each query: mode -> query id -> 0 to 1.
TopicScores = Mapping[str, Mapping[str, float]]


class LostQuery(NamedTuple):
    """A query with a lower nDCG@10 than before."""

    mode: str
    query_id: str
    then: float
    now: float


class Change(NamedTuple):
    """Change of a mode over the queries in both measurements; `lost` has the worst first."""

    mode: str
    then: Estimate
    now: Estimate
    difference: Estimate
    lost: tuple[LostQuery, ...]

    @property
    def worse(self) -> bool:
        """True if chance in the choice of queries does not explain the loss."""
        return self.now.mean < self.then.low or self.difference.high < 0


def compare_topics(then: TopicScores, now: TopicScores) -> list[Change]:
    """Return the change of each mode that has queries in both measurements."""
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
    """Return a change as one line, with the largest losses of queries."""
    lost = [f"{one.query_id} {one.then:.2f} to {one.now:.2f}" for one in change.lost]
    named = f"; worse: {name_some(lost, most)}" if lost else ""
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


#: Opens a searcher of one index, live or not.
OpenIndex = Callable[[IndexRecord], AbstractContextManager[Searcher]]

#: The mode that decides which of two indexes is better: the default of searches.
DECIDING_MODE = Mode.hybrid.value


def digest_judged_set(judged: Sequence[JudgedQuery]) -> str:
    """Return a digest of a judged set; figures of different sets are not comparable."""
    content = json.dumps(
        sorted(
            (one.query_id, one.text, sorted(one.relevant.items()), *one.citing) for one in judged
        )
    )
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def build_quality_record(judged: Sequence[JudgedQuery], scores: Sequence[Score]) -> dict[str, Any]:
    """Return scores as plain values: digest and size of the set, means, and nDCG by query."""
    return {
        "judged_set": digest_judged_set(judged),
        "queries": len(judged),
        **name_measures(scores),
        "topics": collect_topic_scores(scores),
    }


def name_measures(scores: Iterable[Score]) -> dict[str, float]:
    """Return means, their intervals and latencies by name.

    Dagster plots them under these names, so the names never change: "hybrid_ndcg10",
    "hybrid_ndcg10_low", "hybrid_ndcg10_high", "hybrid_p50_ms".
    """
    named: dict[str, float] = {}
    for mode in summarise_scores(scores):
        for measure in MEASURES:
            name, value = f"{mode.mode}_{measure.replace('_', '')}", mode.measures[measure]
            named |= {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
        named |= {f"{mode.mode}_p50_ms": mode.p50_ms, f"{mode.mode}_p95_ms": mode.p95_ms}
    return named


def collect_topic_scores(scores: Iterable[Score]) -> dict[str, dict[str, float]]:
    """Return nDCG@10 by mode and query."""
    found: dict[str, dict[str, float]] = {}
    for one in scores:
        found.setdefault(one.mode, {})[one.query_id] = one.ndcg_10
    return found


def build_judge(judged: Sequence[JudgedQuery], open_index: OpenIndex) -> Judge:
    """Return a judge that runs the judged queries on the candidate and on the live index."""

    def judge(candidate: IndexRecord, live: IndexRecord | None) -> Verdict:
        found = {}
        for role, index in (("quality", candidate), ("quality_replaced", live)):
            if index:
                with open_index(index) as searcher:
                    threads = find_threads(searcher, judged)
                    scores = score_queries(searcher.search, judged, MODES, threads=threads)
                found[role] = build_quality_record(judged, scores)
        if live is None:
            return Verdict(found)
        changes = compare_topics(found["quality_replaced"]["topics"], found["quality"]["topics"])
        worse = [describe_change(one) for one in changes if one.mode == DECIDING_MODE and one.worse]
        return Verdict(found, "; ".join(worse))

    return judge


def describe_quality(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield one line about the quality of each index in a promotion's report."""
    for role, whose in (("quality", "this index"), ("quality_replaced", "the live one")):
        if role in report:
            name, figures = f"{DECIDING_MODE}_ndcg10", report[role]
            mean, low, high = (figures[f"{name}{end}"] for end in ("", "_low", "_high"))
            yield (
                f"{whose}: {DECIDING_MODE} nDCG@10 {mean:.3f} [{low:.2f}, {high:.2f}] "
                f"over {figures['queries']} queries"
            )
