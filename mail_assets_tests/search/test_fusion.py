from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.search.fusion import WEIGHTS, fuse
from mail_assets.search.legs import Candidate, Copy
from mail_assets.search.response import ChunkHit

HERE, THERE = Copy("dev", "2024-03", 0), Copy("users", "2024-03", 0)


def chunk(key: str, score: float = 0.5) -> ChunkHit:
    return ChunkHit(key, 0, "text", ((0, 4),), score)


def semantic(message_id: str, copy: Copy = HERE, *keys: str) -> Candidate:
    return Candidate(message_id, copy, 0.5, chunks=[chunk(key) for key in keys])


def worded(message_id: str, copy: Copy = HERE) -> Candidate:
    return Candidate(message_id, copy, 1.2, words=1.2)


def test_first_in_both_legs_scores_one() -> None:
    (found,) = fuse({"semantic": [semantic("a", HERE, "k")], "fulltext": [worded("a")]})
    assert found.score == 1.0
    assert found.words + found.chunks[0].score == pytest.approx(1.0, abs=2e-6)


def test_a_message_of_both_legs_beats_one_of_either() -> None:
    ranked = fuse(
        {"semantic": [semantic("a"), semantic("b")], "fulltext": [worded("c"), worded("b")]}
    )
    assert [c.message_id for c in ranked] == ["b", "a", "c"]


def test_the_copy_is_that_of_the_weightiest_leg() -> None:
    legs = {"fulltext": [worded("a", THERE)], "semantic": [semantic("a", HERE, "k")]}
    (found,) = fuse(legs)
    assert found.copy == HERE
    assert found.words == 0.0  # what full text found speaks for another copy
    assert found.score == 1.0


def test_equal_places_are_ordered_by_message_id() -> None:
    weights = {"semantic": 1.0, "fulltext": 1.0}
    ranked = fuse({"semantic": [semantic("b")], "fulltext": [worded("a")]}, weights)
    assert [c.message_id for c in ranked] == ["a", "b"]


IDS = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(IDS, IDS)
@settings(deadline=None)
def test_fusing_loses_nobody_and_scores_descend_within_zero_and_one(
    meaning: list[str], words: list[str]
) -> None:
    legs = {"semantic": [semantic(i) for i in meaning], "fulltext": [worded(i) for i in words]}
    before = {name: [replace(c) for c in leg] for name, leg in legs.items()}
    ranked = fuse(legs)
    scores = [c.score for c in ranked]
    assert sorted(c.message_id for c in ranked) == sorted({*meaning, *words})
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert legs == before
    assert [c.message_id for c in fuse({"semantic": legs["semantic"], "fulltext": []})] == meaning
    assert WEIGHTS["semantic"] > WEIGHTS["fulltext"]
