"""A drop is one beyond the interval or in nearly every query, and names the queries that lost."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.evaluation.quality import compare_topics, describe_change


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
def test_a_drop_is_beyond_the_interval_or_nearly_everywhere(
    then: dict[str, float], losses: dict[str, float], worse: bool
) -> None:
    now = {query: value - losses.get(query, 0.0) for query, value in then.items()}
    was_worse, lost = changed(then, now)
    assert was_worse == worse
    assert {*lost} == {query for query, loss in losses.items() if loss > 0}


SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@settings(max_examples=50)
@given(SHARES)
def test_what_stays_or_improves_is_never_worse(values: list[float]) -> None:
    then = {str(n): value for n, value in enumerate(values)}
    assert changed(then, then) == (False, [])
    assert (
        changed(then, {query: min(1.0, value + 0.1) for query, value in then.items()})[0] is False
    )


def test_the_queries_that_lost_are_named_most_first_and_counted() -> None:
    now = {query: 0.0 if query in ("q5", "q6") else 0.5 for query in EVEN}
    [change] = compare_topics({"hybrid": EVEN}, {"hybrid": now, "fulltext": now})
    assert [lost.query_id for lost in change.lost[:3]] == ["q5", "q6", "q0"]
    line = describe_change(change, most=2)
    assert line == (
        "hybrid nDCG@10 0.417 after 0.800; worse: q5 0.80 to 0.00, q6 0.80 to 0.00 and 10 more"
    )


def test_only_queries_asked_both_times_are_compared() -> None:
    assert compare_topics(of(a=1.0), of(b=0.0)) == []
    [change] = compare_topics(of(a=1.0, gone=1.0), of(a=1.0, new=0.0))
    assert (change.now.mean, change.lost) == (1.0, ())
