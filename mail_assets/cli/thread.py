"""The commands `thread`, a conversation as an indented tree, and `show`, a message."""

import datetime as dt
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mail_assets.cli.command import (
    WRONG_INPUT,
    day_of,
    examples,
    exit_if_closed,
    exit_with,
    json_option,
    name_apart,
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
from mail_assets.mail.message.message import say_incomplete
from mail_assets.settings.settings import Settings
from mail_assets.text.lookalikes import find_lookalikes
from mail_assets.text.untrusted import show_patch_turns

if TYPE_CHECKING:
    from mail_assets.reading.attachments import AttachmentContent
    from mail_assets.reading.conversations import Conversation, Post
    from mail_assets.tables.mbox_archives import Vanished
    from mail_assets.tables.thread_summaries import ThreadSummary

#: A row of messages with its thread: one for each list, month and content.
CopyRow = Mapping[str, Any]
#: Most levels of indentation, so that lines stay readable.
MAX_INDENT = 10

#: Kind of segment that is folded -> its label. Signatures and footers are left out.
_FOLDED = {"quote": "quoted", "attribution": "quoted", "patch": "of a patch"}
_SHOWN = {"text", *_FOLDED}


def format_conversation(conversation: "Conversation", asked: str, full: bool) -> Iterator[str]:
    """Yield a heading and one text per post, in pre-order; the post with the id `asked` is marked.

    Without `full`, quotes and patches are folded, and signatures and footers are left out.
    """
    posts = conversation.messages
    people = {post.from_email.lower() for post in posts}
    days = sorted(day_of(post.sent_at) for post in posts if post.sent_at)
    subjects = {post.message_id: post.subject_base for post in posts}
    alike = find_lookalikes((post.from_name, post.from_email.lower()) for post in posts)
    subject = posts[0].subject_base if posts else ""
    yield click.style(printable(subject) or "(no subject)", bold=True)
    about = f"{plural(len(posts), 'message')} by {plural(len(people), 'person', 'people')}"
    if posts:  # all messages may have been deleted since threads were built
        when = " to ".join(dict.fromkeys((days[0], days[-1])))
        about += f", {when}, in {', '.join(conversation.lists)}"
    yield about
    for post in conversation.posts:
        above = subjects.get(post.parent_id or "", subject)
        lines = [*_heading(post, above, marked=post.message_id == asked, alike=alike)]
        if not post.is_ghost:
            lines += ["", *_body(post, full)]
            lines += [f"({one})" for one in say_incomplete(post.flags)]
        guide = "│ " * min(post.depth, MAX_INDENT)
        yield "\n".join(["", *(f"{guide}{line}".rstrip() for line in lines)])


def _heading(
    post: "Post", subject_above: str, marked: bool, alike: Collection[str]
) -> Iterator[str]:
    mark = "→ " if marked else ""
    if post.is_ghost:
        from mail_assets.mail.message.ids import is_placeholder

        why = "forgotten" if is_placeholder(post.message_id) else "in none of the archives"
        yield click.style(f"{mark}({why})", italic=True)
    else:
        who = name_apart(post, alike)
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
        return _text_lines(show_patch_turns(post.body_text, post.segments))
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
    """Return the lines of a text without blank lines at its ends."""
    return printable(text).strip("\n").split("\n") if text.strip() else []


def format_summary(conversation: "Conversation", summary: "ThreadSummary") -> Iterator[str]:
    """Yield the summary of a thread: each sentence with its author and message."""
    posts = {post.message_id: post for post in conversation.messages}
    alike = find_lookalikes((post.from_name, post.from_email.lower()) for post in posts.values())
    subject = next(iter(posts.values())).subject_base if posts else ""
    yield click.style(printable_line(subject) or "(no subject)", bold=True)
    days = dict.fromkeys(f"{x:%Y-%m-%d}" for x in (summary.first_sent_at, summary.last_sent_at))
    people = ", ".join(map(printable_line, summary.participants))
    yield f"{plural(summary.messages, 'message')}, {' to '.join(days)}, by {people}"
    for one in summary.sentences:
        yield ""
        yield wrap(f"{one['part'].capitalize()}: {printable_line(one['text'])}")
        post = posts.get(one["message_id"])
        who = [name_apart(post, alike)] if post else []
        yield source_line(one["message_id"], *who)
    yield from _decision_lines(summary, alike)
    if summary.patches:
        yield ""
        yield f"Patches: {', '.join(f'<{printable_line(x)}>' for x in summary.patches)}"
    if not summary.verbatim:
        yield ""
        yield f"Written by a model ({printable_line(summary.maker)}); its citations were checked."


def _decision_lines(summary: "ThreadSummary", alike: Collection[str]) -> Iterator[str]:
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
            who = f"{name_apart(one, alike)}{standing}"
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
@click.option("--summary", is_flag=True, help="Print only the summary of the thread.")
@pass_settings
def thread(settings: Settings, message_id: str, as_json: bool, full: bool, summary: bool) -> None:
    """Show the whole conversation of a message.

    It may span lists and months. MESSAGE_ID may be any message of it, even one that is only
    referred to and in no archive, or the present or a former id of the thread. Each reply is below
    the message that it replies to. --json prints whole messages. --summary prints sentences, each
    with its message.
    """
    from mail_assets.reading.conversations import read_thread
    from mail_assets.tables.removals import find_placeholder
    from mail_assets.tables.thread_summaries import read_summary

    wanted = read_message_id(message_id)
    with open_reading(settings, "thread") as connection:
        conversation = read_thread(connection, wanted)
        if conversation is None:  # threads have the placeholder of a forgotten message
            hidden = find_placeholder(connection, settings.forget_key, wanted)
            conversation = read_thread(connection, hidden) if hidden else None
        if conversation is None:
            exit_if_closed(connection, wanted)
        made = read_summary(connection, conversation.thread_id) if conversation else None
    if conversation is None:
        exit_with(
            f"no thread has {message_id}: no archive has it, or its thread is not built yet, which "
            "`mail-assets backfill` does"
        )
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


def format_message(row: CopyRow) -> str:
    """Return a copy of a message as text: archive, header fields, thread and body."""
    from mail_assets.month import utc

    thread = row["thread_id"] and (
        f"{row['thread_id']}, depth {row['depth']}, position {row['position']}"
    )
    fields = {
        "Archive": f"{row['list']} {row['month']}, offset {row['archive_offset']}, "
        f"{row['archive_length']} bytes",
        "Message-ID": row["message_id"],
        "Contested": _describe_text(row["text"]),
        "Arrived": f"{utc(row['arrived_at'])} (from {row['arrival_source']})",
        "Date": f"{utc(row['sent_at'])} (from {row['date_source']})",
        "From": f"{row['from_name']} <{row['from_email']}>",
        "To": ", ".join(row["recipients"]),
        "Subject": row["subject"],
        "Thread": thread or "none",
        "Parent": (row["parent_id"] or "none") + " (joined by subject)" * bool(row["by_subject"]),
        "Flags": ", ".join(row["flags"]) or "none",
    }
    shown = ((name, value) for name, value in fields.items() if value is not None)
    lines = [f"{name}: {printable_line(value)}".rstrip() for name, value in shown]
    for number, part in enumerate(row["attachments"], 1):
        name = printable_line(part["name"]) or "without a name"
        kind = printable_line(part["type"])
        size, digest = part["size"], part["sha256"]
        lines.append(f"Attachment {number}: {name} ({kind}, {size} bytes, sha256 {digest})")
    body = show_patch_turns(row["body_text"], row["segments"])
    return "\n".join([*lines, "", printable(body)])


def _describe_text(text: int | None) -> str | None:
    if text is None:
        return None
    which = "arrived first" if text == 1 else "came later"
    return f"several texts claim this Message-ID; this is text {text}, which {which}"


def format_vanished(message_id: str, vanished: "Vanished") -> str:
    """Return a line about a vanished message: its month, and how long its archive is kept."""
    until = vanished.kept_until
    kept = f"its former archive is kept until {until:%Y-%m-%d}" if until else "no archive has it"
    return (
        f"message {message_id} of {vanished.month} was removed upstream, "
        f"noticed {vanished.noticed_at:%Y-%m-%d}; {kept}"
    )


#: Control characters, which could control the terminal, and bytes that are not text.
_NOT_FOR_TERMINALS = re.compile(rb"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")


@click.command(
    epilog=examples(
        "mail-assets show '<20240304090533.GE9223@solheim.example.org>'",
        "mail-assets show --raw 20240304090533.GE9223@solheim.example.org",
        "mail-assets show ID --attachment 1 --output fix.patch",
    )
)
@click.argument("message_id")
@click.option("--raw", is_flag=True, help="Print the bytes of the archives.")
@click.option(
    "--attachment", type=int, metavar="N", help="Print the decoded bytes of the Nth file."
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the attachment to a file.",
)
@pass_settings
def show(
    settings: Settings,
    message_id: str,
    raw: bool,
    attachment: int | None,
    output: Path | None,
) -> None:
    """Show one message, with all its copies.

    The copy that arrived first comes first. Anybody can send another text under the same id: such
    texts are marked as contested, and come after all copies of the first. --raw prints an mbox of
    all copies, with From_ lines. Attachments are listed with their numbers.
    """
    from mail_assets.month import ListMonth
    from mail_assets.reading.attachments import read_attachment, read_raw_message
    from mail_assets.reading.browsing import show_message
    from mail_assets.store.open import open_store
    from mail_assets.tables.mbox_archives import find_vanished
    from mail_assets.tables.removals import find_placeholder

    if output is not None and attachment is None:
        exit_with("--output: only with --attachment N", WRONG_INPUT)
    if attachment is not None and raw:
        raise click.UsageError("--attachment: not with --raw")
    wanted = read_message_id(message_id)
    with open_reading(settings, "show") as connection:
        copies = show_message(connection, wanted)
        if not copies:
            if find_placeholder(connection, settings.forget_key, wanted):
                exit_with(f"message {message_id} was forgotten")
            if vanished := find_vanished(connection, wanted):
                exit_with("\n".join(format_vanished(message_id, one) for one in vanished))
            exit_if_closed(connection, wanted)
            exit_with(f"no message {message_id}")
        if attachment is not None:
            _write_attachment(
                read_attachment(connection, open_store(settings.store), copies, attachment), output
            )
            return
        store = open_store(settings.store)
        for row in copies:
            if not raw:
                click.echo(format_message(row))
                continue
            month, offset = ListMonth(row["list"], row["month"]), row["archive_offset"]
            data = read_raw_message(connection, store, month, offset, row["archive_length"])
            click.echo(data, nl=False)


def _write_attachment(content: "AttachmentContent", output: Path | None) -> None:
    if output is not None:
        output.write_bytes(content.data)
        return
    if sys.stdout.isatty() and _NOT_FOR_TERMINALS.search(content.data):
        name = printable_line(f"{content.name or 'the file'} ({content.type})")
        exit_with(f"{name} is not text; write it to a file with --output FILE", WRONG_INPUT)
    click.echo(content.data, nl=False)
