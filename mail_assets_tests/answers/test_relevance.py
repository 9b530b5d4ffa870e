"""Relevance of passages: their features, and the rate that ranks them."""

import pytest

from mail_assets.answers.passages import (
    LONG,
    Features,
    describe,
    find_names,
    rate,
)

NEAR = Features(
    words=1.0, similarity=0.9, chunk=0.9, missing=0.0, length=1.0, uncounted=0.0, asks=0.0
)


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
