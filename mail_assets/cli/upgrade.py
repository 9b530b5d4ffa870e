"""upgrade: the data of the embedded server taken over from another major version."""

from pathlib import Path

import click

from mail_assets.cli.command import examples, pass_settings
from mail_assets.cli.output import print_note
from mail_assets.cli.progress import show_activity
from mail_assets.settings.environment import Settings


@click.command(
    epilog=examples(
        "mail-assets upgrade",
        "mail-assets upgrade --old-binaries /usr/lib/postgresql/17/bin",
    )
)
@click.option(
    "--old-binaries",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="The programs of the version that wrote the data; default: where distributions have them.",
)
@pass_settings
def upgrade(settings: Settings, old_binaries: Path | None) -> None:
    """Take over data of an older major version of the server.

    They are those of the embedded server. All databases are copied by dump and restore, which
    needs room for a second copy and the programs of both versions. The old data stay where they
    are until you delete them.
    """
    from mail_assets.postgres.upgrade import upgrade_cluster

    with show_activity("upgrading") as show:
        done = upgrade_cluster(settings.home / "postgres", old_binaries, show)
    if done is None:
        click.echo("the data are of this version")
        return
    click.echo(f"{', '.join(done.databases)}: copied from {done.old} to {done.new}")
    print_note(f"{done.old} is not used any more: delete it when you have seen that all is there")
