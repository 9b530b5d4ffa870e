"""Hits printed for people."""

from dataclasses import replace

import pytest

from mail_assets.cli.hits import print_hits
from mail_assets.search.response import ChunkHit, FoundBy, Hit, HitExplanation, NewerCopy, Response

HIT = Hit(
    message_id="a@example.org", lists=("dev",), month="2024-03", subject="[PATCH] count boats",
    from_name="Ann", from_email="ann@example.org", sent_at="2024-03-04T09:00:00Z", score=0.5,
    thread_id=None, chunks=(ChunkHit("a#0", 0, "Count.", ((0, 6),), 0.5, None, ()),),
    why=HitExplanation({"fulltext": 1}, ("boats",), None, 0.0), attachments=(),
)  # fmt: skip
NEWER = NewerCopy("b@example.org", "[PATCH v3] count\nboats\x1b", "2024-03-09T09:00:00Z")


def printed(hit: Hit, capsys: pytest.CaptureFixture[str]) -> str:
    print_hits(Response("", "boats", "fulltext", 1.0, short=True, hits=(hit,), explain={}))
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


def test_ids_have_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = ("b\x9b31m@example.org",)
    said = printed(replace(HIT, copies=hostile, in_thread=hostile), capsys)
    assert "\x9b" not in said
    assert "    also as: <b\ufffd31m@example.org>\n" in said
    assert "    in its thread: <b\ufffd31m@example.org>\n" in said


def test_newest_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    said = "    newer: 2024-03-09, [PATCH v3] count boats\ufffd <b@example.org>\n"
    assert said in printed(replace(HIT, newer_copy=NEWER), capsys)
    assert "newer" not in printed(HIT, capsys)
