"""serve: the archive as web pages."""

import click

from mail_assets.cli.command import examples, pass_settings
from mail_assets.settings.environment import Settings


@click.command(
    epilog=examples("mail-assets serve", "MAIL_WEB_ADDRESSES=shown mail-assets serve --port 8080")
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Which interface.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Which port."
)
@pass_settings
def serve(settings: Settings, host: str, port: int) -> None:
    """Serve search as web pages, JSON, and tools for assistants.

    Pages show messages and threads too; each has its data beside it, and /mcp has the tools.

    Addresses are hidden unless MAIL_WEB_ADDRESSES=shown. Put a proxy in front of it where others
    reach it: docs/serving.md shows one.
    """
    import uvicorn

    from mail_assets.answers.open import open_maker
    from mail_assets.cli.service import open_documents
    from mail_assets.serving.app import Application
    from mail_assets.serving.clients import Clients
    from mail_assets.serving.connections import server_config
    from mail_assets.serving.limits import Limits

    with (
        open_documents(settings, settings.web_processes) as documents,
        open_maker(settings.chat, settings.chat_key) as maker,
    ):
        documents.service.warm_up()
        base_url = settings.web_url or f"http://{host}:{port}"
        clients = Clients(settings.web_proxies)
        limits = Limits(settings.web_limits)
        app = Application(documents, base_url, maker, settings.web_hosts, limits, clients).build()
        click.echo(f"http://{host}:{port}", err=True)
        uvicorn.Server(server_config(app, clients, host=host, port=port)).run()
