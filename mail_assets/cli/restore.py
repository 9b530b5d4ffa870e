"""restore: a home made again from a backup."""

import shlex
from pathlib import Path

import click

from mail_assets.cli.command import examples, pass_settings
from mail_assets.cli.forgetting import forget_here
from mail_assets.cli.output import plural, print_note
from mail_assets.cli.progress import show_activity
from mail_assets.settings.environment import Settings


@click.command(epilog=examples("mail-assets restore /srv/backup"))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--only-forgotten",
    is_flag=True,
    help="Only what was forgotten, into any home: it goes here too.",
)
@pass_settings
def restore(settings: Settings, folder: Path, only_forgotten: bool) -> None:
    """Bring the backup in FOLDER into a home without archives.

    `mail-assets backfill --stored` then makes everything else from the archives, whether their
    sources still have them or not. What was forgotten after the backup was made comes back: take
    that over from a newer backup with --only-forgotten, before or after, or forget it again. What
    is here of it is forgotten at once, as `mail-assets forget` does it.
    """
    from mail_assets.cli.server import database_urls
    from mail_assets.steps.forget_again import forget_again
    from mail_assets.steps.restore_backup import restore_backup, restore_forgotten
    from mail_assets.store.open import open_store

    folder, databases = folder.absolute(), database_urls(settings)
    again = f"run `mail-assets restore --only-forgotten {shlex.quote(str(folder))}`"
    if only_forgotten:
        added = restore_forgotten(databases["mail"], settings.forget_key, folder)
        click.echo(f"{plural(added, 'new entry', 'new entries')} of what was forgotten")
        forget_here(settings, forget_again, again, delete_runs=None)
        return
    with show_activity("restoring"):
        made = restore_backup(databases, open_store(settings.store), settings.forget_key, folder)
    click.echo(f"restored the backup of {made.made_at}: {plural(made.files, 'file')}")
    forget_here(settings, forget_again, again, delete_runs=None)
    print_note("what was forgotten later than that is not forgotten in it (docs/operations.md)")
    print_note("run `mail-assets backfill --stored` to make everything else from the archives")
