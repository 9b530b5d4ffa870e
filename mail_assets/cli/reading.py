"""stats, list, show, thread: what is stored."""

import sys

import click

from mail_assets.cli.console import (
    FAILED,
    answer_json,
    check_month,
    known_lists,
    say,
    with_settings,
)
from mail_assets.settings.environment import Settings


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_settings
def stats(settings: Settings, as_json: bool) -> None:
    """Count what is stored: per list, and the threads of all."""
    from mail_assets.steps.index_lifecycle import live_encoder
    from mail_assets.steps.vector_index import index_name, manifest_name
    from mail_assets.tables.stats import read_stats

    with settings.database.connect("stats") as connection:
        live = live_encoder(connection, settings.vectors, settings.encoder, settings.precision)
        name = manifest_name(settings.vectors, index_name(*live))
        figures = read_stats(connection, settings.lists, name)
    if as_json:
        answer_json(figures)
        return
    import pandas as pd

    click.echo(pd.DataFrame.from_dict(figures["lists"], orient="index").to_string())
    click.echo(f"{figures['threads']} threads")


@click.command("list")
@click.option("--list", "name", required=True, metavar="LIST", help="Which list.")
@click.option("--month", metavar="YYYY-MM", help="Only this month.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@with_settings
def list_(settings: Settings, name: str, month: str | None, as_json: bool) -> None:
    """List the messages of a list in the order of its archives."""
    from mail_assets.tables.messages import list_messages

    known_lists(settings, (name,))
    check_month("--month", month)
    with settings.database.connect("list") as connection:
        for row in list_messages(connection, name, month):
            if as_json:
                answer_json(row)
            else:
                day = row["sent_at"][:10]
                click.echo(f"{day}  {row['from_email']:<32.32}  {row['subject']}")


@click.command()
@click.argument("message_id")
@click.option("--raw", is_flag=True, help="Print the bytes as they stand in the archives.")
@click.option("--chunks", is_flag=True, help="Print the chunks and their spans.")
@click.option("--vectors", is_flag=True, help="Print the vectors in the bucket.")
@with_settings
def show(settings: Settings, message_id: str, raw: bool, chunks: bool, vectors: bool) -> None:
    """Show one message, in every list and month that has it.

    The copies follow one another by list and month, and a second content under the same id
    after the first: --raw prints an mbox of them, From_ lines included.
    """
    from mail_assets.cli.message_view import (
        find_copies,
        show_chunks,
        show_raw,
        show_text,
        show_vectors,
        was_forgotten,
    )

    with settings.database.connect("show") as connection:
        copies = find_copies(connection, message_id)
        if not copies:
            if was_forgotten(connection, message_id):
                say(f"mail-assets: message {message_id} was forgotten")
            else:
                say(f"mail-assets: no message {message_id}")
            sys.exit(FAILED)
        if not (raw or chunks or vectors):
            for text in show_text(copies):
                click.echo(text)
        if raw:
            for data in show_raw(settings, connection, copies):
                click.echo(data, nl=False)
        if chunks:
            for chunk in show_chunks(connection, copies):
                answer_json(chunk)
        if vectors:
            for vector in show_vectors(settings, connection, copies):
                answer_json(vector)


@click.command()
@click.argument("message_id")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--full", is_flag=True, help="Print whole messages: quotes, patches, signatures.")
@with_settings
def thread(settings: Settings, message_id: str, as_json: bool, full: bool) -> None:
    """Show the whole conversation that a message is part of, across lists and months.

    The id may be that of any message in it, of one that no archive has but others name, or a
    thread's, today's or a former one. The order is that of a tree: each answer stands below
    what it answers. --json gives all of each message.
    """
    from mail_assets.cli.message_view import typed_id
    from mail_assets.cli.thread_view import show_conversation
    from mail_assets.tables.conversations import read_thread

    asked = typed_id(message_id)
    with settings.database.connect("thread") as connection:
        conversation = read_thread(connection, asked)
    if conversation is None:
        say(f"mail-assets: no thread has {message_id}")
        sys.exit(FAILED)
    if as_json:
        answer_json(conversation.as_json())
        return
    for text in show_conversation(conversation, asked, full):
        click.echo(text)
