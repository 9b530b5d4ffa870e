"""How often a search waits for PostgreSQL: look-up, what the indexes found, the page."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mail_assets.postgres.cluster import Cluster
from mail_assets.postgres.database import Database
from mail_assets.search.open import open_searcher
from mail_assets.search.request import MODES, Mode, Request
from mail_assets.search.searcher import Searcher
from mail_assets_tests.sample_corpus import QUERY, ROOT, Corpus

Count = Callable[[Request], int]


@pytest.fixture(scope="module")
def searcher(corpus: Corpus) -> Iterator[Searcher]:
    """A searcher of its own, whose connection can be traced."""
    with open_searcher(corpus.search_settings) as searcher:
        # at its sixth use a statement is prepared, which takes a round trip of its own, once
        searcher.retriever.connection.prepare_threshold = None
        yield searcher


@pytest.fixture
def count(searcher: Searcher, tmp_path: Path) -> Count:
    """Count the round trips of a request: the server says once in each that it is ready."""

    def ask(request: Request) -> int:
        server = searcher.retriever.connection.pgconn
        with (tmp_path / "trace").open("w+b") as trace:
            server.trace(trace.fileno())
            try:
                searcher.search(request)
            finally:
                server.untrace()
            trace.seek(0)
            return sum(b"ReadyForQuery" in line for line in trace)

    return ask


@pytest.mark.parametrize(
    ("query", "trips"),
    [
        (QUERY, 3),
        ('"40P01" lease', 3),
        ("lease list:harbor-dev after:2024-03 has:patch -queue", 3),
        ("subject:lease worker", 3),
        ("lease renew sort:date", 3),
        # a sender or a thread is looked up before anything can be asked about it
        ("lease from:ann", 4),
        (f"lease thread:{ROOT}", 4),
        # what nothing is found with is looked up again, without the quotes
        ('"zzgarble" lease', 5),
        # a Message-ID is looked for before it is searched for
        (f"<{ROOT}>", 2),
        ("list:harbor-dev", 3),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_a_search_takes_three_round_trips_or_says_why(
    searcher: Searcher, count: Count, query: str, trips: int, mode: Mode
) -> None:
    request = Request(query, mode=mode)
    searcher.search(request)  # statistics and stems are read once
    assert count(request) == trips


def test_a_search_goes_on_where_the_server_was_started_anew(
    corpus: Corpus, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server = Cluster(tmp_path_factory.mktemp("restarted"))
    try:
        database = Database(corpus.settings.home, server.start().dsn("postgres"))
        settings = replace(corpus.search_settings, database=database)
        with open_searcher(settings) as searcher:
            for mode in ("fulltext", "fulltext", "hybrid"):
                assert searcher.search(Request("deadlocks", mode=mode)).hits == ()
                server.stop()
                server.start()
    finally:
        server.remove()
