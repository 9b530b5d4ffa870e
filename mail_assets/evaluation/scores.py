"""Run judged queries through a searcher and measure each ranking.

nDCG@10     DCG / DCG of the best order, with DCG = sum of (2**grade - 1) / log2(rank + 1)
            (Burges et al. 2005; for grades of 0 and 1 equal to Järvelin, Kekäläinen 2002)
MRR         1 / rank of the first relevant message, 0 if none is among the first 50
recall@50   share of the relevant messages that are among the first 50
success@10  1 if a relevant message is among the first 10, else 0
threads@10  number of threads of the first 10: one thread must not hide the others

and of threads, where the thread of a relevant message counts whatever message of it is found:

thread_mrr         1 / rank of the first message of such a thread
thread_success@10  1 if there is one among the first 10
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from mail_assets.evaluation.judged import JudgedQuery
from mail_assets.search.language.request import Group, Request
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher


def ndcg(ranking: Sequence[str], relevant: Mapping[str, int], depth: int) -> float:
    """Return the normalised discounted cumulative gain of the first `depth`, 0 to 1."""
    best = sorted(relevant.values(), reverse=True)
    return _dcg([relevant.get(i, 0) for i in ranking[:depth]]) / _dcg(best[:depth])


def reciprocal_rank(ranking: Sequence[str], relevant: Mapping[str, int]) -> float:
    """Return 1 / rank of the first relevant message, 0 if there is none."""
    return next((1 / rank for rank, i in enumerate(ranking, 1) if i in relevant), 0.0)


def recall(ranking: Sequence[str], relevant: Mapping[str, int], depth: int) -> float:
    """Return the share of the relevant messages among the first `depth`."""
    return len(relevant.keys() & {*ranking[:depth]}) / len(relevant)


def success(ranking: Sequence[str], relevant: Mapping[str, int], depth: int) -> float:
    """Return 1 if a relevant message is among the first `depth`, else 0."""
    return float(not relevant.keys().isdisjoint(ranking[:depth]))


def count_threads(threads: Sequence[str], depth: int) -> int:
    """Return the number of threads of the first `depth` messages."""
    return len({*threads[:depth]})


def _dcg(grades: Iterable[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))


#: Messages requested for each query.
DEPTH = 50
MEASURES = (
    *("ndcg_10", "mrr", "recall_50", "success_10", "threads_10"),
    *("thread_mrr", "thread_success_10"),
)


class Ranking(NamedTuple):
    """Messages in the order of a search, their threads, and the latency in milliseconds."""

    message_ids: Sequence[str]
    threads: Sequence[str]
    took_ms: float


@dataclass(frozen=True)
class Score:
    """The measures of one query in one mode, and its latency in milliseconds."""

    mode: str
    query_id: str
    ndcg_10: float
    mrr: float
    recall_50: float
    success_10: float
    threads_10: float
    thread_mrr: float
    thread_success_10: float
    took_ms: float


def find_threads(searcher: Searcher, judged: Iterable[JudgedQuery]) -> dict[str, str]:
    """Return the thread of each relevant message that is stored."""
    return searcher.find_threads(message_id for one in judged for message_id in one.relevant)


def score_queries(
    search: Callable[[Request], Response],
    judged: Sequence[JudgedQuery],
    modes: Iterable[str],
    lists: tuple[str, ...] = (),
    group: str = Group.message,
    threads: Mapping[str, str] = MappingProxyType({}),
) -> list[Score]:
    """Run every query in every mode and measure the rankings.

    By default each message counts, however many of its thread come before it. With another `group`
    the messages that a page would fold away count as not found. Search ignores the messages that a
    query is `citing`. `threads` has the thread of each relevant message that is in one. The first
    query of a mode runs twice, to warm the caches.
    """
    scores = []
    for mode in modes:
        template = Request("-", mode=mode, limit=DEPTH, lists=lists, group=group)
        requests = [
            replace(template, query=one.text, query_id=one.query_id, without=one.citing)
            for one in judged
        ]
        search(requests[0])
        for one, request in zip(judged, requests, strict=True):
            scores.append(score_ranking(mode, one, _rank(search(request)), threads))
    return scores


def score_ranking(mode: str, one: JudgedQuery, found: Ranking, threads: Mapping[str, str]) -> Score:
    """Return the measures of one ranking."""
    ranking = found.message_ids
    of_threads = {threads.get(message_id, message_id): 1 for message_id in one.relevant}
    return Score(
        mode=str(mode),
        query_id=one.query_id,
        ndcg_10=round(ndcg(ranking, one.relevant, 10), 4),
        mrr=round(reciprocal_rank(ranking[:DEPTH], one.relevant), 4),
        recall_50=round(recall(ranking, one.relevant, DEPTH), 4),
        success_10=success(ranking, one.relevant, 10),
        threads_10=float(count_threads(found.threads, 10)),
        thread_mrr=round(reciprocal_rank(found.threads[:DEPTH], of_threads), 4),
        thread_success_10=success(found.threads, of_threads, 10),
        took_ms=found.took_ms,
    )


def _rank(response: Response) -> Ranking:
    return Ranking(
        message_ids=[hit.message_id for hit in response.hits],
        threads=[hit.thread_id or hit.message_id for hit in response.hits],
        took_ms=response.took_ms,
    )
