"""up: the database and the Dagster home made ready."""

import click

from mail_assets.cli.command import examples, pass_settings
from mail_assets.settings.environment import Settings


@click.command(epilog=examples("mail-assets up"))
@pass_settings
def up(settings: Settings) -> None:
    """Start the database and make the Dagster home.

    Tables are brought up to date. Without MAIL_PG_DSN the database is an embedded server below
    MAIL_HOME. Other commands start it on demand too.
    """
    from mail_assets.cli.server import describe_address
    from mail_assets.defs.dagster_home import use_dagster_home

    settings.home.mkdir(parents=True, exist_ok=True)
    with settings.database.connect("up") as connection:
        version = connection.execute("select current_setting('server_version')").fetchone()
    click.echo(f"postgres {version[0] if version else '?'}: {describe_address(settings)}")
    click.echo(f"dagster home: {use_dagster_home(settings)}")
