"""Records of quality have stable names; a judge refuses a worse index."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.evaluation.judged import JudgedQuery, Score
from mail_assets.evaluation.quality import (
    OpenIndex,
    build_judge,
    build_quality_record,
    compare_topics,
    describe_change,
    describe_quality,
    digest_judged_set,
    estimate_mean,
)
from mail_assets.search.language.request import MODES, Request
from mail_assets.search.response import Response
from mail_assets.tables.indexes import IndexRecord

JUDGED = [JudgedQuery(f"q{n}", f"about {n}", {f"m{n}": 1}) for n in range(12)]


def test_digest_depends_on_content_not_on_order() -> None:
    assert digest_judged_set(JUDGED) == digest_judged_set(JUDGED[::-1])
    grades = {"m0": 1, "m1": 2}, {"m1": 2, "m0": 1}
    one, same = ([JUDGED[0]._replace(relevant=each)] for each in grades)
    assert digest_judged_set(one) == digest_judged_set(same)
    assert digest_judged_set(JUDGED) != digest_judged_set(JUDGED[1:])
    assert digest_judged_set(JUDGED) != digest_judged_set(
        [JUDGED[0]._replace(relevant={"m0": 2}), *JUDGED[1:]]
    )
    assert digest_judged_set(JUDGED) != digest_judged_set(
        [JUDGED[0]._replace(citing=("m9",)), *JUDGED[1:]]
    )


def test_digest_of_a_recorded_set_is_stable() -> None:
    assert digest_judged_set(JUDGED[:2]) == "368393f980f1"


def test_quality_record_has_stable_names() -> None:
    score = Score("hybrid", "q0", 0.5, 1.0, 0.25, 1.0, 8.0, 1.0, 1.0, 12.0)
    found = json.loads(json.dumps(build_quality_record(JUDGED[:1], [score])))
    names = [
        f"hybrid_{measure}{end}"
        for measure in (
            *("ndcg10", "mrr", "recall50", "success10", "threads10"),
            *("threadmrr", "threadsuccess10"),
        )
        for end in ("", "_low", "_high")
    ]
    assert [*found] == [
        *("judged_set", "queries", *names, "hybrid_p50_ms", "hybrid_p95_ms", "topics")
    ]
    assert all(isinstance(found[name], float) for name in names)
    assert found["topics"] == {"hybrid": {"q0": 0.5}}


class Finding:
    """A searcher that finds only the right message, at a given rank."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def find_threads(self, message_ids: object) -> dict[str, str]:
        return {}

    def search(self, request: Request) -> Response:
        right = f"m{request.query_id.removeprefix('q')}"
        found = [*(f"x{n}" for n in range(self.rank - 1)), right]
        hits: Any = [type("Hit", (), {"message_id": one, "thread_id": None}) for one in found]
        return Response(request.query_id, request.query, request.mode, 1.0, False, tuple(hits))


def index(name: str) -> IndexRecord:
    return IndexRecord(name, "model", "int8", "print", "2024-03-04", False)


@pytest.mark.parametrize(("candidate", "live", "worse"), [(1, 1, ""), (1, 3, ""), (3, 1, "hybrid")])
def test_judge_refuses_a_worse_index(candidate: int, live: int, worse: str) -> None:
    ranks = {"new": candidate, "old": live}
    judge = build_judge(JUDGED, cast(OpenIndex, lambda one: nullcontext(Finding(ranks[one.name]))))
    verdict = judge(index("new"), index("old"))
    assert verdict.worse.startswith(worse)
    assert bool(verdict.worse) == bool(worse)
    assert [*verdict.figures["quality"]["topics"]] == [*MODES]
    lines = [*describe_quality(verdict.figures)]
    assert [line.split(":")[0] for line in lines] == ["this index", "the live one"]


def test_judge_records_the_only_index() -> None:
    judge = build_judge(JUDGED, cast(OpenIndex, lambda one: nullcontext(Finding(2))))
    verdict = judge(index("new"), None)
    assert ([*verdict.figures], verdict.worse) == (["quality"], "")


def of(**values: float) -> dict[str, dict[str, float]]:
    return {"hybrid": values}


def changed(then: Mapping[str, float], now: Mapping[str, float]) -> tuple[bool, list[str]]:
    [change] = compare_topics({"hybrid": then}, {"hybrid": now})
    return change.worse, [lost.query_id for lost in change.lost]


EVEN = {f"q{n}": 0.8 for n in range(12)}


PERFECT = {f"q{n}": 1.0 for n in range(12)}


MIXED = {f"q{n}": n / 11 for n in range(12)}


@pytest.mark.parametrize(
    ("then", "losses", "worse"),
    [
        (EVEN, {}, False),
        (EVEN, {"q1": -0.2}, False),  # one got better
        (PERFECT, {"q3": 1.0}, True),  # there was no spread: one query lost is a drop
        (MIXED, {"q11": 0.5}, False),  # one of twelve, within what they differ anyway
        (MIXED, {f"q{n}": 0.05 for n in range(4, 12)}, True),  # little, but nearly everywhere
        (MIXED, {"q11": 1.0, "q10": 0.9, "q9": 0.8, "q8": 0.7}, True),
    ],
)
def test_worse_is_beyond_the_interval_or_nearly_everywhere(
    then: dict[str, float], losses: dict[str, float], worse: bool
) -> None:
    now = {query: value - losses.get(query, 0.0) for query, value in then.items()}
    was_worse, lost = changed(then, now)
    assert was_worse == worse
    assert {*lost} == {query for query, loss in losses.items() if loss > 0}


SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@settings(max_examples=50)
@given(SHARES)
def test_equal_or_better_is_never_worse(values: list[float]) -> None:
    then = {str(n): value for n, value in enumerate(values)}
    assert changed(then, then) == (False, [])
    assert (
        changed(then, {query: min(1.0, value + 0.1) for query, value in then.items()})[0] is False
    )


def test_lost_queries_are_named_worst_first() -> None:
    now = {query: 0.0 if query in ("q5", "q6") else 0.5 for query in EVEN}
    [change] = compare_topics({"hybrid": EVEN}, {"hybrid": now, "fulltext": now})
    assert [lost.query_id for lost in change.lost[:3]] == ["q5", "q6", "q0"]
    line = describe_change(change, most=2)
    assert line == (
        "hybrid nDCG@10 0.417 after 0.800; worse: q5 0.80 to 0.00, q6 0.80 to 0.00 and 10 more"
    )


def test_only_common_queries_are_compared() -> None:
    assert compare_topics(of(a=1.0), of(b=0.0)) == []
    [change] = compare_topics(of(a=1.0, gone=1.0), of(a=1.0, new=0.0))
    assert (change.now.mean, change.lost) == (1.0, ())


def test_interval_has_the_mean_and_is_reproducible() -> None:
    values = [0.0, 0.2, 0.9, 1.0, 1.0, 0.4]
    found = estimate_mean(values)
    assert found.low < found.mean < found.high
    assert found.mean == pytest.approx(3.5 / 6, abs=1e-4)
    assert found == estimate_mean(values)
    assert estimate_mean([0.5] * 4) == type(found)(0.5, 0.5, 0.5)
