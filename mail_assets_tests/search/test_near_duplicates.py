"""Near-duplicates are one hit, and only these."""

from dataclasses import replace
from typing import Any

import pytest

from mail_assets.search.page import FOLDED, Folder, name_rest
from mail_assets.search.response import ChunkHit, Hit, HitExplanation, NewerCopy


def hit(message_id: str, **fields: Any) -> Hit:
    text = fields.pop("text", "one two three four five six seven eight nine ten")
    chunk = ChunkHit(f"{message_id}#0", 0, text, ((0, len(text)),), 1.0, None, ())
    shown = {"subject": "s", "from_email": "a@b", "sent_at": "", **fields}
    return Hit(
        message_id=message_id, lists=("dev",), month="2024-03", from_name="",
        score=1.0, thread_id=None, chunks=(chunk,), attachments=(),
        why=HitExplanation({}, (), None, 0.0),
        **shown,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("other", "folded"),
    [
        ({}, True),
        ({"subject": "[PATCH v2 1/3] s"}, True),
        ({"subject": "another"}, False),
        ({"from_email": "c@d"}, False),
        ({"text": "one two three four five six seven eight nine"}, True),
        ({"text": "one two three four five six seven eight other"}, False),
    ],
)
def test_what_one_sender_sent_twice_is_one_hit(other: dict[str, Any], folded: bool) -> None:
    folder = Folder()
    folder.add([hit("a", subject="[PATCH] s"), hit("x", from_email="e@f")])
    folder.add([hit("b", **other)])
    assert [h.message_id for h in folder.hits] == (["a", "x"] if folded else ["a", "x", "b"])
    assert folder.hits[0].copies == (("b",) if folded else ())


@pytest.mark.parametrize(
    ("days", "newer"),
    [
        ([3, 1, 2], None),
        ([1, 3, 2], "2"),
        ([1, 2, 3], "3"),
        ([2, 1], None),
        ([2, 2], None),  # sent at once, to two lists
        ([1], None),
    ],
)
def test_a_hit_names_the_newest_of_what_is_folded_into_it(
    days: list[int], newer: str | None
) -> None:
    folder = Folder()
    sent = {str(n): f"2024-03-0{day}T09:00:00Z" for n, day in enumerate(days, 1)}
    subjects = {one: f"[PATCH v{one}] s" for one in sent}
    folder.add([hit(one, sent_at=at, subject=subjects[one]) for one, at in sent.items()])
    [shown] = folder.hits
    assert shown.message_id == "1"
    wanted = newer and NewerCopy(newer, subjects[newer], sent[newer])
    assert shown.newer_copy == wanted


@pytest.mark.parametrize("block", [1, 7, 2 * FOLDED])
def test_only_the_best_are_folded_however_they_are_added(block: int) -> None:
    folder = Folder()
    many = [hit(str(n)) for n in range(FOLDED + 3)]
    for start in range(0, len(many), block):
        folder.add(many[start : start + block])
    assert [h.message_id for h in folder.hits] == [str(n) for n in (0, *range(FOLDED, FOLDED + 3))]
    assert len(folder.hits[0].copies) == FOLDED - 1


@pytest.mark.parametrize(
    ("threads", "named"),
    [
        # b is sent again as c, in a thread of its own whose answers were found too
        ({"a": "x", "b": "y", "c": "z"}, {"a": ("x1",), "b": ("y1", "z1", "z2")}),
        ({"a": "x", "b": "y", "c": "y"}, {"a": ("x1",), "b": ("y1",)}),
        # a is the first of that thread, and names them
        ({"a": "z", "b": "y", "c": "z"}, {"a": ("z1", "z2"), "b": ("y1",)}),
    ],
)
def test_what_was_found_of_a_thread_is_named_though_its_best_message_is_folded(
    threads: dict[str, str], named: dict[str, tuple[str, ...]]
) -> None:
    folder = Folder()
    found = (hit("a", from_email="e@f"), hit("b"), hit("c", subject="[PATCH v2] s"))
    folder.add(replace(one, thread_id=threads[one.message_id]) for one in found)
    rest = {"x": ["x1"], "y": ["y1"], "z": ["z1", "z2"]}
    assert {one.message_id: one.in_thread for one in name_rest(folder, rest, 10)} == named
    assert [one.message_id for one in name_rest(folder, rest, 1)] == ["a"]
