"""show: one message, in every list and month that has it."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mail_assets.cli.command import (
    WRONG_INPUT,
    examples,
    exit_if_closed,
    exit_with,
    open_reading,
    pass_settings,
    printable,
    printable_line,
    read_message_id,
)
from mail_assets.settings.settings import Settings

if TYPE_CHECKING:
    from mail_assets.reading.attachments import AttachmentContent
    from mail_assets.tables.mbox_archives import Vanished


#: A row of messages with its thread: one for each list, month and content.
CopyRow = Mapping[str, Any]


def format_message(row: CopyRow) -> str:
    """Return headers and body of a copy, after its place and its thread."""
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
    return "\n".join([*lines, "", printable(row["body_text"])])


def _describe_text(text: int | None) -> str | None:
    if text is None:
        return None
    which = "arrived first" if text == 1 else "came later"
    return f"several texts claim this Message-ID; this is text {text}, which {which}"


def format_vanished(message_id: str, vanished: "Vanished") -> str:
    """Return the month of a vanished message, and until when an archive still has it."""
    until = vanished.kept_until
    kept = f"its former archive is kept until {until:%Y-%m-%d}" if until else "no archive has it"
    return (
        f"message {message_id} of {vanished.month} was removed upstream, "
        f"noticed {vanished.noticed_at:%Y-%m-%d}; {kept}"
    )


#: Control characters, which would steer a terminal, and bytes that are no text.
_NOT_FOR_TERMINALS = re.compile(rb"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")


@click.command(
    epilog=examples(
        "mail-assets show '<20240304090533.GE9223@solheim.example.org>'",
        "mail-assets show --raw 20240304090533.GE9223@solheim.example.org",
        "mail-assets show ID --attachment 1 --output fix.patch",
    )
)
@click.argument("message_id")
@click.option("--raw", is_flag=True, help="Print the bytes as they are in the archives.")
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

    The copy that arrived first comes first. Anybody can send another text under the same id:
    such texts are marked as contested, and come after all copies of the first. --raw prints an
    mbox of all, From_ lines included. Attachments are listed
    with their numbers.
    """
    from mail_assets.month import ListMonth
    from mail_assets.reading.attachments import read_attachment, read_raw_message
    from mail_assets.reading.browsing import show_message
    from mail_assets.store.open import open_store
    from mail_assets.tables.mbox_archives import find_vanished
    from mail_assets.tables.removals import find_placeholder

    if output is not None and attachment is None:
        exit_with("--output needs --attachment N: it says where the file goes", WRONG_INPUT)
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
        exit_with(f"{name} is not fit for a terminal; write it with --output FILE", WRONG_INPUT)
    click.echo(content.data, nl=False)
