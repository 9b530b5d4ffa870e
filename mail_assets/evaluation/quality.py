"""How well an index answers a judged set, as figures to record and to compare with others.

One index is worse than another, and search worse than it was, in one sense everywhere: nDCG@10
left the interval that the former had, or the queries' differences, resampled, lie below zero
(paired bootstrap: Smucker, Allan, Carterette 2007). The first sees one query of few fall from the
first place; the second sees many queries lose a little.
What does not live here: the measures (evaluation.py), and where figures are kept (Dagster's
history of `search_quality`, and the table `promotions`).
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from mail_assets.evaluation.judged import MIN_RELEVANT, Judged, read_judged
from mail_assets.evaluation.scores import MEASURES, Estimate, Score, estimate, evaluate, summarise
from mail_assets.search.request import MODES
from mail_assets.search.searcher import Searcher
from mail_assets.settings.variables import QRELS, QUERIES
from mail_assets.steps.index_lifecycle import Judge, Verdict
from mail_assets.tables.indexes import IndexRecord

#: nDCG@10 of each query: mode -> query id -> 0 to 1.
Topics = Mapping[str, Mapping[str, float]]
#: Opens a searcher that asks one index, live or not.
OpenIndex = Callable[[IndexRecord], AbstractContextManager[Searcher]]

#: The mode that decides which of two indexes is better: the one that people use.
DECIDES = "hybrid"


class Lost(NamedTuple):
    """A query that is answered worse than it was: its nDCG@10 then and now."""

    mode: str
    query_id: str
    then: float
    now: float


class Change(NamedTuple):
    """A mode then and now, over the queries that both answered; those that lost, most first."""

    mode: str
    then: Estimate
    now: Estimate
    difference: Estimate
    lost: tuple[Lost, ...]

    @property
    def worse(self) -> bool:
        """Whether the drop is beyond what other queries of the kind might show."""
        return self.now.mean < self.then.low or self.difference.high < 0


def read_set(folder: Path, at_least: int = MIN_RELEVANT) -> list[Judged]:
    """Return the judged set of a folder.

    Raises:
        RequestError: a file is wrong, or no query has that many relevant messages.
    """
    return read_judged(folder / QUERIES, folder / QRELS, at_least)


def digest_of(judged: Sequence[Judged]) -> str:
    """Return what identifies a judged set: figures over two sets cannot be compared."""
    content = json.dumps(sorted((q, text, sorted(r.items())) for q, text, r in judged))
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def figures(judged: Sequence[Judged], scores: Sequence[Score]) -> dict[str, Any]:
    """Return scores as they are recorded, for json.dumps: the set, the numbers, the topics."""
    return {
        "judged_set": digest_of(judged),
        "queries": len(judged),
        **numbers(scores),
        "topics": topics(scores),
    }


def numbers(scores: Iterable[Score]) -> dict[str, float]:
    """Return means, their intervals and latencies by names that stay: "hybrid_ndcg10",
    "hybrid_ndcg10_low", "hybrid_ndcg10_high", "hybrid_p50_ms".
    """
    named: dict[str, float] = {}
    for mode in summarise(scores):
        for measure in MEASURES:
            name, value = f"{mode.mode}_{measure.replace('_', '')}", mode.measures[measure]
            named |= {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
        named |= {f"{mode.mode}_p50_ms": mode.p50_ms, f"{mode.mode}_p95_ms": mode.p95_ms}
    return named


def topics(scores: Iterable[Score]) -> dict[str, dict[str, float]]:
    """Return nDCG@10 by mode and query."""
    found: dict[str, dict[str, float]] = {}
    for one in scores:
        found.setdefault(one.mode, {})[one.query_id] = one.ndcg_10
    return found


def compare(then: Topics, now: Topics) -> list[Change]:
    """Return a change for each mode that has queries in both."""
    return [
        _change(mode, then[mode], now[mode])
        for mode in MODES
        if then.get(mode, {}).keys() & now.get(mode, {}).keys()
    ]


def judge_by(judged: Sequence[Judged], open_index: OpenIndex) -> Judge:
    """Return a judge of indexes: it asks the candidate and the live one the same queries."""

    def judge(candidate: IndexRecord, live: IndexRecord | None) -> Verdict:
        found = {}
        for role, index in (("quality", candidate), ("quality_replaced", live)):
            if index:
                with open_index(index) as searcher:
                    scores = evaluate(searcher.search, judged, MODES)
                found[role] = figures(judged, scores)
        if live is None:
            return Verdict(found)
        changes = compare(found["quality_replaced"]["topics"], found["quality"]["topics"])
        worse = [describe(one) for one in changes if one.mode == DECIDES and one.worse]
        return Verdict(found, "; ".join(worse))

    return judge


def told(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a promotion's report says of quality, for people."""
    for role, whose in (("quality", "this index"), ("quality_replaced", "the live one")):
        if role in report:
            f = report[role]
            yield (
                f"{whose}: {DECIDES} nDCG@10 {f[f'{DECIDES}_ndcg10']:.3f} "
                f"[{f[f'{DECIDES}_ndcg10_low']:.2f}, {f[f'{DECIDES}_ndcg10_high']:.2f}] "
                f"over {f['queries']} queries"
            )


def as_row(change: Change) -> dict[str, str | float | bool]:
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


def describe(change: Change, most: int = 5) -> str:
    """Return a change in one line, with the queries that lost most."""
    lost = [f"{one.query_id} {one.then:.2f} to {one.now:.2f}" for one in change.lost[:most]]
    more = f" and {len(change.lost) - most} more" if len(change.lost) > most else ""
    named = f"; worse: {', '.join(lost)}{more}" if lost else ""
    return f"{change.mode} nDCG@10 {change.now.mean:.3f} after {change.then.mean:.3f}{named}"


def _change(mode: str, then: Mapping[str, float], now: Mapping[str, float]) -> Change:
    both = [query_id for query_id in now if query_id in then]
    lost = [Lost(mode, one, then[one], now[one]) for one in both if now[one] < then[one]]
    return Change(
        mode,
        then=estimate([then[one] for one in both]),
        now=estimate([now[one] for one in both]),
        difference=estimate([now[one] - then[one] for one in both]),
        lost=tuple(sorted(lost, key=lambda one: (one.now - one.then, one.query_id))),
    )
