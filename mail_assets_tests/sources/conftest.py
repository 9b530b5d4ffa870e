"""Web servers of this process, and a record of the pauses of a source instead of sleeping."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from mail_assets_tests.sources.web import Server, serve


@pytest.fixture
def start() -> Iterator[Callable[[str], Server]]:
    with ExitStack() as running:
        yield lambda host: running.enter_context(serve(host))


@pytest.fixture
def server(start: Callable[[str], Server]) -> Server:
    return start("127.0.0.1")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def slept() -> list[float]:
    return []
