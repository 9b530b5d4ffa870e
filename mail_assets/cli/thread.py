"""thread: the whole conversation that a message belongs to."""

import click

from mail_assets.cli.command import examples, exit_with, pass_settings
from mail_assets.cli.options import json_option, read_message_id
from mail_assets.cli.output import print_json
from mail_assets.settings.environment import Settings


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
    from mail_assets.cli.summary_view import format_summary
    from mail_assets.cli.thread_view import format_conversation
    from mail_assets.tables.conversations import read_thread
    from mail_assets.tables.removals import find_stand_in
    from mail_assets.tables.thread_summaries import read_summary

    wanted = read_message_id(message_id)
    with settings.database.connect("thread") as connection:
        conversation = read_thread(connection, wanted)
        if conversation is None:  # a forgotten message's place is known by its stand-in
            hidden = find_stand_in(connection, settings.forget_key, wanted)
            conversation = read_thread(connection, hidden) if hidden else None
        made = read_summary(connection, conversation.thread_id) if conversation else None
    if conversation is None:
        exit_with(f"no thread has {message_id}")
    if summary and made is None:
        exit_with(
            f"the thread {conversation.thread_id} has no summary yet: materialize thread_summaries"
        )
    if as_json:
        said = made.as_json() if made else None
        print_json(said if summary else {**conversation.as_json(), "summary": said})
    elif summary and made:
        click.echo(format_summary(conversation, made))
    else:
        for text in format_conversation(conversation, wanted, full):
            click.echo(text)
