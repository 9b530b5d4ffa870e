"""mcp: the archive as tools of an assistant that starts this command."""

import click

from mail_assets.cli.command import examples, pass_settings
from mail_assets.settings.environment import Settings


@click.command(epilog=examples("mail-assets mcp"))
@pass_settings
def mcp(settings: Settings) -> None:
    """Serve search as tools on standard input and output.

    They are those of the Model Context Protocol; an assistant starts this command by itself.
    `mail-assets serve` has the same at /mcp.
    """
    from mail_assets.cli.service import open_documents
    from mail_assets.serving.mcp_server import build_mcp_server

    with open_documents(settings) as documents:
        build_mcp_server(documents).run()
