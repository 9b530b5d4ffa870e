"""thread: the conversation of a message as an indented tree, and its summary."""

import datetime as dt
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import click

from mail_assets.cli.command import (
    day_of,
    examples,
    exit_if_closed,
    exit_with,
    json_option,
    open_reading,
    pass_settings,
    plural,
    print_json,
    printable,
    printable_line,
    read_message_id,
    source_line,
    wrap,
    wrap_statement,
)
from mail_assets.settings.settings import Settings

if TYPE_CHECKING:
    from mail_assets.reading.conversations import Conversation, Post
    from mail_assets.tables.thread_summaries import ThreadSummary

#: Levels of indentation: a line has to stay readable.
MAX_INDENT = 10

#: Kind of folded lines -> its label; signatures and footers are left out silently.
_FOLDED = {"quote": "quoted", "attribution": "quoted", "patch": "of a patch"}
_SHOWN = {"text", *_FOLDED}


def format_conversation(conversation: "Conversation", asked: str, full: bool) -> Iterator[str]:
    """Yield a heading and one text a post, in pre-order; the post `asked` for is marked.

    Without `full`, quotes and patches are folded, and signatures and footers are left out.
    """
    posts = conversation.messages
    people = {post.from_email.lower() for post in posts}
    days = sorted(day_of(post.sent_at) for post in posts if post.sent_at)
    subjects = {post.message_id: post.subject_base for post in posts}
    subject = posts[0].subject_base if posts else ""
    yield click.style(printable(subject) or "(no subject)", bold=True)
    about = f"{plural(len(posts), 'message')} by {plural(len(people), 'person', 'people')}"
    if posts:  # all may have gone since threads were built
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


def _heading(post: "Post", subject_above: str, marked: bool) -> Iterator[str]:
    mark = "→ " if marked else ""
    if post.is_ghost:
        from mail_assets.mail.message.forgotten import is_placeholder

        why = "forgotten" if is_placeholder(post.message_id) else "in none of the archives"
        yield click.style(f"{mark}({why})", italic=True)
    else:
        who = printable(post.from_name or post.from_email)
        when = f"{post.sent_at.astimezone(dt.UTC):%Y-%m-%d %H:%M}" if post.sent_at else ""
        where = ", ".join(dict.fromkeys(place.list_name for place in post.places))
        joined = ", joined by subject" if post.by_subject else ""
        yield click.style(f"{mark}{who}", bold=True) + f", {when} UTC, {where}{joined}"
        if post.contested:
            yield "Contested: other texts claim this Message-ID; `mail-assets show` has all of them"
        if post.subject_base != subject_above:
            yield f"Subject: {printable(post.subject)}"
    yield click.style(f"<{printable(post.message_id)}>", dim=True)


def _body(post: "Post", full: bool) -> list[str]:
    if full or not post.segments:
        return _text_lines(post.body_text)
    shown = [
        (_FOLDED.get(kind), post.body_text[start:end])
        for start, end, kind in post.segments
        if kind in _SHOWN and not post.body_text[start:end].isspace()
    ]
    lines: list[str] = []
    for folded, texts in groupby(shown, key=lambda part: part[0]):
        text = _text_lines("".join(text for _, text in texts))
        if folded:
            text = [click.style(f"[{plural(len(text), 'line')} {folded}]", dim=True)]
        lines += text
    return lines


def _text_lines(text: str) -> list[str]:
    """Return lines without blank ones around them."""
    return printable(text).strip("\n").split("\n") if text.strip() else []


def format_summary(conversation: "Conversation", summary: "ThreadSummary") -> Iterator[str]:
    """Yield the summary of a thread: each sentence, who wrote it, and in which message."""
    posts = {post.message_id: post for post in conversation.messages}
    subject = next(iter(posts.values())).subject_base if posts else ""
    yield click.style(printable_line(subject) or "(no subject)", bold=True)
    days = dict.fromkeys(f"{x:%Y-%m-%d}" for x in (summary.first_sent_at, summary.last_sent_at))
    people = ", ".join(map(printable_line, summary.participants))
    yield f"{plural(summary.messages, 'message')}, {' to '.join(days)}, by {people}"
    for one in summary.sentences:
        yield ""
        yield wrap(f"{one['part'].capitalize()}: {printable_line(one['text'])}")
        post = posts.get(one["message_id"])
        who = [printable_line(post.from_name or post.from_email)] if post else []
        yield source_line(one["message_id"], *who)
    yield from _decision_lines(summary)
    if summary.patches:
        yield ""
        yield f"Patches: {', '.join(f'<{printable_line(x)}>' for x in summary.patches)}"
    if not summary.verbatim:
        yield ""
        yield f"Written by a model ({printable_line(summary.maker)}); its citations were checked."


def _decision_lines(summary: "ThreadSummary") -> Iterator[str]:
    record = summary.read_record()
    named = [
        ("Decided" if record.decided and record.decided.standing else "Said", record.decided),
        ("Superseded", record.superseded_by),
        *(("Before", one) for one in reversed(record.earlier)),
        *(("Alternative", one) for one in record.alternatives),
    ]
    for label, one in named:
        if one:
            standing = f" ({one.standing})" if one.standing else ""
            who = f"{printable_line(one.author)}{standing}"
            yield ""
            yield wrap_statement(label, one.statement.text)
            yield source_line(one.statement.message_id, who, day_of(one.said_at))
    for commit in record.commits:
        reverted = f", reverted by {commit.reverted_by[:12]}" if commit.reverted_by else ""
        yield ""
        yield f"Committed: {printable_line(commit.subject)}"
        who = f"{printable_line(commit.committer)}, {day_of(commit.committed_at)}"
        yield click.style(f"    {commit.sha[:12]}, {who}{reverted}", dim=True)


@click.command(epilog=examples("mail-assets thread 20240304090533.GE9223@solheim.example.org"))
@click.argument("message_id")
@json_option
@click.option("--full", is_flag=True, help="Print whole messages: quotes, patches, signatures.")
@click.option("--summary", is_flag=True, help="Print the summary of the thread alone.")
@pass_settings
def thread(settings: Settings, message_id: str, as_json: bool, full: bool, summary: bool) -> None:
    """Show the whole conversation of a message.

    It may span lists and months. The id may be that of any message in it, of one that no
    archive has but others name, or a thread's, present or former. Messages are in the order of
    a tree: each answer is below what it answers. --json gives all of each message. --summary
    gives sentences of them, each with the message that carries it.
    """
    from mail_assets.reading.conversations import read_thread
    from mail_assets.tables.removals import find_placeholder
    from mail_assets.tables.thread_summaries import read_summary

    wanted = read_message_id(message_id)
    with open_reading(settings, "thread") as connection:
        conversation = read_thread(connection, wanted)
        if conversation is None:  # a forgotten message's place is known by its placeholder
            hidden = find_placeholder(connection, settings.forget_key, wanted)
            conversation = read_thread(connection, hidden) if hidden else None
        if conversation is None:
            exit_if_closed(connection, wanted)
        made = read_summary(connection, conversation.thread_id) if conversation else None
    if conversation is None:
        exit_with(f"no thread has {message_id}")
    if summary and made is None:
        exit_with(
            f"the thread {conversation.thread_id} has no summary: `mail-assets backfill` makes "
            "those of threads of two messages and more"
        )
    if as_json:
        said = made.as_json() if made else None
        print_json(said if summary else {**conversation.as_json(), "summary": said})
    elif summary and made:
        click.echo("\n".join(format_summary(conversation, made)))
    else:
        for text in format_conversation(conversation, wanted, full):
            click.echo(text)
