"""The commands `backup`, `restore` and `prune`: save a home, restore it, delete old data."""

import shlex
import sys
from pathlib import Path

import click

from mail_assets.cli.backfill import show_activity
from mail_assets.cli.command import (
    FAILED,
    examples,
    json_lines_option,
    json_option,
    pass_settings,
    plural,
    print_error,
    print_json,
    print_note,
    print_table,
)
from mail_assets.cli.forget import forget_here
from mail_assets.operations import KEEP_DAYS, LEAST_DAYS
from mail_assets.settings.settings import Settings


@click.command(
    epilog=examples(
        "mail-assets backup /srv/backup",
        "mail-assets backup /srv/backup --all",
        "mail-assets backup --verify /srv/backup",
    )
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--all",
    "whole",
    is_flag=True,
    help="Include databases and embeddings, so that nothing has to be made again.",
)
@click.option("--verify", is_flag=True, help="Only check the backup in FOLDER; write nothing.")
@json_option
@pass_settings
def backup(settings: Settings, folder: Path, whole: bool, verify: bool, as_json: bool) -> None:
    """Write what cannot be made again to FOLDER.

    This includes the archives as fetched, what was forgotten, what vanished from its source, and
    the settings. `restore` and `backfill` make the rest again. With --all the tables, also those of
    Dagster, are dumped and the embeddings copied, so that nothing is parsed or encoded again. A
    second backup into the same folder copies only new files; until it is complete, the former
    backup stays valid. A backfill may run at the same time.

    FOLDER must be new, empty or a former backup, and outside MAIL_HOME. Files in it that no backup
    wrote are not touched. The backup contains mail and the key of what was forgotten: protect it
    like the home.

    Each file is compared with its digest when it is copied. --verify compares all files of a backup
    with their digests, and reports whether it can be restored.
    """
    if verify:
        if whole:
            raise click.UsageError("--verify: not with --all: it writes nothing")
        _verify(folder, as_json)
        return
    from dataclasses import asdict

    from mail_assets.cli.home import database_urls
    from mail_assets.operations.backup import BackupPlan, back_up
    from mail_assets.store.open import store_folder
    from mail_assets.tables.mbox_archives import find_former

    with (
        show_activity("backing up") as show,
        settings.open_workspace("backup", show) as workspace,
    ):
        databases = database_urls(settings) if whole else {}
        live = [path for path in (settings.home, store_folder(settings.store)) if path]
        # not read by `restore`: they are for the person who restores
        judged = sorted(settings.quality_set.iterdir()) if settings.quality_set else ()
        files = [path for path in (settings.lists_file, *judged) if path.is_file()]
        plan = BackupPlan(databases, files, embeddings=whole, live=live)
        made = back_up(workspace, folder.absolute(), plan)
        gone = find_former(workspace.connection, made.lost)
    if as_json:
        print_json(asdict(made))
    else:
        removals = plural(made.rows["removals"], "forgotten entry", "forgotten entries")
        click.echo(
            f"{plural(made.rows['mbox_archives'], 'month')}, {removals}, "
            f"{plural(made.files, 'file')}, {made.bytes / 1e6:,.1f} MB"
        )
    for key in gone:
        print_note(f"the store has lost {key}, a former archive: no source has it any more")
    fetched_again = [key for key in made.lost if key not in gone]
    for key in fetched_again:
        print_error(f"the store has lost {key}: `mail-assets backfill` fetches it again")
    for key in made.damaged:
        print_error(
            f"left out {key}, which is damaged: `mail-assets doctor --deep` names the command"
        )
    if fetched_again or made.damaged:
        sys.exit(FAILED)


def _verify(folder: Path, as_json: bool) -> None:
    from dataclasses import asdict

    from mail_assets.operations.backup import check_backup

    with show_activity("comparing files"):
        found = check_backup(folder.absolute())
    if as_json:
        print_json(asdict(found))
    else:
        click.echo(f"the backup of {found.made_at} is whole: {plural(found.files, 'file')}")


@click.command(epilog=examples("mail-assets restore /srv/backup"))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--only-forgotten",
    is_flag=True,
    help="Restore only the list of forgotten mail, into any home, and forget that mail here.",
)
@pass_settings
def restore(settings: Settings, folder: Path, only_forgotten: bool) -> None:
    """Restore the backup in FOLDER into a home without archives.

    Afterwards, `mail-assets backfill --stored` makes everything else from the archives, even if
    their sources no longer have them. Mail that was forgotten after the backup comes back: forget
    it again, or restore the list from a newer backup with --only-forgotten, before or after this.
    Mail of this home that is in the list is forgotten at once, as by `mail-assets forget`.
    """
    from mail_assets.cli.home import database_urls
    from mail_assets.forgetting.forget import forget_again
    from mail_assets.operations.backup import restore_backup, restore_forgotten
    from mail_assets.store.open import open_store

    folder, databases = folder.absolute(), database_urls(settings)
    again = f"run `mail-assets restore --only-forgotten {shlex.quote(str(folder))}`"
    if only_forgotten:
        added = restore_forgotten(databases["mail"], settings.forget_key, folder)
        click.echo(f"{plural(added, 'new entry', 'new entries')} of what was forgotten")
        forget_here(settings, forget_again, again)
        return
    with show_activity("restoring"):
        made = restore_backup(databases, open_store(settings.store), settings.forget_key, folder)
    click.echo(f"restored the backup of {made.made_at}: {plural(made.files, 'file')}")
    forget_here(settings, forget_again, again)
    print_note("mail that was forgotten after this backup is back: see docs/operations.md")
    print_note("run `mail-assets backfill --stored` to make everything else from the archives")


@click.command(epilog=examples("mail-assets prune --dry-run", "mail-assets prune --keep-days 180"))
@click.option(
    "--keep-days",
    type=click.IntRange(min=LEAST_DAYS),
    default=KEEP_DAYS,
    show_default=True,
    help="Days for which everything is kept.",
)
@click.option("--dry-run", is_flag=True, help="List what would be deleted; delete nothing.")
@json_lines_option
@pass_settings
def prune(settings: Settings, keep_days: int, dry_run: bool, as_json: bool) -> None:
    """Delete old data that is not needed.

    It deletes Dagster's runs and events, embeddings that no index needs, former archives after
    MAIL_KEEP_ARCHIVES days, and old versions of indexes that no search is reading. It keeps the
    last run of each partition and check, the history of search quality, and failures without a
    later success. A backfill may run at the same time.
    """
    from mail_assets.defs.pruning import PrunePlan, prune_home

    with show_activity("pruning") as show:
        found = prune_home(settings, PrunePlan(keep_days, dry_run), show)
    if as_json:
        for one in found:
            print_json(one._asdict())
        return
    sizes = [("?" if one.bytes is None else f"{one.bytes / 1e6:,.1f} MB") for one in found]
    rows = [(one.what, one.things, size) for one, size in zip(found, sizes, strict=True)]
    print_table(("what", "count", "size"), rows)
    if dry_run:
        print_note("nothing was deleted")
