"""The commands `forget`, which removes mail for good, and `remember`, which allows it back."""

import getpass
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from mail_assets.cli.backfill import show_activity
from mail_assets.cli.command import (
    examples,
    exit_with,
    pass_settings,
    plural,
    print_error,
    print_note,
    print_table,
    printable_line,
    refuse_empty,
)
from mail_assets.settings.settings import Settings

if TYPE_CHECKING:
    from mail_assets.forgetting.clean import OpenIndex
    from mail_assets.forgetting.forget import ForgetReport, ForgetRequest
    from mail_assets.workspace import Workspace

    Forget = Callable[[Workspace, OpenIndex], ForgetReport]


def forget_here(settings: Settings, forget: "Forget", again: str) -> None:
    """Forget mail in tables, files, indexes, archives and Dagster's event log; print the result.

    `again` is the instruction that is printed if a part of the work failed.
    """
    from mail_assets.defs.pruning import delete_answers
    from mail_assets.forgetting.forget import cut_archives, find_archives_holding
    from mail_assets.indexes.vectors import open_known_index

    with (
        show_activity("removing from tables, files and indexes") as show,
        settings.open_workspace("forget", show) as workspace,
    ):
        report = forget(workspace, partial(open_known_index, settings.database))
        cut, uncut = cut_archives(workspace, report.uncut, settings.list_defaults)
        holding = find_archives_holding(workspace, report.removals, report.former)
        answers, unfinished = delete_answers(settings) if report.removals else (0, 0)
    _print_removed(report)
    if cut:
        click.echo(f"cut out of {plural(cut, 'archive')}")
    for url in holding:
        print_note(f"still in the archive {url}")
    if answers:
        click.echo(f"deleted {plural(answers, 'run')} of test_queries in Dagster")
    if unfinished:
        print_error(f"{plural(unfinished, 'run')} of test_queries may hold hits and has not ended")
    for name, why in report.failed.items():
        print_error(f"still in the index {name}: {why}")
    for url, why in report.unread.items():
        print_error(f"not searched: the former archive {url}: {why}")
    for why in uncut.values():
        print_error(f"not cut out of its archive: {why}")
    if report.failed:
        exit_with(f"{again} when it can be reached")
    if uncut or report.unread:
        exit_with(f"{again} when that is repaired")
    if unfinished:
        exit_with(f"{again} when it has ended")


def _print_removed(report: "ForgetReport") -> None:
    if any((report.removals, report.files, report.documents, report.vectors)):
        months = {copy.month for copy in report.copies}
        click.echo(
            f"forgotten: {plural(len(report.copies), 'message')} in "
            f"{plural(len(months), 'month')}, {plural(report.chunks, 'chunk')}, "
            f"{plural(report.vectors, 'vector')}, {plural(report.documents, 'document')} of words, "
            f"{plural(report.files, 'file')} of embeddings"
        )
    if report.vanished:
        click.echo(f"forgotten as vanished from its source: {plural(report.vanished, 'message')}")
    if report.people:
        click.echo(f"hidden in To, Cc or Reply-To of {plural(report.people, 'other message')}")


@click.command(
    epilog=examples(
        "mail-assets forget '<20240304090533.GE9223@example.org>' --reason 'asked by the author'",
        "mail-assets forget --sender jo@example.org --dry-run",
        "mail-assets forget --list",
    )
)
@click.argument("message_ids", nargs=-1, metavar="[MESSAGE_ID]...")
@click.option(
    "--sender",
    "senders",
    multiple=True,
    metavar="ADDRESS",
    help="All mail from this address, also future mail.",
)
@click.option("--reason", metavar="TEXT", help="The reason; it is stored, so name nobody in it.")
@click.option(
    "--by",
    metavar="NAME",
    callback=refuse_empty,
    help="The person who asks for it; default: the user of this process.",
)
@click.option(
    "--archives",
    type=click.Choice(["keep", "rewrite"]),
    default="keep",
    show_default=True,
    help="Keep archives as fetched, or rewrite them without the messages.",
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
    archives: str,
    dry_run: bool,
    list_removals: bool,
) -> None:
    """Remove messages from every table and index, and keep them out.

    A month that is loaded again omits them. Runs of test_queries in Dagster, which contain hits,
    are deleted. Archives that contain the messages are listed, and stay as their source published
    them; with --archives rewrite they are stored without the messages, now and after each fetch.
    Ask for removal at the source too (docs/forgetting.md). The list of forgotten mail has digests
    only; --dry-run tells whether an id is in it.
    """
    if list_removals:
        if message_ids or senders or reason or by or archives == "rewrite" or dry_run:
            raise click.UsageError("--list stands alone: give no other arguments")
        _list_removals(settings)
        return
    if not message_ids and not senders:
        raise click.UsageError("give a MESSAGE_ID or --sender ADDRESS, or --list")
    if not reason and not dry_run:
        raise click.UsageError("give a --reason: it is kept with the digests")

    from mail_assets.forgetting.forget import ForgetRequest, forget_messages
    from mail_assets.mail.message.ids import normalize_id

    ids = {normalize_id(text) for text in message_ids}
    if "" in ids or not all("@" in sender for sender in senders):
        raise click.UsageError("an id must not be empty, and a sender must be an address")
    cut = archives == "rewrite"
    request = ForgetRequest(ids, senders, reason or "", by or _name_user(), cut)
    if dry_run:
        _list_copies(settings, request)
    else:
        forget_here(
            settings,
            lambda workspace, open_index: forget_messages(workspace, request, open_index),
            "run the same command again",
        )


def _name_user() -> str:
    """Return the name of this process's user, or the number, as containers may have no account."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # OSError since Python 3.13
        return f"uid {os.getuid()}"


def _list_copies(settings: Settings, request: "ForgetRequest") -> None:
    from mail_assets.forgetting.forget import count_mentions, find_matches
    from mail_assets.tables.removals import list_removals, read_digests

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


@click.command(epilog=examples("mail-assets remember '<20240304090533.GE9223@example.org>'"))
@click.argument("message_ids", nargs=-1, metavar="[MESSAGE_ID]...")
@click.option(
    "--sender", "senders", multiple=True, metavar="ADDRESS", help="All mail of this address."
)
@pass_settings
def remember(settings: Settings, message_ids: tuple[str, ...], senders: tuple[str, ...]) -> None:
    """Let forgotten messages come back.

    It prints their months. The next backfill loads these months again from the archives.
    """
    if not message_ids and not senders:
        raise click.UsageError("give a MESSAGE_ID or --sender ADDRESS")

    from mail_assets.mail.message.ids import normalize_id
    from mail_assets.tables.removals import lock_for_forgetting, read_digests, withdraw_removals

    ids = [normalize_id(text) for text in message_ids]
    with settings.database.connect("remember") as connection:
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
