"""`mail-assets thread`: a conversation as a tree, and its summary."""

import datetime as dt
import json

import click
import pytest

from mail_assets.cli.thread import format_conversation
from mail_assets.mail.body.segments import segment_body
from mail_assets.month import ListMonth
from mail_assets.reading.conversations import Conversation, Post
from mail_assets_tests.cli.conftest import Run
from mail_assets_tests.sample_corpus import ROOT


@pytest.mark.parametrize("given", [ROOT, f"<{ROOT}>"])
def test_thread_prints_the_conversation_and_marks_the_id(run: Run, given: str) -> None:
    result = run("thread", given)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [line.lstrip("│ ") for line in result.stdout.splitlines()]
    subject, figures, *_ = lines
    assert subject
    assert figures.endswith(", in harbor-dev, harbor-users")
    [marked] = [n for n, line in enumerate(lines) if line.startswith("→ ")]
    assert f"<{ROOT}>" in lines[marked + 1 : marked + 3]
    assert " quoted]\n" in result.stdout
    assert "\n│ > " in run("thread", "--full", given).stdout


def test_thread_json_is_the_same_from_each_message(run: Run) -> None:
    first = run("thread", ROOT, "--json")
    assert (first.exit_code, first.stderr) == (0, "")
    said = json.loads(first.stdout)
    assert len(said["posts"]) > 2
    for post in said["posts"]:
        assert json.loads(run("thread", post["message_id"], "--json").stdout) == said


def test_summary_names_the_message_of_each_sentence(run: Run) -> None:
    result = run("thread", ROOT, "--summary")
    assert (result.exit_code, result.stderr) == (0, "")
    said = json.loads(run("thread", ROOT, "--summary", "--json").stdout)
    assert said == json.loads(run("thread", ROOT, "--json").stdout)["summary"]
    assert said["sentences"]
    lines = result.stdout.splitlines()
    assert f"{said['messages']} messages, " in lines[1]
    for one in said["sentences"]:
        assert " ".join(one["text"].split()) in " ".join(result.stdout.split())
        assert any(line.endswith(f"<{one['message_id']}>") for line in lines)
    assert run("thread", "nobody@nowhere.example", "--summary").exit_code == 1


NOON = dt.datetime(2024, 3, 4, 12, tzinfo=dt.UTC)


def post(
    position: int,
    depth: int,
    body: str = "",
    parent: str | None = None,
    subject: str = "Leases",
    name: str = "Ann",
) -> Post:
    return Post(
        position=position,
        depth=depth,
        message_id=f"{position}@x",
        is_ghost=False,
        parent_id=parent,
        parent_message_id=parent,
        by_subject=False,
        places=(ListMonth("dev", "2024-03"), ListMonth("users", "2024-03")),
        from_name=name,
        from_email=f"{name.lower()}@x",
        sent_at=NOON + dt.timedelta(days=position),
        subject=f"Re: {subject}",
        subject_base=subject,
        body_text=body,
        characters=len(body),
        segments=tuple(segment_body(body)),
        attachments=(),
    )


def ghost(position: int, depth: int) -> Post:
    return Post(
        *(position, depth, f"{position}@x", True, None, None, False, (), "", "", None),
        *("", "", "", 0, (), ()),
    )


def paper(*posts: Post, asked: str = "", full: bool = False) -> str:
    shown = format_conversation(Conversation("0@x", posts), asked, full)
    return click.unstyle("\n".join(shown))


ANSWER = f"""\
On Monday Ann wrote:
> It holds.
> Always.

Not for long.

> Why?

See below.

--{" "}
Bo
"""


def test_conversation_is_a_tree_with_quotes_folded() -> None:
    said = paper(
        post(0, 0, "It holds.\n"), ghost(1, 1), post(2, 1, ANSWER, "0@x", name="Bo"), asked="2@x"
    )
    assert (
        said
        == """\
Leases
2 messages by 2 people, 2024-03-04 to 2024-03-06, in dev, users

Ann, 2024-03-04 12:00 UTC, dev, users
<0@x>

It holds.

│ (in none of the archives)
│ <1@x>

│ → Bo, 2024-03-06 12:00 UTC, dev, users
│ <2@x>
│
│ [3 lines quoted]
│ Not for long.
│ [1 line quoted]
│ See below."""
    )


def test_conversation_without_messages_is_printed() -> None:
    assert (
        paper(ghost(0, 0))
        == """\
(no subject)
0 messages by 0 people

(in none of the archives)
<0@x>"""
    )


def test_full_conversation_has_quotes_and_signatures() -> None:
    said = paper(post(0, 0, ANSWER), full=True)
    assert said.endswith(ANSWER.rstrip("\n").replace("-- \n", "--\n"))
    assert said.startswith("Leases\n1 message by 1 person, 2024-03-04, in dev, users\n")


def test_patch_is_folded() -> None:
    patch = "--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a\n+b\n"
    assert paper(post(0, 0, f"Look:\n\n{patch}")).endswith("Look:\n[5 lines of a patch]")


def test_new_subject_is_printed_once() -> None:
    said = paper(
        post(0, 0), post(1, 1, parent="0@x", subject="Clocks"), post(2, 2, "", "1@x", "Clocks")
    )
    assert said.count("Subject: Re: Clocks") == 1
    assert "Subject: Re: Leases" not in said


def test_deep_thread_is_indented_ten_levels_at_most() -> None:
    said = paper(*(post(n, n, parent=f"{n - 1}@x" if n else None) for n in range(40)))
    assert max(line.count("│") for line in said.splitlines()) == 10


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x9b31m", "\r", "\x07"])
def test_text_of_mail_has_no_control_characters(hostile: str) -> None:
    said = paper(post(0, 0, f"a{hostile}b\n", subject=f"x{hostile}", name=f"n{hostile}"))
    assert hostile not in said
    assert "a\N{REPLACEMENT CHARACTER}" in said
