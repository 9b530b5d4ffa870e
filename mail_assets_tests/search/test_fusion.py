"""Fusion of two rankings, and the evidence of threads."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.month import ListMonth
from mail_assets.search.candidates import Candidate, MessageCopy
from mail_assets.search.fusion import (
    MAX_FULLTEXT_WEIGHT,
    MAX_THREADS,
    MIN_FULLTEXT_WEIGHT,
    THREAD_WEIGHT,
    LegWeights,
    add_thread_messages,
    fuse,
    select_threads,
    weigh_legs,
)

DEV, USERS = ListMonth("dev", "2024-03"), ListMonth("users", "2024-03")
HERE, THERE = MessageCopy(DEV, 0), MessageCopy(USERS, 0)
EVEN = LegWeights(0.5, 0.5)


def meant(message_id: str, score: float, copy: MessageCopy = HERE, thread: str = "") -> Candidate:
    chunks = {f"{message_id}#0": 1 - score}
    return Candidate(message_id, copy, thread or message_id, score, chunks)


def worded(message_id: str, score: float, copy: MessageCopy = HERE, thread: str = "") -> Candidate:
    return Candidate(message_id, copy, thread or message_id, score)


def test_the_more_of_a_question_full_text_finds_the_more_it_counts() -> None:
    shares = [weigh_legs(covered).fulltext for covered in (0.0, 0.3, 1.0)]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (MIN_FULLTEXT_WEIGHT, MAX_FULLTEXT_WEIGHT)
    assert all(mix.semantic + mix.fulltext == 1 for mix in map(weigh_legs, (0.0, 0.5, 1.0)))


def test_best_in_both_legs_scores_one_and_last_in_one_zero() -> None:
    ranked = fuse([meant("a", 0.8), meant("b", 0.3)], [worded("a", 0.9), worded("c", 0.1)], EVEN)
    assert [(c.message_id, c.score) for c in ranked] == [("a", 1.0), ("b", 0.0), ("c", 0.0)]
    assert ranked[0].ranks == {"semantic": 1, "fulltext": 1}


def test_the_copy_is_that_of_the_weightier_leg() -> None:
    semantic, fulltext = [meant("a", 0.5, HERE)], [worded("a", 0.5, THERE)]
    (found,) = fuse(semantic, fulltext, LegWeights(0.7, 0.3))
    assert (found.copy, found.chunks) == (HERE, {"a#0": 0.5})
    (found,) = fuse(semantic, fulltext, LegWeights(0.3, 0.7))
    assert (found.copy, found.chunks) == (THERE, {})  # what meaning found speaks for another copy
    (found,) = fuse(semantic, [worded("a", 0.5, HERE)], LegWeights(0.3, 0.7))
    assert found.chunks == {"a#0": 0.5}


def test_the_best_of_a_thread_lifts_its_members() -> None:
    alone = worded("alone", 0.6)
    reply = worded("reply", 0.4, thread="t")
    root = worded("root", 1.0, thread="t")
    ranked = fuse([], [root, alone, reply, worded("last", 0.0)], LegWeights(0.0, 1.0))
    assert [c.message_id for c in ranked] == ["root", "reply", "alone", "last"]
    share = THREAD_WEIGHT / (1 + THREAD_WEIGHT)
    assert [c.score for c in ranked] == [1.0, pytest.approx(0.4 * (1 - share) + share), 0.6, 0.0]
    assert [c.thread_score for c in ranked[:2]] == [share, share]


def test_a_thread_is_lifted_by_its_best_in_each_leg_though_they_are_two_messages() -> None:
    semantic = [meant("a1", 0.9, thread="a"), meant("b1", 0.7, thread="b"), meant("x", 0.1)]
    fulltext = [worded("a2", 0.9, thread="a"), worded("b1", 0.7, thread="b"), worded("x", 0.1)]
    ranked = fuse(semantic, fulltext, EVEN)
    # b1 is the better message, 0.75 to 0.5; a holds the best of both legs
    assert [c.message_id for c in ranked] == ["a1", "a2", "b1", "x"]
    assert ranked[0].thread_score == THREAD_WEIGHT / (1 + THREAD_WEIGHT)


def test_members_that_no_leg_found_follow_those_that_one_did_in_the_order_of_the_thread() -> None:
    found = [worded("found", 1.0, thread="t"), worded("x", 0.5), worded("weak", 0.0, thread="t")]
    silent = [worded(i, 0.0, thread="t") for i in ("z", "found", "b")]
    members = add_thread_messages(fuse([], found, LegWeights(0.0, 1.0)), silent)
    assert [(c.message_id, [*c.ranks]) for c in members] == [
        ("found", ["fulltext"]),
        ("weak", ["fulltext"]),
        ("z", []),
        ("b", []),
        ("x", ["fulltext"]),
    ]


def test_only_the_threads_of_the_best_are_looked_at() -> None:
    ranked = [worded(str(i), 1.0, thread=f"t{i // 2}") for i in range(100)]
    assert select_threads(ranked) == [f"t{i}" for i in range(MAX_THREADS)]
    assert select_threads([replace(ranked[0], thread_id=None)]) == []


SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1))


@given(SCORES, SCORES, st.floats(0, 1))
@settings(deadline=None)
def test_fusing_loses_nobody_and_scores_descend_within_zero_and_one(
    meaning: dict[str, float], words: dict[str, float], covered: float
) -> None:
    def ranked(scores: dict[str, float]) -> list[Candidate]:
        return [
            worded(i, s, thread=i.upper()) for i, s in sorted(scores.items(), key=lambda x: -x[1])
        ]

    fused = fuse(ranked(meaning), ranked(words), weigh_legs(covered))
    scores = [c.score for c in fused]
    assert sorted(c.message_id for c in fused) == sorted({*meaning, *words})
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert {i for c in fused for i in c.ranks} <= {"semantic", "fulltext"}


@pytest.mark.parametrize("scores", [[], [0.4], [0.4, 0.4]])
def test_equal_scores_are_all_best(scores: list[float]) -> None:
    found = fuse([meant(str(i), s) for i, s in enumerate(scores)], [], LegWeights(1.0, 0.0))
    assert [c.score for c in found] == [1.0] * len(scores)
