"""The quality of an index: its scores as they are recorded, and the judge of a promotion.

They are kept in Dagster's history of `search_quality` and in the table `promotions`.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from mail_assets.evaluation.comparison import compare_topics, describe_change
from mail_assets.evaluation.judged import JudgedQuery
from mail_assets.evaluation.scores import MEASURES, Score, score_queries
from mail_assets.evaluation.summary import summarise_scores
from mail_assets.search.request import MODES, Mode
from mail_assets.search.searcher import Searcher
from mail_assets.steps.index_lifecycle import Judge, Verdict
from mail_assets.tables.indexes import IndexRecord

#: Opens a searcher that asks one index, live or not.
OpenIndex = Callable[[IndexRecord], AbstractContextManager[Searcher]]

#: The mode that decides which of two indexes is better: the one that people use.
DECIDING_MODE = Mode.hybrid.value


def digest_judged_set(judged: Sequence[JudgedQuery]) -> str:
    """Return a digest that identifies a judged set: figures over two sets cannot be compared."""
    content = json.dumps(
        sorted(
            (one.query_id, one.text, sorted(one.relevant.items()), *one.citing) for one in judged
        )
    )
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def build_quality_record(judged: Sequence[JudgedQuery], scores: Sequence[Score]) -> dict[str, Any]:
    """Return scores as they are recorded, for json.dumps: the set, its size, means, topics."""
    return {
        "judged_set": digest_judged_set(judged),
        "queries": len(judged),
        **name_measures(scores),
        "topics": collect_topic_scores(scores),
    }


def name_measures(scores: Iterable[Score]) -> dict[str, float]:
    """Return means, their intervals and latencies by name.

    "hybrid_ndcg10", "hybrid_ndcg10_low", "hybrid_ndcg10_high", "hybrid_p50_ms": Dagster plots them
    under these names, so they do not change.
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
    """Return a judge of indexes: it asks the candidate and the live one the same queries."""

    def judge(candidate: IndexRecord, live: IndexRecord | None) -> Verdict:
        found = {}
        for role, index in (("quality", candidate), ("quality_replaced", live)):
            if index:
                with open_index(index) as searcher:
                    scores = score_queries(searcher.search, judged, MODES)
                found[role] = build_quality_record(judged, scores)
        if live is None:
            return Verdict(found)
        changes = compare_topics(found["quality_replaced"]["topics"], found["quality"]["topics"])
        worse = [describe_change(one) for one in changes if one.mode == DECIDING_MODE and one.worse]
        return Verdict(found, "; ".join(worse))

    return judge


def describe_quality(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the quality in a promotion's report, one line for each index."""
    for role, whose in (("quality", "this index"), ("quality_replaced", "the live one")):
        if role in report:
            name, figures = f"{DECIDING_MODE}_ndcg10", report[role]
            mean, low, high = (figures[f"{name}{end}"] for end in ("", "_low", "_high"))
            yield (
                f"{whose}: {DECIDING_MODE} nDCG@10 {mean:.3f} [{low:.2f}, {high:.2f}] "
                f"over {figures['queries']} queries"
            )
