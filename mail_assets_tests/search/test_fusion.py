"""Fusion of two rankings, and the evidence of threads."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mail_assets.month import ListMonth
from mail_assets.search.fusion import (
    FLOOR,
    MAX_FULLTEXT_WEIGHT,
    MIN_FULLTEXT_WEIGHT,
    MIN_STRENGTH,
    SHORT_QUESTION,
    THREAD_WEIGHT,
    Mix,
    add_thread_messages,
    drop_far,
    fuse,
    settle_ends,
    weigh_legs,
)
from mail_assets.search.matches import Candidate, MessageCopy

DEV, USERS = ListMonth("dev", "2024-03"), ListMonth("users", "2024-03")
HERE, THERE = MessageCopy(DEV, 0), MessageCopy(USERS, 0)
EVEN = Mix(0.5, 0.5, threads=3.0)
#: Weights for only the evidence of threads, and for only a message's own score.
ALONE = Mix(0.5, 0.5, threads=0.0)


def meant(message_id: str, score: float, copy: MessageCopy = HERE, thread: str = "") -> Candidate:
    chunks = {f"{message_id}#0": 1 - score}
    return Candidate(message_id, copy, thread or message_id, score, chunks)


def worded(message_id: str, score: float, copy: MessageCopy = HERE, thread: str = "") -> Candidate:
    return Candidate(message_id, copy, thread or message_id, score)


def ids(ranked: list[Candidate]) -> list[str]:
    return [one.message_id for one in ranked]


def test_coverage_raises_fulltext_and_lowers_threads() -> None:
    mixes = [weigh_legs(covered, SHORT_QUESTION) for covered in (0.0, 0.3, 0.8, 1.0)]
    shares, threads = [mix.fulltext for mix in mixes], [mix.threads for mix in mixes]
    assert (shares[0], shares[-1]) == (MIN_FULLTEXT_WEIGHT, MAX_FULLTEXT_WEIGHT)
    assert (threads[0], threads[-1]) == (THREAD_WEIGHT, 0)
    assert (shares, threads) == (sorted(shares), sorted(threads, reverse=True))
    assert all(mix.semantic + mix.fulltext == pytest.approx(1) for mix in mixes)


def test_few_words_are_not_pasted_but_a_name_is() -> None:
    threads = [weigh_legs(1.0, words).threads for words in (1, 3, SHORT_QUESTION, 30)]
    assert threads == sorted(threads, reverse=True)
    assert threads[0] > THREAD_WEIGHT / 2 > 0 == threads[2]
    assert weigh_legs(1.0, 1, names=1) == weigh_legs(1.0, SHORT_QUESTION)
    assert weigh_legs(1.0, 2, names=1) == weigh_legs(1.0, 2)


def test_brief_message_comes_last_unless_question_is_pasted() -> None:
    brief = meant("a", 0.5, thread="t")._replace(is_brief=True)
    found = [brief, meant("b", 0.5, thread="t")]
    words = [worded("a", 0.5, thread="t")._replace(is_brief=True), worded("b", 0.5, thread="t")]
    assert ids(fuse(found, words, weigh_legs(0.5, 5))) == ["b", "a"]
    assert ids(fuse(found, words, weigh_legs(1.0, SHORT_QUESTION))) == ["a", "b"]


def test_first_message_leads_unless_question_is_pasted() -> None:
    answer, question = worded("a", 1.0, thread="t"), worded("q", 1.0, thread="u")
    fulltext = [answer, question._replace(begins=True), worded("last", 0.1)]
    semantic = [meant("last", 0.5), meant("x", 0.3)]
    assert ids(fuse(semantic, fulltext, weigh_legs(0.5, 20)))[:2] == ["q", "a"]
    assert ids(fuse(semantic, fulltext, weigh_legs(1.0, 20)))[:2] == ["a", "q"]
    best = fuse(semantic, fulltext, weigh_legs(0.5, 20))
    assert all(0 <= one.score <= 1 for one in best)


def test_single_leg_keeps_its_order() -> None:
    fulltext = [worded("a", 0.51), worded("b", 0.5)._replace(begins=True), worded("c", 0.1)]
    assert ids(fuse([], fulltext, weigh_legs(0.3, 20))) == ["a", "b", "c"]


def test_threads_weigh_less_the_longer_a_question_is() -> None:
    threads = [weigh_legs(0.0, words).threads for words in (0, 1, SHORT_QUESTION, 24, 48)]
    assert threads == [THREAD_WEIGHT] * 3 + [THREAD_WEIGHT / 2, THREAD_WEIGHT / 4]


def test_scores_are_the_strength_of_the_legs() -> None:
    semantic, fulltext = [meant("a", 0.6), meant("b", 0.4)], [worded("a", 0.7), worded("c", 0.1)]
    ranked = fuse(semantic, fulltext, EVEN)
    strength = 0.5 * (0.6 - FLOOR) / (1 - FLOOR) + 0.5 * 0.7
    assert [(c.message_id, c.score) for c in ranked] == [
        ("a", pytest.approx(strength)),
        ("b", 0.0),
        ("c", 0.0),
    ]
    assert ranked[0].ranks == {"semantic": 1, "fulltext": 1}


def test_nonsense_scores_below_the_minimum() -> None:
    mix = weigh_legs(0.3, 6)
    (best, *_) = fuse([meant("a", 0.27), meant("b", 0.25)], [worded("b", 0.15)], mix)
    assert best.score < MIN_STRENGTH
    assert fuse([meant("a", FLOOR), meant("b", 0.1)], [], mix) == []


@pytest.mark.parametrize(
    ("least", "by_name", "kept"),
    [(0.3, False, ["a", "c"]), (0.55, False, ["c"]), (0.3, True, ["a", "b", "c"])],
)
def test_far_messages_are_dropped_unless_words_found_them(
    least: float, by_name: bool, kept: list[str]
) -> None:
    fused = fuse([meant("a", 0.4), meant("b", 0.25)], [worded("c", 0.01)], ALONE)
    assert sorted(ids(drop_far(fused, least, by_name=by_name))) == kept


def test_whole_subjects_are_first_and_nameless_messages_last() -> None:
    ranked = [worded("a", 0.9)._replace(is_named=False), worded("b", 0.5), worded("c", 0.4)]
    settled = settle_ends(ranked, [worded("new", 0.0), worded("c", 0.0)])
    assert [(one.message_id, one.score) for one in settled] == [
        *(("new", 0.9), ("c", 0.9), ("b", 0.5), ("a", 0.5))
    ]
    assert [dict(one.ranks) for one in settled[:2]] == [{"subject": 1}, {"subject": 2}]
    assert settle_ends([], [worded("new", 0.0)])[0].score == 1.0


def test_copy_is_that_of_the_leg_with_more_weight() -> None:
    semantic, fulltext = [meant("a", 0.5, HERE)], [worded("a", 0.5, THERE)]
    (found,) = fuse(semantic, fulltext, Mix(0.7, 0.3, 0.0))
    assert (found.copy, found.chunks) == (HERE, {"a#0": 0.5})
    (found,) = fuse(semantic, fulltext, Mix(0.3, 0.7, 0.0))
    assert (found.copy, found.chunks) == (THERE, {})  # meaning found passages of another copy
    (found,) = fuse(semantic, [worded("a", 0.5, HERE)], Mix(0.3, 0.7, 0.0))
    assert found.chunks == {"a#0": 0.5}


def test_best_of_a_thread_lifts_its_members() -> None:
    fulltext = [worded("root", 1.0, thread="t"), worded("alone", 0.6)]
    fulltext += [worded("reply", 0.4, thread="t"), worded("last", 0.0)]
    semantic = [meant("other", 1.0), meant("last", 0.3)]
    mix = Mix(semantic=0.1, fulltext=0.9, threads=3.0)
    ranked = fuse(semantic, fulltext, mix)
    assert ids(ranked) == ["root", "reply", "alone", "other", "last"]
    share = 0.9 * 3 / 4  # the strength is 1
    assert [c.thread_score for c in ranked[:2]] == [pytest.approx(share)] * 2
    assert ranked[1].score == pytest.approx(0.9 * 0.4 / 4 + share)
    assert ids(fuse(semantic, fulltext, replace(mix, threads=0.0)))[:3] == [
        "root",
        "alone",
        "reply",
    ]


def test_thread_is_lifted_by_its_best_in_each_leg() -> None:
    semantic = [meant("a1", 0.9, thread="a"), meant("b1", 0.7, thread="b"), meant("x", 0.3)]
    fulltext = [worded("a2", 0.9, thread="a"), worded("b1", 0.7, thread="b"), worded("x", 0.1)]
    assert ids(fuse(semantic, fulltext, ALONE)) == ["b1", "a1", "a2", "x"]
    # b1 is the better message; thread a has the best of both legs
    assert ids(fuse(semantic, fulltext, EVEN)) == ["a1", "a2", "b1", "x"]


def test_thread_messages_follow_those_that_a_leg_found() -> None:
    fulltext = [worded("found", 1.0, thread="t"), worded("weak", 0.2, thread="t")]
    semantic = [meant("x", 0.5), meant("last", 0.3)]
    silent = [worded(i, 0.0, thread="t") for i in ("z", "found", "b")]
    strangers = [worded("stranger", 0.0, thread="of nobody")]
    fused = fuse(semantic, fulltext, Mix(0.2, 0.8, 3.0))
    members = add_thread_messages(fused, [*silent, *strangers])
    assert [(c.message_id, [*c.ranks]) for c in members] == [
        ("found", ["fulltext"]),
        ("weak", ["fulltext"]),
        ("z", []),
        ("b", []),
        ("x", ["semantic"]),
        ("last", ["semantic"]),
    ]


SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.3, 1))
MIXES = st.builds(weigh_legs, st.floats(0, 1), st.integers(0, 60))


def ranked(scores: Mapping[str, float], threads: str = "") -> list[Candidate]:
    """Candidates in the order of a leg; the ids in `threads` are of one thread."""
    order = sorted(scores.items(), key=lambda x: (-x[1], x[0]))
    return [worded(i, s, thread="t" if i in threads else i) for i, s in order]


@given(SCORES, SCORES, MIXES)
def test_fusion_keeps_all_with_descending_scores(
    meaning: dict[str, float], words: dict[str, float], mix: Mix
) -> None:
    fused = fuse(ranked(meaning, "abcd"), ranked(words, "abcd"), mix)
    scores = [c.score for c in fused]
    assert sorted(ids(fused)) == sorted({*meaning, *words})
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert {i for c in fused for i in c.ranks} <= {"semantic", "fulltext"}


@given(SCORES, SCORES, MIXES)
def test_message_that_is_first_in_both_legs_is_first(
    meaning: dict[str, float], words: dict[str, float], mix: Mix
) -> None:
    best = {"first": 2.0}
    fused = fuse(ranked(meaning | best, "abcd"), ranked(words | best, "abcd"), mix)
    assert fused[0].message_id == "first"


@given(SCORES, MIXES, st.sampled_from(["semantic", "fulltext"]))
def test_empty_leg_leaves_the_order_of_the_other(
    scores: dict[str, float], mix: Mix, name: str
) -> None:
    leg = ranked(scores, "abcd")
    found = fuse(leg, [], mix) if name == "semantic" else fuse([], leg, mix)
    assert ids(found) == ids(leg)


@given(SCORES, SCORES, MIXES, st.lists(st.floats(-1, FLOOR), max_size=5))
def test_similarity_below_the_floor_changes_nothing(
    meaning: dict[str, float], words: dict[str, float], mix: Mix, noise: list[float]
) -> None:
    assume(meaning or words)
    quiet = fuse(ranked(meaning), ranked(words), mix)
    more = [meant(f"noise{n}", s) for n, s in enumerate(sorted(noise, reverse=True))]
    assert fuse([*ranked(meaning), *more], ranked(words), mix) == quiet


@given(SCORES, SCORES, MIXES)
def test_better_in_both_legs_is_not_ranked_lower(
    meaning: dict[str, float], words: dict[str, float], mix: Mix
) -> None:
    order = ids(fuse(ranked(meaning), ranked(words), mix))
    place = {message_id: n for n, message_id in enumerate(order)}
    for one in order:
        for other in order:
            better = [leg.get(one, 0.0) - leg.get(other, 0.0) for leg in (meaning, words)]
            if min(better) > 0.01:
                assert place[one] < place[other]


@pytest.mark.parametrize("scores", [[], [0.4], [0.4, 0.4]])
def test_equal_scores_are_all_best(scores: list[float]) -> None:
    found = fuse([meant(str(i), s) for i, s in enumerate(scores)], [], EVEN)
    assert [c.score for c in found] == [pytest.approx(0.2 / 0.8)] * len(scores)
