"""Hits printed for people."""

from dataclasses import replace

import pytest

from mail_assets.cli.search import print_response
from mail_assets.search.response import (
    ChunkHit,
    Conversation,
    FirstMessage,
    FoundBy,
    Hit,
    HitExplanation,
    NewerCopy,
    Response,
)

HIT = Hit(
    message_id="a@example.org", lists=("dev",), month="2024-03", subject="[PATCH] count boats",
    from_name="Ann", from_email="ann@example.org", sent_at="2024-03-04T09:00:00Z", score=0.5,
    thread_id=None, chunks=(ChunkHit("a#0", 0, "Count.", ((0, 6),), 0.5, None, ()),),
    why=HitExplanation({"fulltext": 1}, ("boats",), None, 0.0), attachments=(),
)  # fmt: skip
NEWER = NewerCopy("b@example.org", "[PATCH v3] count\nboats\x1b", "2024-03-09T09:00:00Z")


def printed(hit: Hit, capsys: pytest.CaptureFixture[str]) -> str:
    print_response(Response("", "boats", "fulltext", 1.0, short=True, hits=(hit,), explain={}))
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("found_by", "ranks", "about", "why"),
    [
        ("legs", {"fulltext": 1}, "dev, 0.500", "fulltext 1; words boats"),
        ("thread", {}, "dev, 0.500", "its thread; words boats"),
        ("id", {}, "dev, 0.500", "its id; words boats"),
        ("date", {}, "dev", "date (it has all that is asked); words boats"),
    ],
)
def test_hit_shows_its_retrievers_and_its_score(
    capsys: pytest.CaptureFixture[str],
    found_by: FoundBy,
    ranks: dict[str, int],
    about: str,
    why: str,
) -> None:
    why_ = HitExplanation(ranks, ("boats",), None, 0.0, found_by)
    said = printed(replace(HIT, why=why_), capsys)
    assert f"    Ann, 2024-03-04, {about}\n" in said
    assert f"    why: {why}\n" in said


@pytest.mark.parametrize(
    ("name", "email", "shown"),
    [
        ("Ann\x1b", "ann@example.org", "Ann\ufffd"),
        ("", "ann@example.org", "ann@example.org"),
        ("", "", "unknown sender"),
    ],
)
def test_sender_is_a_name_an_address_or_unknown(
    capsys: pytest.CaptureFixture[str], name: str, email: str, shown: str
) -> None:
    said = printed(replace(HIT, from_name=name, from_email=email), capsys)
    assert f"    {shown}, 2024-03-04, dev" in said


def test_ids_have_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = ("b\x9b31m@example.org",)
    said = printed(
        replace(HIT, copies=hostile, newer_copy=replace(NEWER, message_id=hostile[0])), capsys
    )
    assert "\x9b" not in said
    assert "    also as: <b\ufffd31m@example.org>\n" in said
    assert " <b\ufffd31m@example.org>\n" in said.split("newer: ")[1]


def test_newest_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    said = "    newer: 2024-03-09, [PATCH v3] count boats\ufffd <b@example.org>\n"
    assert said in printed(replace(HIT, newer_copy=NEWER), capsys)
    assert "newer" not in printed(HIT, capsys)


FIRST = FirstMessage(
    *("1@example.org", "Bo", "bo@example.org", "2024-03-01T09:00:00Z", "Who\ncounts\x1b?"),
    contested=True,
)
ROW = Conversation(
    thread_id="0@example.org", subject="boats", lists=("dev", "users"),
    first_sent_at="2024-03-01T09:00:00Z", last_sent_at="2024-03-09T09:00:00Z",
    messages=9, people=5, names=("Bo", "Ann"), first=FIRST,
    best=("a@example.org",), more=2, others=("c@example.org", "d@example.org"),
)  # fmt: skip


def printed_row(row: Conversation, capsys: pytest.CaptureFixture[str]) -> str:
    print_response(Response("", "boats", "fulltext", 1.0, False, (HIT,), (row,)))
    return capsys.readouterr().out


def test_conversation_shows_its_first_message_and_its_best(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printed_row(ROW, capsys).splitlines() == [
        " 1. boats",
        "    2024-03-01 to 2024-03-09, 9 messages, dev, users; Bo, Ann and 3 more",
        "    first: Bo, 2024-03-01 <1@example.org>",
        "      contested: several texts claim this Message-ID",
        "      Who counts\ufffd?",
        "    found: Ann, 2024-03-04, 0.500 <a@example.org>",
        "      [PATCH] count boats",
        "      Count.",
        "    2 more found in it: thread:0@example.org",
    ]


def test_first_message_that_was_found_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    first = replace(FIRST, message_id="a@example.org")
    row = replace(ROW, first=first, subject="count boats", more=0, people=1, messages=1)
    assert printed_row(row, capsys).splitlines()[1:] == [
        "    2024-03-01 to 2024-03-09, 1 message, dev, users; Bo, Ann",
        "    first: Ann, 2024-03-04, 0.500 <a@example.org>",
        "      Count.",
    ]
