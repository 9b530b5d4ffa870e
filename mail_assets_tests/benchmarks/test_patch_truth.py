"""Scores of commits, versions and outcomes against rows written by hand."""

from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks.patch_truth import (
    Measure,
    Row,
    bare,
    is_same,
    score_commits,
    score_outcomes,
    score_series,
)

SHA = "3f2a9d1b0c4e5f60718293a4b5c6d7e8f9012345"


def by(_: str, group: str) -> str:
    return group


def values(measures: list[Measure]) -> dict[str, float]:
    return {one.name: round(one.estimate()[0], 3) for one in measures}


def commit(sha: str, kind: str, *linked: str, day: int = 1) -> Row:
    date = f"2024-03-0{day}T09:00:00Z"
    row = {"sha": sha, "kind": kind, "author": "Ann <a@x.org>", "author_date": date}
    return {**row, "linked": [*linked], "patch_id_mails": []}


def test_commits_are_scored_by_their_first_mail() -> None:
    truth = [
        commit("a", "linked", "1@x"),
        commit("b", "linked", "2@x", "3@x", day=2),
        commit("c", "linked", "4@x", day=3),
        commit("d", "no-mail", day=4),
        commit("e", "no-mail", day=5),
        commit("f", "unknown"),
    ]
    said = [
        {"sha": "a", "message_ids": ["<1@x>", "9@x"], "abstained": False},
        {"sha": "b", "message_ids": ["9@x", "3@x"], "abstained": False},
        {"sha": "c", "message_ids": ["4@x"], "abstained": True},
        {"sha": "d", "message_ids": [], "abstained": True},
    ]
    assert values(score_commits(truth, said, by)) == {
        "linked mail first": 0.333,
        "first of those with a mail": 0.5,
        "linked mail or its patch-id first": 0.333,
        "without mail refused": 0.5,
    }


def lineage(*versions: tuple[str, str]) -> Row:
    date = "2024-03-01T09:00:00Z"
    return {
        "versions": [
            {"message_id": id, "subject": subject, "author": "Ann <a@x.org>", "date": date}
            for id, subject in versions
        ]
    }


def test_versions_are_scored_by_pairs() -> None:
    truth = [
        lineage(("1@x", "[PATCH] a"), ("2@x", "[PATCH v2] a"), ("3@x", "[PATCH v3] b")),
        lineage(("4@x", "[PATCH] c"), ("5@x", "[PATCH v2] c")),
    ]
    said = [
        {"message_id": "1@x", "versions": ["1@x", "2@x", "9@x"]},
        {"message_id": "5@x", "versions": ["4@x", "3@x"]},
    ]
    assert values(score_series(truth, said, by)) == {
        "pairs of versions: precision": 0.667,
        "pairs of versions: recall": 0.5,
        "pairs of versions: F1": 0.571,
        "pairs, titles differ: precision": 0.0,
        "pairs, titles differ: recall": 0.0,
        "pairs, titles differ: F1": 0.0,
    }


def test_outcomes_are_scored_by_patch_and_commit() -> None:
    written = {"author": "Bo <b@x.org>", "date": "2024-03-05T09:00:00Z", "outcome": "applied"}
    patches: list[Mapping[str, Any]] = [
        {"message_id": "1@x", "sha": SHA},
        {"message_id": "2@x", "sha": None},
    ]
    truth: list[Mapping[str, Any]] = [
        {**written, "message_id": "t@x", "shas": [SHA], "answers": None, "patches": patches},
        {**written, "message_id": "u@x", "shas": [], "answers": "3@x", "patches": []},
    ]
    said: list[Mapping[str, Any]] = [
        {"message_id": "1@x", "sha": SHA[:12]},
        {"message_id": "2@x", "said_in": "t@x"},
        {"message_id": "4@x", "said_in": "t@x"},
        {"message_id": "0@x", "said_in": "t@x", "is_cover": True},
        {"message_id": "t@x", "sha": SHA},
    ]
    assert values(score_outcomes(truth, said, by)) == {
        "mail that says so finds its patches": 0.667,
        "patches of such mail are its own": 0.5,
        "patch finds its commit": 1.0,
        "commits of a patch are its own": 1.0,
        "mail finds the commits that it names": 1.0,
    }


def test_interval_holds_groups_together() -> None:
    alone, together = Measure("alone"), Measure("together")
    for number in range(40):
        alone.add(str(number), number % 2)
        together.add(str(number % 2), number % 2)
    value, low, high, count = alone.estimate()
    assert (value, count) == (0.5, 40)
    assert 0.3 < low < 0.45 < 0.55 < high < 0.7
    assert together.estimate() == (0.5, 0.0, 1.0, 40)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [(SHA, SHA[:7], True), (SHA[:12], SHA[:9], True), (SHA, SHA[:6], False), (SHA, "0" * 9, False)],
)
def test_shortened_ids_of_commits_are_compared(one: str, other: str, same: bool) -> None:
    assert is_same(one, other) is same
    assert bare(f" <{one}> ") == one
