"""up, down, status."""

import click

from mail_assets.cli.console import answer_json, with_settings
from mail_assets.settings.environment import Settings


@click.command()
@with_settings
def up(settings: Settings) -> None:
    """Start the embedded server if none is set, migrate, make the Dagster home."""
    from mail_assets.cli.home import server_up

    for line in server_up(settings):
        click.echo(line)


@click.command()
@with_settings
def down(settings: Settings) -> None:
    """Stop the embedded server. Nothing is lost; any command starts it again."""
    from mail_assets.cli.home import server_down

    click.echo("stopped" if server_down(settings) else "was not running")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_settings
def status(settings: Settings, as_json: bool) -> None:
    """Say what is configured and what is there; starts nothing."""
    from mail_assets.cli.home import read_status

    facts = read_status(settings)
    if as_json:
        answer_json(facts)
        return
    for name, value in facts.items():
        click.echo(f"{name:<12} {value}")
