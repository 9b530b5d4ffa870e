"""Judged sets run through search; measures agree with values by hand."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.evaluation.judged import (
    JudgedQuery,
    find_threads,
    ndcg,
    recall,
    reciprocal_rank,
    score_queries,
    success,
)
from mail_assets.evaluation.quality import build_summary_table, serialize_scores, summarise_scores
from mail_assets.search.language.request import MODES, Group, Request, RequestError
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher
from mail_assets_tests.sample_corpus import QUERY, ROOT, Search


def answering(ids: str, took: list[float]) -> Callable[[Request], Response]:
    """A search that always finds the same, with the next latency of `took`."""

    class Found:
        def __init__(self, message_id: str) -> None:
            self.message_id = message_id
            self.thread_id = message_id.lower()

    def search(request: Request) -> Response:
        hits = tuple(map(Found, ids))
        return Response(
            query_id=request.query_id,
            query=request.query,
            mode=request.mode,
            took_ms=took.pop(0),
            short=False,
            hits=hits,  # type: ignore[arg-type]  # of a hit only its id is read
        )

    return search


def test_first_query_of_a_mode_warms_up() -> None:
    judged = [JudgedQuery("one", "q", {"a": 1}), JudgedQuery("two", "q", {"b": 1})]
    scores = score_queries(answering("ab", [999.0, 1.0, 3.0]), judged, ["semantic"])
    assert [(s.query_id, s.mrr, s.took_ms) for s in scores] == [("one", 1, 1), ("two", 0.5, 3)]
    (summary,) = summarise_scores(scores)
    assert (summary.queries, summary.p50_ms, summary.p95_ms) == (2, 2.0, 2.9)
    assert summary.measures["mrr"].mean == 0.75


def test_judged_set_runs_in_every_mode(search: Search) -> None:
    judged = [JudgedQuery("lease", QUERY, {ROOT: 1})]
    scores = score_queries(
        lambda r: search(r.query, mode=r.mode, group=r.group), judged, ["hybrid", "semantic"]
    )
    assert [s.mode for s in scores] == ["hybrid", "semantic"]
    assert all(s.success_10 == 1 for s in scores)
    assert [*build_summary_table(summarise_scores(scores)).index] == ["hybrid", "semantic"]
    assert [one["query_id"] for one in serialize_scores(scores)["queries"]] == ["lease", "lease"]


def test_threads_of_the_first_ten_are_counted() -> None:
    judged = [JudgedQuery("one", "q", {"a": 1})]
    (score,) = score_queries(answering("aAbBcCaAbBdef", [1.0, 1.0]), judged, ["semantic"])
    assert score.threads_10 == 3


@pytest.mark.parametrize(
    ("ids", "threads", "mrr", "found"),
    [
        ("xAy", {"a": "a"}, 0.5, 1.0),  # the thread of another message is the same
        ("xyA", {"a": "A"}, 0.0, 0.0),
        ("xyaA", {}, 1 / 3, 1.0),  # a message without a thread is its own
        ("bcdefghijkA", {"a": "a"}, 1 / 11, 0.0),
        ("b", {"a": "b"}, 1.0, 1.0),
    ],
)
def test_any_message_of_a_relevant_thread_counts_for_it(
    ids: str, threads: dict[str, str], mrr: float, found: float
) -> None:
    judged = [JudgedQuery("one", "q", {"a": 1})]
    (score,) = score_queries(answering(ids, [1.0, 1.0]), judged, ["hybrid"], threads=threads)
    assert (score.thread_mrr, score.thread_success_10) == (round(mrr, 4), found)


def test_threads_are_those_of_stored_messages(searcher: Searcher) -> None:
    judged = [JudgedQuery("one", "q", {ROOT: 1, "names@example.es": 1, "no@example.es": 1})]
    assert find_threads(searcher, judged) == {ROOT: ROOT, "names@example.es": "names@example.es"}


@pytest.mark.parametrize("mode", MODES)
def test_any_number_of_citing_messages_is_left_out(search: Search, mode: str) -> None:
    gone = tuple(f"gone{n}@example.org" for n in range(500))
    judged = [JudgedQuery("lease", QUERY, {ROOT: 1}, citing=(*gone, ROOT))]
    (score,) = score_queries(lambda r: search(r.query, **asdict_of(r)), judged, [mode])
    assert (score.mrr, score.threads_10 > 1) == (0.0, True)


def asdict_of(request: Request) -> dict[str, Any]:
    return {name: getattr(request, name) for name in ("mode", "limit", "group", "without")}


def test_default_group_is_single_messages() -> None:
    judged, groups = [JudgedQuery("one", "q", {"a": 1})], list[str]()
    answer = answering("ab", [0.0] * 4)

    def search(request: Request) -> Response:
        groups.append(request.group)
        return answer(request)

    score_queries(search, judged, ["hybrid"])
    score_queries(search, judged, ["hybrid"], group=Group.conversation)
    assert groups == [Group.message, Group.message, Group.conversation, Group.conversation]


def test_row_counts_as_the_most_relevant_that_it_shows(search: Search) -> None:
    found = search(QUERY, limit=50)
    row = found.conversations[1]
    assert row.first is not None
    for place, shown in enumerate((*row.best, row.first.message_id)):
        judged = [JudgedQuery("one", QUERY, {shown: 1})]
        [score] = score_queries(lambda _: found, judged, ["hybrid"], group=Group.conversation)
        assert (score.mrr, score.success_10) == (0.5, 1.0), place
    hidden = next(id for one in found.conversations for id in one.others)
    judged = [JudgedQuery("one", QUERY, {hidden: 1})]
    [score] = score_queries(lambda _: found, judged, ["hybrid"], group=Group.conversation)
    first = {one.first.message_id for one in found.conversations if one.first}
    assert score.mrr == 0 or hidden in first
    assert score.threads_10 == min(10, len(found.conversations))


def test_unknown_mode_is_refused() -> None:
    with pytest.raises(RequestError, match="'fuzzy': allowed are"):
        score_queries(answering("", []), [JudgedQuery("a", "q", {"a": 1})], ["fuzzy"])


LOG3 = math.log2(3)


@pytest.mark.parametrize(
    ("ranking", "relevant", "expected"),
    [
        ("abc", {"a": 1}, 1.0),
        ("xa", {"a": 1}, 1 / LOG3),
        ("xxa", {"a": 1}, 0.5),  # 1 / log2(4)
        ("axb", {"a": 1, "b": 1}, 1.5 / (1 + 1 / LOG3)),
        ("ba", {"a": 2, "b": 1}, (1 + 3 / LOG3) / (3 + 1 / LOG3)),
        ("ab", {"a": 2, "b": 1}, 1.0),
        ("xyz", {"a": 1}, 0.0),
        ("", {"a": 1}, 0.0),
        ("xxxxxxxxxxa", {"a": 1}, 0.0),  # the eleventh
        ("abcdefghij", dict.fromkeys("abcdefghijkl", 1), 1.0),  # no more than ten can be shown
    ],
)
def test_ndcg_agrees_by_hand(ranking: str, relevant: dict[str, int], expected: float) -> None:
    assert ndcg([*ranking], relevant, 10) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ranking", "rank", "recalled", "succeeded"),
    [("a", 1.0, 0.5, 1.0), ("xxb", 1 / 3, 0.5, 0.0), ("ba", 1.0, 1.0, 1.0), ("xy", 0, 0, 0)],
)
def test_rank_recall_and_success_agree_by_hand(
    ranking: str, rank: float, recalled: float, succeeded: float
) -> None:
    relevant = {"a": 1, "b": 1}
    assert reciprocal_rank([*ranking], relevant) == pytest.approx(rank)
    assert recall([*ranking], relevant, 3) == recalled
    assert success([*ranking], relevant, 2) == succeeded


@given(st.permutations("abcdef"), st.dictionaries(st.sampled_from("abcdxy"), st.integers(1, 3)))
def test_no_order_beats_the_order_of_grades(ranking: list[str], relevant: dict[str, int]) -> None:
    if relevant:
        best = sorted(relevant, key=lambda i: -relevant[i])
        assert ndcg(best, relevant, 10) == pytest.approx(1.0)
        assert 0 <= ndcg(ranking, relevant, 10) <= 1 + 1e-9
