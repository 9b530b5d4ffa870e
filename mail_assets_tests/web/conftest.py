"""Real servers on loopback, over the sample corpus or over a world that a test fills."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette

from mail_assets.answers.answer import AnswerMaker, PassageMaker
from mail_assets.settings.lists import PublishedLists
from mail_assets.settings.settings import Settings
from mail_assets.web.app import Application
from mail_assets.web.connections import server_config
from mail_assets.web.documents import Documents
from mail_assets.web.limits import DEFAULT_ALLOWANCES, Clients, Limits
from mail_assets.web.privacy import HIDDEN, SHOWN, Publication
from mail_assets.web.searchers import SearchService, ServiceOptions
from mail_assets_tests.sample_corpus import Corpus
from mail_assets_tests.waits import LONG
from mail_assets_tests.world import World

#: No limits by client, because all tests are one client.
UNLIMITED = {cost: one._replace(per_minute=0) for cost, one in DEFAULT_ALLOWANCES.items()}
#: The public URL, which differs from the URL that tests use.
BASE_URL = "https://archive.example.org"


class ReportingServer(uvicorn.Server):
    """A server that reports when it is ready, and does not handle signals."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup()
        self.ready.set()


def fill(world: World, *mails: bytes, last: str = "words") -> World:
    """Archive mail of March 2024 and run the steps up to `last`; return the world."""
    world.load(*mails, last=last)
    world.threads()
    return world


@contextmanager
def open_service(
    settings: Settings,
    searchers: int = 1,
    kind: type[SearchService] = SearchService,
    **options: Any,
) -> Iterator[SearchService]:
    search = settings.search
    service = kind(
        ServiceOptions(search, settings.forget_key, settings.store, searchers, **options)
    )
    try:
        yield service
    finally:
        service.close()


@contextmanager
def open_app(
    settings: Settings,
    addresses: str = HIDDEN,
    limits: Limits | None = None,
    clients: Clients | None = None,
    maker: AnswerMaker | None = None,
    published: PublishedLists | None = None,
) -> Iterator[Starlette]:
    """Yield the web application of an archive, by default without limits by client."""
    maker, limits = maker or PassageMaker(), limits or Limits(UNLIMITED)
    with open_service(settings, searchers=2, published=published) as service:
        documents = Documents(service, Publication(addresses))
        yield Application(documents, BASE_URL, maker, (), limits, clients or Clients()).build()


@contextmanager
def serving(
    settings: Settings,
    addresses: str = HIDDEN,
    clients: Clients | None = None,
    **options: Any,
) -> Iterator[httpx.Client]:
    """Serve an archive as `mail-assets serve` does, with options of `open_app`; yield a client."""
    clients = clients or Clients()
    with open_app(settings, addresses, clients=clients, **options) as app:
        server = ReportingServer(server_config(app, clients, port=0))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            assert server.ready.wait(LONG)
            port = server.servers[0].sockets[0].getsockname()[1]
            url = f"http://127.0.0.1:{port}"
            with httpx.Client(base_url=url, timeout=LONG, follow_redirects=True) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()


def raw_request(client: httpx.Client, data: bytes) -> bytes:
    """Send bytes to a server; return the first line of its answer."""
    with socket.create_connection((client.base_url.host, client.base_url.port), LONG) as connection:
        connection.sendall(data)
        with connection.makefile("rb") as answer:
            return answer.readline()


@pytest.fixture(scope="session")
def public(corpus: Corpus) -> Iterator[httpx.Client]:
    """The sample lists with addresses hidden."""
    with serving(corpus.settings, HIDDEN) as client:
        yield client


@pytest.fixture(scope="session")
def private(corpus: Corpus) -> Iterator[httpx.Client]:
    """The sample lists with addresses shown."""
    with serving(corpus.settings, SHOWN) as client:
        yield client


@contextmanager
def serving_world(world: World, addresses: str = HIDDEN) -> Iterator[httpx.Client]:
    """Serve a world, by default with addresses hidden."""
    with serving(world.settings(), addresses) as client:
        yield client
