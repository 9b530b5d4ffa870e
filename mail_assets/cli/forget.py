"""forget: messages removed for good."""

import getpass
import os
from typing import TYPE_CHECKING

import click

from mail_assets.cli.command import examples, pass_settings
from mail_assets.cli.forgetting import forget_here
from mail_assets.cli.options import refuse_empty
from mail_assets.cli.output import plural, print_table, printable_line
from mail_assets.settings.environment import Settings

if TYPE_CHECKING:
    from mail_assets.steps.forget_messages import ForgetRequest


@click.command(
    epilog=examples(
        "mail-assets forget '<20240304090533.GE9223@example.org>' --reason 'asked by the author'",
        "mail-assets forget --sender jo@example.org --dry-run",
        "mail-assets forget --list",
    )
)
@click.argument("message_ids", nargs=-1, metavar="[MESSAGE_ID]...")
@click.option("--sender", "senders", multiple=True, metavar="ADDRESS", help="All mail of it, ever.")
@click.option("--reason", metavar="TEXT", help="Why; it is kept, so name nobody in it.")
@click.option(
    "--by",
    metavar="NAME",
    callback=refuse_empty,
    help="Who asks for it; default: the user of this process.",
)
@click.option(
    "--archives",
    type=click.Choice(["keep", "rewrite"]),
    help="What becomes of archives as fetched; default: MAIL_FORGET_ARCHIVES, else keep.",
)
@click.option(
    "--delete-runs",
    is_flag=True,
    help="Delete Dagster's runs whose records show rows of these months.",
)
@click.option("--dry-run", is_flag=True, help="List what would be removed, and remove nothing.")
@click.option("--list", "list_removals", is_flag=True, help="List what was forgotten, by digest.")
@pass_settings
def forget(  # a parameter for each option
    settings: Settings,
    message_ids: tuple[str, ...],
    senders: tuple[str, ...],
    reason: str | None,
    by: str | None,
    archives: str | None,
    delete_runs: bool,
    dry_run: bool,
    list_removals: bool,
) -> None:
    """Remove messages from every table and index, and keep them out.

    A month that is loaded again leaves them out again. An archive keeps the bytes as its source
    published them, and is named; with --archives rewrite it is stored without them, now and
    whenever it is fetched again. Have them taken down at the source too, see docs/forgetting.md.
    The list of what was forgotten holds digests only; --dry-run says of an id whether it is in
    that list.
    """
    if list_removals:
        if message_ids or senders or reason or by or archives or delete_runs or dry_run:
            raise click.UsageError("--list stands alone: it forgets nothing")
        _list_removals(settings)
        return
    if not message_ids and not senders:
        raise click.UsageError("give a MESSAGE_ID or --sender ADDRESS, or --list")
    if not reason and not dry_run:
        raise click.UsageError("give a --reason: it is kept beside what was forgotten")

    from mail_assets.mail.message.ids import normalize_id
    from mail_assets.steps.forget_messages import ForgetRequest

    ids = {normalize_id(text) for text in message_ids}
    if "" in ids or not all("@" in sender for sender in senders):
        raise click.UsageError("an id must not be empty, and a sender must be an address")
    cut = (archives or settings.forget_archives) == "rewrite"
    request = ForgetRequest(ids, senders, reason or "", by or _name_user(), cut)
    if dry_run:
        _list_copies(settings, request)
    else:
        _forget(settings, request, delete_runs)


def _name_user() -> str:
    """Return the user of this process: its number in a container, which has no account for it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the second from Python 3.13 on
        return f"uid {os.getuid()}"


def _forget(settings: Settings, request: "ForgetRequest", delete_runs: bool) -> None:
    from mail_assets.steps.forget_messages import forget_messages

    forget_here(
        settings,
        lambda workspace, open_index: forget_messages(workspace, request, open_index),
        "run the same command again",
        delete_runs,
    )


def _list_copies(settings: Settings, request: "ForgetRequest") -> None:
    from mail_assets.steps.forget_messages import count_mentions, find_matches
    from mail_assets.tables.forget_keys import read_digests
    from mail_assets.tables.removals import list_removals

    with settings.database.connect("forget") as connection:
        digests = read_digests(connection, settings.forget_key)
        known = {removal.digest for removal in list_removals(connection)}
        before = known & request.removals(digests).keys() if digests else set()
        copies = find_matches(connection, request)
        if copies or before:
            click.echo(f"{len(before)} forgotten before")
        else:
            click.echo("no message matches, and nothing of this was forgotten before")
        for copy in copies:
            click.echo(f"{copy.month} <{printable_line(copy.message_id)}>")
        named, mentioned = count_mentions(connection, request, copies)
    if named:
        click.echo(f"named by {plural(named, 'other message')} in To, Cc or Reply-To: hidden there")
    if mentioned:
        click.echo(f"named by {plural(mentioned, 'other message')} in subject or text: stays")


def _list_removals(settings: Settings) -> None:
    from mail_assets.tables.removals import list_removals

    with settings.database.connect("forget") as connection:
        removals = [*list_removals(connection)]
    print_table(
        ("day", "kind", "digest", "copies", "by", "reason"),
        [
            (f"{one.removed_at:%Y-%m-%d}", one.kind, one.digest.hex()[:16], one.copies,
             one.removed_by, one.reason)
            for one in removals
        ],
    )  # fmt: skip
