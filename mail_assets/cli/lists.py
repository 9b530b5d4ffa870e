"""The commands `list` and `stats`: list messages, remove a list, count what is stored."""

import shutil
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from mail_assets.cli.backfill import show_activity
from mail_assets.cli.command import (
    check_month,
    complete_lists,
    examples,
    exit_with,
    json_lines_option,
    json_option,
    open_reading,
    pass_settings,
    plural,
    print_error,
    print_json,
    print_note,
    print_table,
    printable_line,
    select_published,
)
from mail_assets.errors import name_nearest
from mail_assets.settings.settings import Settings
from mail_assets.settings.variables import EXTRACTIVE

if TYPE_CHECKING:
    import psycopg

    from mail_assets.forgetting.remove_list import RemovedList


@click.command(
    "list",
    epilog=examples(
        "mail-assets list messages harbor-dev --month 2024-03",
        "mail-assets list messages harbor-dev --sort newest",
    ),
)
@click.argument("name", required=False, metavar="LIST", shell_complete=complete_lists)
@click.option("--month", metavar="YYYY-MM", help="Only this month.")
@click.option(
    "--sort",
    type=click.Choice(["archive", "oldest", "newest"]),
    default="archive",
    show_default=True,
    help="The order: as in the archives, or by date.",
)
@json_lines_option
@pass_settings
def list_messages(
    settings: Settings, name: str | None, month: str | None, sort: str, as_json: bool
) -> None:
    """List the messages of a mailing list.

    Each line has day, author and subject. `mail-assets list messages --help` has the options.
    """
    from mail_assets.reading.browsing import list_messages

    if name is None:
        raise click.UsageError(f"name one list; there are: {', '.join(settings.lists)}")
    [list_name] = select_published(settings, (name,))
    check_month("--month", month)
    with open_reading(settings, "list") as connection:
        # one by one, not as a table, because a list may have 400,000 messages
        for row in list_messages(connection, list_name, month, sort):
            if as_json:
                print_json(row)
            else:
                sender, subject = map(printable_line, (row["from_email"], row["subject"]))
                click.echo(f"{row['sent_at'][:10]}  {sender:<32.32}  {subject}")


@click.command(epilog=examples("mail-assets stats"))
@json_option
@pass_settings
def stats(settings: Settings, as_json: bool) -> None:
    """Count what is stored, for each list."""
    from mail_assets.indexes.live import find_live_vectors, find_live_words
    from mail_assets.indexes.names import manifest_name
    from mail_assets.reading.browsing import read_stats

    with settings.database.connect("stats") as connection:
        url = settings.vectors
        live = find_live_vectors(connection, url, settings.encoder, settings.precision)
        vectors = manifest_name(url, live)
        words = manifest_name(settings.words, find_live_words(connection, settings.words))
        figures = read_stats(connection, settings.lists, vectors, words)
    if as_json:
        print_json(figures)
        return
    lists = figures["lists"]
    print_table(
        ("list", *next(iter(lists.values()))),
        [(name, *counts.values()) for name, counts in lists.items()],
    )
    click.echo(plural(figures["threads"], "thread"))


class _ListGroup(click.Group):
    """A group that runs `messages` if no command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, "-h", "--help"):
            args = ["messages", *args]
        return super().parse_args(ctx, args)


lists = _ListGroup(
    "list",
    commands={"messages": list_messages},
    help=list_messages.help,
    epilog=examples("mail-assets list messages harbor-dev --month 2024-03",
                    "mail-assets list remove harbor-dev"),
)  # fmt: skip


@lists.command(epilog=examples("mail-assets list remove harbor-dev"))
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask before deleting.")
@pass_settings
def remove(settings: Settings, name: str, yes: bool) -> None:
    """Remove a list from every table, index and file, for good.

    First remove the list from lists.toml; otherwise the next backfill would fill it again. Threads
    and summaries that had its mail are made again. A message that another list also carries stays
    there. If the command is stopped, run it again.
    """
    from mail_assets.defs.pruning import delete_answers, delete_list_history
    from mail_assets.forgetting.remove_list import is_stored, remove_list
    from mail_assets.indexes.vectors import open_known_index
    from mail_assets.steps.summarize_threads import summarize_threads
    from mail_assets.summaries.extractive import ExtractiveMaker

    if name in settings.lists:
        exit_with(
            f"list {name} is in {settings.lists_file}: take its table out first, or the next "
            "backfill fills it again (published = false keeps it, and closes it)"
        )
    with settings.open_workspace("remove") as workspace:
        connection = workspace.connection
        _confirm_removal(settings, connection, name, is_stored(workspace, name), yes)
        with show_activity(f"removing list {name}") as show:
            opened = replace(workspace, log=show)
            removed = remove_list(opened, name, partial(open_known_index, settings.database))
            if settings.summaries.maker == EXTRACTIVE:
                summarize_threads(connection, ExtractiveMaker(), show)
            else:
                print_note("a chat model makes summaries: the next backfill asks it")
        runs, unfinished = delete_list_history(settings, name)
        delete_answers(settings)
    _delete_folders(settings, name)
    _print_removed(removed, runs, unfinished)


def _confirm_removal(
    settings: Settings, connection: "psycopg.Connection", name: str, stored: bool, yes: bool
) -> None:
    """Exit if nothing of a list is stored; ask for confirmation unless `yes`."""
    from mail_assets.tables.health import find_left_lists

    left = {one.name: one for one in find_left_lists(connection, settings.lists)}
    if not stored:
        exit_with(f"nothing of a list {name} is stored; {name_nearest(name, left)}".rstrip("; "))
    if not yes:
        found = left.get(name)
        size = f", {found.messages} messages in {found.months} months" if found else ""
        click.confirm(f"Delete list {name}{size}, for good?", abort=True, err=True)


def _print_removed(removed: "RemovedList", runs: int, unfinished: int) -> None:
    click.echo(
        f"removed: {plural(removed.messages, 'message')} in {plural(removed.months, 'month')}, "
        f"{plural(removed.keys['vectors'], 'vector')}, "
        f"{plural(removed.keys['words'], 'document')} of words, "
        f"{plural(removed.files, 'file')}, {plural(runs, 'run')}"
    )
    if unfinished:
        print_note(f"{plural(unfinished, 'run')} of it have not ended; their history stays")
    for index, why in removed.failed.items():
        print_error(f"still in the index {index}: {why}")
    if removed.failed:
        exit_with("run the same command again when it can be reached")


def _delete_folders(settings: Settings, name: str) -> None:
    from mail_assets.store.open import store_folder

    store = store_folder(settings.store)
    emptied = [store / kind / name for kind in ("archives", "embeddings")] if store else []
    for path in (*emptied, *settings.source_cache.glob(f"{name}-????????")):
        shutil.rmtree(path, ignore_errors=not path.exists())
