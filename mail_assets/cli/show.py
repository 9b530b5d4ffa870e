"""show: one message, in every list and month that has it."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mail_assets.cli.command import WRONG_INPUT, examples, exit_with, pass_settings
from mail_assets.cli.options import read_message_id
from mail_assets.cli.output import print_json, printable_line
from mail_assets.settings.environment import Settings

if TYPE_CHECKING:
    from mail_assets.steps.attachment import AttachmentContent

#: Control characters of a terminal, which a stranger wrote, and bytes that are no text.
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
@click.option("--chunks", is_flag=True, help="Print the chunks and their spans, as JSON lines.")
@click.option("--vectors", is_flag=True, help="Print its vectors in the bucket, as JSON lines.")
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
    chunks: bool,
    vectors: bool,
    attachment: int | None,
    output: Path | None,
) -> None:  # a parameter for each option
    """Show one message, with all its copies.

    The copies follow one another by list and month, and a second content under the same id
    after the first: --raw prints an mbox of them, From_ lines included. Attachments are listed
    with their numbers.
    """
    from mail_assets.cli.message_view import (
        format_message,
        format_vanished,
        read_chunks,
        read_vectors,
    )
    from mail_assets.month import ListMonth
    from mail_assets.steps.attachment import read_attachment
    from mail_assets.steps.raw_message import read_raw_message
    from mail_assets.store.open import open_store
    from mail_assets.tables.messages import show_message
    from mail_assets.tables.removals import find_stand_in
    from mail_assets.tables.removed_upstream import find_vanished

    if output is not None and attachment is None:
        exit_with("--output needs --attachment N: it says where the file goes", WRONG_INPUT)
    if attachment is not None and (raw or chunks or vectors):
        raise click.UsageError("--attachment: not with --raw, --chunks or --vectors")
    wanted = read_message_id(message_id)
    with settings.database.connect("show") as connection:
        copies = show_message(connection, wanted)
        if not copies:
            if find_stand_in(connection, settings.forget_key, wanted):
                exit_with(f"message {message_id} was forgotten")
            if vanished := find_vanished(connection, wanted):
                exit_with("\n".join(format_vanished(message_id, one) for one in vanished))
            exit_with(f"no message {message_id}")
        if attachment is not None:
            _write_attachment(
                read_attachment(connection, open_store(settings.store), copies, attachment), output
            )
            return
        if not (raw or chunks or vectors):
            for row in copies:
                click.echo(format_message(row))
        if raw:
            store = open_store(settings.store)
            for row in copies:
                month, offset = ListMonth(row["list"], row["month"]), row["archive_offset"]
                data = read_raw_message(connection, store, month, offset, row["archive_length"])
                click.echo(data, nl=False)
        if chunks:
            for chunk in read_chunks(connection, copies):
                print_json(chunk)
        if vectors:
            for vector in read_vectors(settings, connection, copies):
                print_json(vector)


def _write_attachment(content: "AttachmentContent", output: Path | None) -> None:
    if output is not None:
        output.write_bytes(content.data)
        return
    if sys.stdout.isatty() and _NOT_FOR_TERMINALS.search(content.data):
        name = printable_line(f"{content.name or 'the file'} ({content.type})")
        exit_with(f"{name} is not fit for a terminal; write it with --output FILE", WRONG_INPUT)
    click.echo(content.data, nl=False)
