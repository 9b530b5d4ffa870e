"""What `forget` and `restore` do alike: take what is forgotten out of a home, and say what was."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from mail_assets.cli.command import exit_with, print_error
from mail_assets.cli.output import plural, print_note
from mail_assets.cli.progress import show_activity
from mail_assets.settings.environment import Settings

if TYPE_CHECKING:
    from mail_assets.steps.forget_files import OpenIndex
    from mail_assets.steps.forget_messages import ForgetReport
    from mail_assets.workspace import Workspace

    Forget = Callable[[Workspace, OpenIndex], ForgetReport]


def forget_here(settings: Settings, forget: "Forget", again: str, delete_runs: bool | None) -> None:
    """Forget in tables, files, indexes and archives, and print what was removed and what is left.

    `again` says what does the rest where something could not be done; `delete_runs` is None where
    the command has no such option.
    """
    from mail_assets.defs.sample_records import clean_samples
    from mail_assets.steps.cut_archives import cut_archives, find_archives_holding
    from mail_assets.steps.vector_index import open_known_index
    from mail_assets.store.open import open_store
    from mail_assets.tables.cut_messages import months_left_out
    from mail_assets.workspace import Workspace

    with (
        settings.database.connect("forget") as connection,
        show_activity("removing from tables, files and indexes") as show,
    ):
        workspace = Workspace(connection, open_store(settings.store), show, settings.forget_key)
        report = forget(workspace, partial(open_known_index, settings.database))
        cut, uncut = cut_archives(workspace, report.uncut, settings.wordings)
        holding = find_archives_holding(workspace, report.removals, report.former)
        shown = clean_samples(
            settings, months_left_out(connection, report.removals), bool(delete_runs)
        )
    _print_removed(report)
    if cut:
        click.echo(f"cut out of {plural(cut, 'archive')}")
    for url in holding:
        print_note(f"still in the archive {url}")
    if shown.total:
        offered = "" if delete_runs is None else "with --delete-runs, or "
        print_note(
            f"{plural(shown.total, 'record')} in {plural(len(shown.runs), 'run')} of Dagster may "
            f"still show rows of these months: delete the runs {offered}each with "
            f"`dagster run delete RUN`: {', '.join(shown.runs)}"
        )
    for name, why in report.failed.items():
        print_error(f"still in the index {name}: {why}")
    for url, why in report.unread.items():
        print_error(f"not looked for in the former archive {url}: {why}")
    for why in uncut.values():
        print_error(f"not cut out of its archive: {why}")
    if report.failed:
        exit_with(f"{again} when it can be reached")
    if uncut or report.unread:
        exit_with(f"{again} when that is mended")


def _print_removed(report: "ForgetReport") -> None:
    """Print the figures of what was removed; nothing where nothing was looked for or found."""
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
