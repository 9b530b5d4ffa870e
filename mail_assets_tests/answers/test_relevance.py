"""Relevance of passages: their features, and the claim that the archive answers."""

import pytest

from mail_assets.answers.passages import (
    FITTED_ENCODERS,
    LEAST,
    LONG,
    Features,
    answers,
    describe,
    describe_shown,
    find_names,
    is_unsure,
    lacks_kind,
    rate,
    rate_shown,
)

NEAR = Features(
    words=1.0, similarity=0.9, chunk=0.9, missing=0.0, length=1.0, uncounted=0.0, asks=0.0
)
FAR = Features(
    words=0.1, similarity=0.2, chunk=0.2, missing=0.0, length=1.0, uncounted=0.0, asks=0.0
)
[ENCODER] = FITTED_ENCODERS


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What does RESOLVE_CACHED do in openat2?", {"resolve_cached", "openat2"}),
        ("How do I use twisted.cred with PB?", {"twisted.cred", "pb"}),
        ("Since when does Linux 5.11 have it?", {"linux", "5.11"}),
        ("Why is listenTCP(0) slow", {"listentcp", "0"}),
        ("How long is a lease?", set()),
        ("Leases expire when?", set()),
        ("¿Por qué expira el lease?", set()),
        ("", set()),
    ],
)
def test_names_of_a_question(question: str, names: set[str]) -> None:
    assert find_names(question) == names


@pytest.mark.parametrize(
    ("question", "lacks"),
    [
        ("Which package has fsck?", True),
        ("In which packages is it?", True),
        ("Which tools has it?", False),
        ("To which tool does it belong?", False),
        ("Which is it?", False),
        ("Which of them has it?", False),
        ("How is the package called which has it?", False),
    ],
)
def test_text_without_the_kind_that_is_asked_for(question: str, lacks: bool) -> None:
    assert lacks_kind(question, "Run the Tool fsck.") == lacks


@pytest.mark.parametrize(
    ("text", "unsure"),
    [
        ("I am confused over the options: FOO and BAR.", True),
        ("I\u2019m a bit confused: is it FOO?", True),
        ("I'm really not sure whether FOO does it.", True),
        ("I don't know of BAR. FOO may do it.", True),
        ("I really do not understand FOO.", True),
        ("Does anybody use FOO for it?", True),
        ("FOO does it. Nobody knows why.", False),
        ("Use FOO if you do not know BAR.", False),
    ],
)
def test_unsure_author_is_recognized(text: str, unsure: bool) -> None:
    assert is_unsure(text) == unsure


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("What does FOO_A do with FOO_B?", "FOO_A does all.", {"missing": 0.5}),
        ("What does FOO_A do?", "foo_a does all.", {"missing": 0.0}),
        ("What does it do?", "It does all.", {"missing": 0.0}),
        ("How many are there?", "There are many.", {"uncounted": 1.0}),
        ("How many are there?", "There are 12.", {"uncounted": 0.0}),
        ("Which are there?", "There are many.", {"uncounted": 0.0}),
        ("Since which version?", "For long.", {"uncounted": 1.0}),
        ("Why?", "Does anybody know why?", {"asks": 1.0}),
        ("Why?", "Who knows? Ann does.", {"asks": 0.0}),
        ("Which clock decides?", 'They ask "which clock decides?" here.', {"asks": 1.0}),
        ("Which clock decides it?", "Which day? The clock decides it.", {"asks": 0.0}),
        ("Why?", "word " * LONG, {"length": 1.0}),
        ("Why?", "word " * (LONG // 2), {"length": 0.5}),
    ],
)
def test_features_of_a_passage(question: str, text: str, expected: dict[str, float]) -> None:
    found = describe(question, "A subject", text, words=0.5, chunk=0.5)._asdict()
    assert {name: found[name] for name in expected} == expected


def test_name_in_the_subject_is_not_missing() -> None:
    found = describe("What does FOO_A do?", "About FOO_A", "It does all.", words=0.5, chunk=0.5)
    assert found.missing == 0.0


@pytest.mark.parametrize(
    ("feature", "better"),
    [
        ("words", True), ("similarity", True), ("chunk", True), ("length", True),
        ("missing", False), ("uncounted", False), ("asks", False),
    ],
)  # fmt: skip
def test_each_feature_moves_the_rate_its_way(feature: str, better: bool) -> None:
    none, all_of_it = (NEAR._replace(**{feature: value}) for value in (0.0, 1.0))
    assert (rate(all_of_it) > rate(none)) is better


@pytest.mark.parametrize(
    ("rates", "rank", "encoder", "said"),
    [
        ([rate(NEAR), rate(FAR)], 0, ENCODER, True),
        ([rate(NEAR)], 0, ENCODER, True),
        ([rate(NEAR), rate(FAR)], 0, "another-model", False),
        ([rate(NEAR), rate(FAR)], 0, "", False),
        ([rate(FAR), rate(FAR)], 0, ENCODER, False),
        ([rate(NEAR._replace(similarity=0.0, chunk=0.0))], 0, ENCODER, False),
    ],
)
def test_archive_answers_only_if_one_passage_stands_out(
    rates: list[float], rank: int, encoder: str, said: bool
) -> None:
    assert answers(describe_shown(rates, rank), encoder) is said


def test_second_passage_as_good_makes_the_claim_weaker() -> None:
    alone, two = (rate_shown(describe_shown([0.0, second], 0)) for second in (rate(FAR), 0.0))
    assert alone > two
    assert rate_shown(describe_shown([0.0], 0)) > rate_shown(describe_shown([0.0], 9))
    assert 0.5 < LEAST < 1.0
