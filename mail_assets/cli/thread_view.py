"""What `mail-assets thread` prints for people: a conversation as an indented tree."""

import datetime as dt
from collections.abc import Iterator
from itertools import groupby

import click

from mail_assets.cli.output import plural, printable
from mail_assets.mail.message.forgotten import is_stand_in
from mail_assets.tables.conversations import Conversation, Post

#: Levels of indentation: a line has to stay readable.
MAX_INDENT = 10

#: What a run of folded lines is called; signatures and footers are left out silently.
_FOLDED = {"quote": "quoted", "attribution": "quoted", "patch": "of a patch"}
_SHOWN = {"text", *_FOLDED}


def format_conversation(conversation: Conversation, asked: str, full: bool) -> Iterator[str]:
    """Yield a heading and one text a post, in pre-order; the post `asked` for is marked.

    Quotes and patches are folded, signatures and footers left out, unless all is to be shown.
    """
    posts = conversation.messages
    people = {post.from_email.lower() for post in posts}
    days = sorted(_day(post.sent_at) for post in posts if post.sent_at)
    subjects = {post.message_id: post.subject_base for post in posts}
    subject = posts[0].subject_base if posts else ""
    yield click.style(printable(subject) or "(no subject)", bold=True)
    about = f"{plural(len(posts), 'message')} by {plural(len(people), 'person', 'people')}"
    if posts:  # none where all have gone since threads were built
        when = " to ".join(dict.fromkeys((days[0], days[-1])))
        about += f", {when}, in {', '.join(conversation.lists)}"
    yield about
    for post in conversation.posts:
        above = subjects.get(post.parent_id or "", subject)
        lines = [*_heading(post, above, marked=post.message_id == asked)]
        if not post.is_ghost:
            lines += ["", *_body(post, full)]
        guide = "│ " * min(post.depth, MAX_INDENT)
        yield "\n".join(["", *(f"{guide}{line}".rstrip() for line in lines)])


def _heading(post: Post, subject_above: str, marked: bool) -> Iterator[str]:
    mark = "→ " if marked else ""
    if post.is_ghost:
        why = "forgotten" if is_stand_in(post.message_id) else "in none of the archives"
        yield click.style(f"{mark}({why})", italic=True)
    else:
        who = printable(post.from_name or post.from_email)
        when = f"{post.sent_at.astimezone(dt.UTC):%Y-%m-%d %H:%M}" if post.sent_at else ""
        where = ", ".join(dict.fromkeys(place.list_name for place in post.places))
        yield click.style(f"{mark}{who}", bold=True) + f", {when} UTC, {where}"
        if post.subject_base != subject_above:
            yield f"Subject: {printable(post.subject)}"
    yield click.style(f"<{printable(post.message_id)}>", dim=True)


def _body(post: Post, full: bool) -> list[str]:
    if full or not post.segments:
        return _lines(post.body_text)
    shown = [
        (_FOLDED.get(kind), post.body_text[start:end])
        for start, end, kind in post.segments
        if kind in _SHOWN and not post.body_text[start:end].isspace()
    ]
    lines: list[str] = []
    for folded, texts in groupby(shown, key=lambda part: part[0]):
        text = _lines("".join(text for _, text in texts))
        if folded:
            text = [click.style(f"[{plural(len(text), 'line')} {folded}]", dim=True)]
        lines += text
    return lines


def _lines(text: str) -> list[str]:
    """Return lines without blank ones around them."""
    return printable(text).strip("\n").split("\n") if text.strip() else []


def _day(moment: dt.datetime) -> str:
    return f"{moment.astimezone(dt.UTC):%Y-%m-%d}"
