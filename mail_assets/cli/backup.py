"""backup: what cannot be made again, in a folder."""

import sys
from pathlib import Path

import click

from mail_assets.cli.command import FAILED, examples, pass_settings, print_error
from mail_assets.cli.options import json_option
from mail_assets.cli.output import plural, print_json, print_note
from mail_assets.cli.progress import show_activity
from mail_assets.settings.environment import Settings


@click.command(
    epilog=examples("mail-assets backup /srv/backup", "mail-assets backup /srv/backup --all")
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--all", "whole", is_flag=True, help="Databases and embeddings too: no work is lost.")
@json_option
@pass_settings
def backup(settings: Settings, folder: Path, whole: bool, as_json: bool) -> None:
    """Write what cannot be made again to FOLDER.

    That is the archives as fetched, what was forgotten, what vanished from its source, and the
    settings. The rest is made again by `restore` and `backfill`. With --all the tables are dumped,
    Dagster's too, and the embeddings copied, so that nothing is parsed or encoded again. Again into
    the same folder it copies only the files that are new, and the former backup counts until this
    one is whole. A backfill may run meanwhile.

    FOLDER is new or empty, or has a former backup, and lies apart from MAIL_HOME. Files in it that
    no backup wrote are left alone. It holds mail, and the key of what was forgotten: guard it
    like the home.
    """
    from dataclasses import asdict

    from mail_assets.cli.server import database_urls
    from mail_assets.steps.back_up import BackupPlan, back_up
    from mail_assets.store.open import open_store, store_folder
    from mail_assets.tables.removed_upstream import find_former
    from mail_assets.workspace import Workspace

    with (
        settings.database.connect("backup") as connection,
        show_activity("backing up") as show,
    ):
        workspace = Workspace(connection, open_store(settings.store), show, settings.forget_key)
        databases = database_urls(settings) if whole else {}
        live = [path for path in (settings.home, store_folder(settings.store)) if path]
        plan = BackupPlan(databases, _settings_files(settings), embeddings=whole, live=live)
        made = back_up(workspace, folder.absolute(), plan)
        gone = find_former(connection, made.lost)
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
    if fetched_again:
        sys.exit(FAILED)


def _settings_files(settings: Settings) -> list[Path]:
    """Return the files that say what is configured, for the person who restores."""
    judged = settings.quality_set.iterdir() if settings.quality_set else ()
    found = [settings.lists_file, *sorted(judged)]
    return [path for path in found if path.is_file()]
