"""The commands `serve`, `mcp` and `sql`: web pages, tools for assistants, SQL functions."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from mail_assets.cli.command import (
    HelpfulGroup,
    examples,
    exit_with,
    pass_settings,
    print_error,
    refuse_empty,
)
from mail_assets.settings.lists import PublishedLists
from mail_assets.settings.settings import Settings

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from mail_assets.web.documents import Documents


@contextmanager
def open_documents(settings: Settings, processes: int = 0) -> "Iterator[Documents]":
    """Yield the documents as they may be published; `processes` search, or threads if it is 0."""
    from mail_assets.processes.machine import count_physical_cores
    from mail_assets.web.documents import Documents
    from mail_assets.web.privacy import Publication
    from mail_assets.web.searchers import SearchService, ServiceOptions

    options = ServiceOptions(
        settings.search,
        settings.forget_key,
        settings.store,
        # two threads per core: while one waits for the database, another can run
        searchers=processes or 2 * count_physical_cores(),
        in_processes=processes > 0,
        published=PublishedLists(settings.lists_file, settings.languages),
    )
    service = SearchService(options)
    try:
        yield Documents(service, Publication(settings.web_addresses))
    finally:
        service.close()


@click.command(
    epilog=examples("mail-assets serve", "MAIL_WEB_ADDRESSES=shown mail-assets serve --port 8080")
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port."
)
@pass_settings
def serve(settings: Settings, host: str, port: int) -> None:
    """Serve search as web pages, JSON, and tools for assistants.

    Pages also show messages and threads. The data of each page is available as JSON, and the tools
    are at /mcp. Addresses are hidden unless MAIL_WEB_ADDRESSES=shown. If others can reach the
    server, put a proxy in front: docs/serving.md has an example.
    """
    import uvicorn

    from mail_assets.answers.chat import open_maker
    from mail_assets.mail.message.text_addresses import compile_patterns
    from mail_assets.web.app import Application
    from mail_assets.web.connections import server_config
    from mail_assets.web.limits import Clients, Limits
    from mail_assets.web.pages import compile_templates

    sockets = _bind(host, port)
    with (
        open_documents(settings, settings.web_processes) as documents,
        open_maker(settings.chat, settings.chat_key) as maker,
    ):
        documents.service.warm_up(names_only=documents.publication.hides)
        compile_patterns()
        compile_templates()
        here = _write_url(host, sockets[0].getsockname()[1])
        base_url = settings.web_url or here
        clients = Clients(settings.web_proxies)
        limits = Limits(settings.web_limits)
        app = Application(
            documents,
            base_url,
            maker,
            settings.web_hosts,
            limits,
            clients,
            title=settings.web_title,
            about=settings.web_about,
            descriptions={name: one.description for name, one in settings.lists.items()},
        ).build()
        click.echo(here, err=True)
        uvicorn.Server(server_config(app, clients)).run(sockets)


def _write_url(host: str, port: int) -> str:
    """Return the URL of a host; an IPv6 address is put in brackets (RFC 3986, 3.2.2)."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _bind(host: str, port: int) -> list[socket.socket]:
    """Bind a port at each address of a host, so that a used port is reported first of all.

    The sockets do not listen yet: no client can connect before the server can answer.
    """
    bound: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, address in found:
            bound.append(socket.socket(family, kind, protocol))
            bound[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound[-1].bind(address)
    except (OSError, UnicodeError) as error:
        for one in bound:
            one.close()
        why = getattr(error, "strerror", None) or error
        exit_with(f"cannot serve at {host} port {port}: {why}; give another --host or --port")
    return bound


@click.command(epilog=examples("mail-assets mcp"))
@pass_settings
def mcp(settings: Settings) -> None:
    """Serve search as tools on standard input and output.

    An assistant that speaks the Model Context Protocol starts this command itself. `mail-assets
    serve` has the same tools at /mcp.
    """
    from mail_assets.web.mcp_stdio import serve_stdio

    serve_stdio(lambda: _open_tools(settings))


@contextmanager
def _open_tools(settings: Settings) -> "Iterator[MCPServer]":
    from mail_assets.web.mcp import build_mcp_server
    from mail_assets.web.privacy import find_mark_key

    with open_documents(settings) as documents:
        key = find_mark_key(settings.forget_key)
        publication = replace(documents.publication, mark_key=key, marks_all=True)
        yield build_mcp_server(replace(documents, publication=publication), settings.web_url)


@click.group(cls=HelpfulGroup, epilog=examples("mail-assets sql install"))
def sql() -> None:
    """Search with functions of the mail database.

    docs/sql.md describes them.
    """


@sql.command(
    epilog=examples("mail-assets sql install", "mail-assets sql install --public web_anon")
)
@click.option(
    "--public",
    metavar="ROLE",
    callback=refuse_empty,
    help="Let this role read the schema mail_public, which has no addresses.",
)
@pass_settings
def install(settings: Settings, public: str | None) -> None:
    """Install the SQL functions of search.

    They are search_semantic, search_fulltext, search_hybrid and search_messages_with_chunks.
    Install them again after each new version. Without --public only the owner can call them, even
    if they were public before.
    """
    from mail_assets.postgres.programs import vector_cpu_ok
    from mail_assets.sql_functions import install_functions

    languages = settings.languages
    # The pgvector of the embedded server does not run on every processor.
    vectors = bool(settings.pg_dsn) or vector_cpu_ok()
    with settings.database.connect("sql") as connection:
        able = install_functions(connection, languages, vectors=vectors, public=public)
    click.echo(f"installed for {len(languages)} lists{f', public for {public}' if public else ''}")
    if not able:
        print_error("this server has no pgvector: only search_fulltext will answer")
    elif settings.vectors != "pgvector:":
        print_error(
            f"the vectors are in {settings.vectors}: search_fulltext answers, the "
            "others once an index is filled with MAIL_VECTORS=pgvector:"
        )
