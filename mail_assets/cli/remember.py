"""remember: what was forgotten allowed back."""

import click

from mail_assets.cli.command import examples, exit_with, pass_settings, print_error
from mail_assets.cli.output import print_note
from mail_assets.settings.environment import Settings


@click.command(
    epilog=examples("mail-assets remember '<20240304090533.GE9223@example.org>'"),
)
@click.argument("message_ids", nargs=-1, metavar="[MESSAGE_ID]...")
@click.option("--sender", "senders", multiple=True, metavar="ADDRESS", help="All mail of it.")
@pass_settings
def remember(settings: Settings, message_ids: tuple[str, ...], senders: tuple[str, ...]) -> None:
    """Allow forgotten messages back.

    The next backfill loads them from the archives. Prints the months that have to be loaded again.
    """
    if not message_ids and not senders:
        raise click.UsageError("give a MESSAGE_ID or --sender ADDRESS")

    from mail_assets.mail.message.ids import normalize_id
    from mail_assets.tables.forget_keys import read_digests
    from mail_assets.tables.removals import (
        key_old_digests,
        lock_for_forgetting,
        withdraw_removals,
    )

    ids = [normalize_id(text) for text in message_ids]
    with settings.database.connect("remember") as connection:
        key_old_digests(connection, settings.forget_key)
        made = read_digests(connection, settings.forget_key)
        if made is None:
            exit_with("nothing was ever forgotten")
        digests = {*map(made.of_message, ids), *map(made.of_sender, senders)}
        with connection.transaction():
            lock_for_forgetting(connection)
            count, months = withdraw_removals(connection, digests)
    if not count:
        exit_with("none of these was forgotten")
    if count < len(digests):
        print_error(f"{len(digests) - count} of {len(digests)} were not forgotten")
    for month in months:
        click.echo(month)
    if months:
        print_note("run `mail-assets backfill` to bring these months back")
