"""The measures agree with values worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.evaluation.scores import ndcg, recall, reciprocal_rank, success

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
def test_ndcg(ranking: str, relevant: dict[str, int], expected: float) -> None:
    assert ndcg([*ranking], relevant, 10) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ranking", "rank", "recalled", "succeeded"),
    [("a", 1.0, 0.5, 1.0), ("xxb", 1 / 3, 0.5, 0.0), ("ba", 1.0, 1.0, 1.0), ("xy", 0, 0, 0)],
)
def test_rank_recall_and_success(
    ranking: str, rank: float, recalled: float, succeeded: float
) -> None:
    relevant = {"a": 1, "b": 1}
    assert reciprocal_rank([*ranking], relevant) == pytest.approx(rank)
    assert recall([*ranking], relevant, 3) == recalled
    assert success([*ranking], relevant, 2) == succeeded


@given(st.permutations("abcdef"), st.dictionaries(st.sampled_from("abcdxy"), st.integers(1, 3)))
def test_no_order_beats_that_of_the_grades(ranking: list[str], relevant: dict[str, int]) -> None:
    if relevant:
        best = sorted(relevant, key=lambda i: -relevant[i])
        assert ndcg(best, relevant, 10) == pytest.approx(1.0)
        assert 0 <= ndcg(ranking, relevant, 10) <= 1 + 1e-9
