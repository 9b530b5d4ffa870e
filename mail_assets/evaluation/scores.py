"""Scores of search: judged queries run through a searcher, each ranking measured."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mail_assets.evaluation.judged import JudgedQuery
from mail_assets.evaluation.measures import (
    count_threads,
    ndcg,
    recall,
    reciprocal_rank,
    success,
)
from mail_assets.search.request import Group, Request
from mail_assets.search.response import Response

#: Messages requested for each query.
DEPTH = 50
MEASURES = ("ndcg_10", "mrr", "recall_50", "success_10", "threads_10")


class Ranking(NamedTuple):
    """Messages in the order of a search, the thread of each, and the latency."""

    message_ids: Sequence[str]
    threads: Sequence[str]
    took_ms: float


@dataclass(frozen=True)
class Score:
    """The measures of one query in one mode; `took_ms` is the latency."""

    mode: str
    query_id: str
    ndcg_10: float
    mrr: float
    recall_50: float
    success_10: float
    threads_10: float
    took_ms: float


def score_queries(
    search: Callable[[Request], Response],
    judged: Sequence[JudgedQuery],
    modes: Iterable[str],
    lists: tuple[str, ...] = (),
    group: Group = Group.message,
) -> list[Score]:
    """Ask every query in every mode and measure the rankings, message by message.

    By default each message is judged by itself, however many of its thread come before it; with
    another `group` what a page leaves out for it is not found.
    What a query is `citing` is searched as if it were not there. The first query of a mode is asked
    twice and the second time counts: a cold cache says nothing about search.

    Raises:
        RequestError: a query cannot be asked.
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
            scores.append(score_ranking(mode, one, _rank(search(request))))
    return scores


def score_ranking(mode: str, one: JudgedQuery, found: Ranking) -> Score:
    """Return all measures of one ranking."""
    ranking = found.message_ids
    return Score(
        mode=str(mode),
        query_id=one.query_id,
        ndcg_10=round(ndcg(ranking, one.relevant, 10), 4),
        mrr=round(reciprocal_rank(ranking[:DEPTH], one.relevant), 4),
        recall_50=round(recall(ranking, one.relevant, DEPTH), 4),
        success_10=success(ranking, one.relevant, 10),
        threads_10=float(count_threads(found.threads, 10)),
        took_ms=found.took_ms,
    )


def _rank(response: Response) -> Ranking:
    return Ranking(
        message_ids=[hit.message_id for hit in response.hits],
        threads=[hit.thread_id or hit.message_id for hit in response.hits],
        took_ms=response.took_ms,
    )
