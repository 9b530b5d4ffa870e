"""up: the database and the Dagster home made ready."""

import shlex

import click

from mail_assets.cli.command import examples, pass_settings
from mail_assets.settings.environment import Settings


@click.command(epilog=examples("mail-assets up"))
@pass_settings
def up(settings: Settings) -> None:
    """Start the database, make the Dagster home, look for the model.

    Tables are brought up to date. Without MAIL_PG_DSN the database is an embedded server below
    MAIL_HOME. Other commands start it on demand too. A model that is not installed is an error
    that names the command to install it.
    """
    from mail_assets.cli.server import describe_address
    from mail_assets.defs.dagster_home import use_dagster_home
    from mail_assets.encoding.open import check_model

    settings.home.mkdir(parents=True, exist_ok=True)
    with settings.database.connect("up") as connection:
        version = connection.execute("select current_setting('server_version')").fetchone()
    click.echo(f"postgres {version[0] if version else '?'}: {describe_address(settings)}")
    dagster_home = use_dagster_home(settings)
    click.echo(f"dagster home: {dagster_home}")
    if settings.dagster_dir is None:
        click.echo(f"Dagster UI: export DAGSTER_HOME={shlex.quote(str(dagster_home))}")
        click.echo("            dagster dev -m mail_assets.definitions")
    check_model(settings.encoder, settings.model_cache)
    click.echo(f"encoder: {settings.encoder} {settings.precision}")
