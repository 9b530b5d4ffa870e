"""show: one message, in every list and month that has it."""

import click

from mail_assets.cli.command import examples, exit_with, pass_settings
from mail_assets.cli.output import print_json
from mail_assets.settings.environment import Settings


@click.command(
    epilog=examples(
        "mail-assets show '<20240304090533.GE9223@solheim.example.org>'",
        "mail-assets show --raw 20240304090533.GE9223@solheim.example.org",
    )
)
@click.argument("message_id")
@click.option("--raw", is_flag=True, help="Print the bytes as they are in the archives.")
@click.option("--chunks", is_flag=True, help="Print the chunks and their spans, as JSON lines.")
@click.option("--vectors", is_flag=True, help="Print its vectors in the bucket, as JSON lines.")
@pass_settings
def show(settings: Settings, message_id: str, raw: bool, chunks: bool, vectors: bool) -> None:
    """Show one message, with all its copies.

    The copies follow one another by list and month, and a second content under the same id
    after the first: --raw prints an mbox of them, From_ lines included.
    """
    from mail_assets.cli.message_view import format_message, read_chunks, read_vectors
    from mail_assets.mail.message.ids import normalize_id
    from mail_assets.month import ListMonth
    from mail_assets.steps.raw_message import read_raw_message
    from mail_assets.store.open import open_store
    from mail_assets.tables.messages import show_message
    from mail_assets.tables.removals import find_stand_in

    wanted = normalize_id(message_id)
    with settings.database.connect("show") as connection:
        copies = show_message(connection, wanted)
        if not copies:
            if find_stand_in(connection, settings.forget_key, wanted):
                exit_with(f"message {message_id} was forgotten")
            exit_with(f"no message {message_id}")
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
