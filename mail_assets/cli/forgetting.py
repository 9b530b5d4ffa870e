"""forget, remember: taking messages out for good, and taking that back."""

import getpass
import sys
from functools import partial

import click

from mail_assets.cli.console import FAILED, say, with_settings
from mail_assets.settings.environment import Settings


@click.command()
@click.argument("message_ids", nargs=-1, metavar="[MESSAGE_ID]...")
@click.option("--sender", "senders", multiple=True, metavar="ADDRESS", help="All mail of it, ever.")
@click.option("--reason", metavar="TEXT", help="Why; it is kept, so name nobody in it.")
@click.option("--by", metavar="NAME", help="Who says so; default: the user of this process.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@click.option("--list", "listed", is_flag=True, help="List what was forgotten, by its digests.")
@with_settings
def forget(
    settings: Settings,
    message_ids: tuple[str, ...],
    senders: tuple[str, ...],
    reason: str | None,
    by: str | None,
    dry_run: bool,
    listed: bool,
) -> None:
    """Remove messages from every table, file and index, and keep them out.

    A month that is loaded again leaves them out again. The archive keeps the bytes as its source
    published them: have it taken down there too, see docs/forgetting.md. The list of what was
    forgotten holds digests only; --dry-run says of an id whether it stands there.
    """
    if listed:
        _list_removals(settings)
        return
    if not message_ids and not senders:
        raise click.UsageError("give a MESSAGE_ID or --sender ADDRESS, or --list")
    if not reason and not dry_run:
        raise click.UsageError("give a --reason: who looks at the list later wants to know")

    from mail_assets.cli.message_view import typed_id
    from mail_assets.steps.forget_messages import ForgetRequest, find_matches, forget_messages
    from mail_assets.steps.vector_index import open_known_index
    from mail_assets.steps.workspace import Workspace
    from mail_assets.store.open import open_store
    from mail_assets.tables.removals import list_removals

    ids = {typed_id(text) for text in message_ids}
    if "" in ids or not all("@" in sender for sender in senders):
        raise click.UsageError("an id must not be empty, and a sender must be an address")
    request = ForgetRequest(ids, senders, reason or "", by or getpass.getuser())
    with settings.database.connect("forget") as connection:
        if dry_run:
            known = {removal.digest for removal in list_removals(connection)}
            click.echo(f"{len(known & request.removals.keys())} forgotten before")
            for copy in find_matches(connection, request):
                click.echo(f"{copy.month} <{copy.message_id}>")
            return
        report = forget_messages(
            Workspace(connection, open_store(settings.store), say),
            request,
            partial(open_known_index, settings.database),
        )
    months = {copy.month for copy in report.copies}
    click.echo(
        f"forgotten: {len(report.copies)} messages in {len(months)} months, "
        f"{report.chunks} chunks, {report.vectors} vectors, {report.files} files of embeddings"
    )
    for name, why in report.failed.items():
        say(f"mail-assets: still in the index {name}: {why}")
    if report.failed:
        say("mail-assets: run the same command again when it can be reached")
        sys.exit(FAILED)


@click.command()
@click.argument("message_ids", nargs=-1, metavar="[MESSAGE_ID]...")
@click.option("--sender", "senders", multiple=True, metavar="ADDRESS", help="All mail of it.")
@with_settings
def remember(settings: Settings, message_ids: tuple[str, ...], senders: tuple[str, ...]) -> None:
    """Take back what was forgotten: the next backfill brings it again from the archives."""
    if not message_ids and not senders:
        raise click.UsageError("give a MESSAGE_ID or --sender ADDRESS")

    from mail_assets.cli.message_view import typed_id
    from mail_assets.mail.message.forgotten import message_digest, sender_digest
    from mail_assets.tables.removals import lock_for_forgetting, take_back

    digests = {message_digest(typed_id(x)) for x in message_ids} | {*map(sender_digest, senders)}
    with (
        settings.database.connect("remember") as connection,
        connection.transaction(),
    ):
        lock_for_forgetting(connection)
        count, months = take_back(connection, digests)
    if count < len(digests):
        say(f"mail-assets: {len(digests) - count} of {len(digests)} were not forgotten")
    for month in months:
        click.echo(month)
    if months:
        say("run `mail-assets backfill` to bring these months back")
    if not count:
        sys.exit(FAILED)


def _list_removals(settings: Settings) -> None:
    from mail_assets.tables.removals import list_removals

    with settings.database.connect("forget") as connection:
        for removal in list_removals(connection):
            click.echo(
                f"{removal.removed_at:%Y-%m-%d}  {removal.kind:<7}  {removal.digest.hex()[:16]}  "
                f"{removal.copies:>4} copies  {removal.removed_by}: {removal.reason}"
            )
