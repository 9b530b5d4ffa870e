"""Real servers on loopback: over the sample corpus, and over a world that a test fills."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette

from mail_assets.answers.extractive import ExtractiveMaker
from mail_assets.answers.maker import AnswerMaker
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

#: As many requests of a client as it likes; tests are one.
UNLIMITED = {cost: one._replace(per_minute=0) for cost, one in DEFAULT_ALLOWANCES.items()}
#: Where readers find it: not where the tests do.
BASE_URL = "https://archive.example.org"


class ReportingServer(uvicorn.Server):
    """A server that says when it is ready, and that leaves signals alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup()
        self.ready.set()


@contextmanager
def open_app(
    settings: Settings,
    addresses: str = HIDDEN,
    limits: Limits | None = None,
    clients: Clients | None = None,
    maker: AnswerMaker | None = None,
) -> Iterator[Starlette]:
    """Yield the application of an archive, without limits by client."""
    options = ServiceOptions(settings.search, settings.forget_key, settings.store, searchers=2)
    service = SearchService(options)
    documents = Documents(service, Publication(addresses))
    maker, limits = maker or ExtractiveMaker(), limits or Limits(UNLIMITED)
    try:
        yield Application(documents, BASE_URL, maker, (), limits, clients or Clients()).build()
    finally:
        service.close()


@contextmanager
def serving(
    settings: Settings,
    addresses: str = HIDDEN,
    limits: Limits | None = None,
    clients: Clients | None = None,
    maker: AnswerMaker | None = None,
) -> Iterator[httpx.Client]:
    """Serve an archive as `mail-assets serve` does, without limits by client; yield a client."""
    clients = clients or Clients()
    with open_app(settings, addresses, limits, clients, maker) as app:
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
    """Return what a server answers to bytes, up to the end of its first line."""
    with socket.create_connection((client.base_url.host, client.base_url.port), LONG) as connection:
        connection.sendall(data)
        with connection.makefile("rb") as answer:
            return answer.readline()


@pytest.fixture(scope="session")
def public(corpus: Corpus) -> Iterator[httpx.Client]:
    """The sample lists as strangers see them."""
    with serving(corpus.settings, HIDDEN) as client:
        yield client


@pytest.fixture(scope="session")
def private(corpus: Corpus) -> Iterator[httpx.Client]:
    """The sample lists with all addresses."""
    with serving(corpus.settings, SHOWN) as client:
        yield client


@contextmanager
def serving_world(world: World, addresses: str = HIDDEN) -> Iterator[httpx.Client]:
    """Serve what a world holds, to strangers unless addresses are shown."""
    with serving(world.settings(), addresses) as client:
        yield client
