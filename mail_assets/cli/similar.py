"""similar: messages like one message."""

import click

from mail_assets.cli.command import examples, pass_settings
from mail_assets.cli.hits import print_hits
from mail_assets.cli.options import json_option, read_message_id
from mail_assets.cli.output import print_json
from mail_assets.cli.searcher import open_configured_searcher
from mail_assets.settings.environment import Settings


@click.command(epilog=examples("mail-assets similar 20240304090533.GE9223@solheim.example.org"))
@click.argument("message_id")
@click.option("--limit", default=10, show_default=True, help="How many messages.")
@json_option
@pass_settings
def similar(settings: Settings, message_id: str, limit: int, as_json: bool) -> None:
    """Show the messages nearest in meaning to one message."""
    wanted = read_message_id(message_id)
    with open_configured_searcher(settings) as searcher:
        response = searcher.similar(wanted, limit)
    if as_json:
        print_json(response.as_json())
    else:
        print_hits(response)
