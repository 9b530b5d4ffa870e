"""down: the embedded server stopped, and on request deleted."""

import click

from mail_assets.cli.command import examples, pass_settings
from mail_assets.settings.environment import Settings


@click.command(epilog=examples("mail-assets down", "mail-assets down --delete-data"))
@click.option("--delete-data", is_flag=True, help="Delete the server's data too, for good.")
@click.option("--yes", is_flag=True, help="Do not ask before deleting.")
@pass_settings
def down(settings: Settings, delete_data: bool, yes: bool) -> None:
    """Stop the embedded server. Nothing is lost; any command starts it again.

    With --delete-data the tables and Dagster's history are deleted. Archives, embeddings and
    vectors below MAIL_HOME stay.
    """
    from mail_assets.cli.server import find_server

    server = find_server(settings)
    if delete_data:
        if not server or not server.paths.data.is_dir():
            click.echo("there is no embedded server")
            return
        if not yes:
            click.confirm(f"Delete all data in {server.paths.data}?", abort=True, err=True)
        server.remove()
        click.echo("deleted")
    else:
        click.echo("stopped" if server and server.stop() else "was not running")
