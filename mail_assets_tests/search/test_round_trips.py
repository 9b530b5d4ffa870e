"""A search waits for PostgreSQL three times: look-up, confirmation, page."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mail_assets.postgres.database import Database
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.statements import statement
from mail_assets.search.language.request import MODES, Mode, Request
from mail_assets.search.open import open_searcher
from mail_assets.search.searcher import Searcher
from mail_assets_tests.sample_corpus import QUERY, ROOT, Corpus

Count = Callable[[Request], int]


@pytest.fixture(scope="module")
def searcher(corpus: Corpus) -> Iterator[Searcher]:
    """A separate searcher, whose connection can be traced."""
    with open_searcher(corpus.search_settings) as searcher:
        # preparing a statement outside a pipeline takes one more round trip, once
        searcher.retriever.connection.prepare_threshold = None
        yield searcher


@pytest.fixture
def count(searcher: Searcher, tmp_path: Path) -> Count:
    return lambda request: count_trips(searcher, request, tmp_path / "trace")


def count_trips(searcher: Searcher, request: Request, path: Path) -> int:
    """Count the round trips of a request: the server sends one ReadyForQuery in each."""
    server = searcher.retriever.connection.pgconn
    with path.open("w+b") as trace:
        server.trace(trace.fileno())
        try:
            searcher.search(request)
        finally:
            server.untrace()
        trace.seek(0)
        return sum(b"ReadyForQuery" in line for line in trace)


@pytest.mark.parametrize(
    ("query", "trips"),
    [
        (QUERY, 4),
        ('"40P01" lease', 4),
        ("lease list:harbor-dev after:2024-03 has:patch", 4),
        ("subject:lease worker", 4),
        # the dash may belong to a pasted subject
        ("lease has:patch -queue", 5),
        # the threads of a list by date are read whole
        ("lease renew sort:date", 5),
        # a sender or a thread is looked up first
        ("lease from:ann", 5),
        (f"lease thread:{ROOT}", 5),
        # a Message-ID is looked for before it is searched for
        (f"<{ROOT}>", 3),
        # fewer messages than the first block: the day reached is queried too
        ("list:harbor-dev", 6),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_search_takes_the_expected_round_trips(
    searcher: Searcher, count: Count, query: str, trips: int, mode: Mode
) -> None:
    request = Request(query, mode=mode)
    alone = replace(request, group="message")
    for one in (request, alone):
        searcher.search(one)  # statistics and stems are read once
    assert count(request) == trips
    if query != "list:harbor-dev":  # single messages take one trip less: no thread is described
        assert count(alone) == trips - 1


@pytest.mark.parametrize("mode", MODES)
def test_search_without_its_quotes_looks_up_again(
    searcher: Searcher, count: Count, mode: Mode
) -> None:
    """Rare words are searched alone if an index finds nothing."""
    request = Request(f'"zzgarble" {QUERY}', mode=mode)
    searcher.search(request)
    assert count(request) == 7


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("search", "page_copies"),
        ("search", "page_threads"),
        ("search_patches", "has_patches"),
    ],
)
def test_first_search_prepares_the_statements_of_the_next(
    corpus: Corpus, file: str, name: str
) -> None:
    first_line = statement(file, name).partition("\n")[0]
    with open_searcher(corpus.search_settings) as searcher:
        searcher.search(Request(QUERY))
        rows = searcher.retriever.connection.execute(
            "select count(*) from pg_prepared_statements where starts_with(statement, %s)",
            (first_line,),
        )
        assert rows.fetchone() == (1,)


def test_new_words_take_one_more_round_trip(corpus: Corpus, tmp_path: Path) -> None:
    assert len({*corpus.settings.languages.values()}) > 1
    with open_searcher(corpus.search_settings) as searcher:
        searcher.retriever.connection.prepare_threshold = None
        searcher.search(Request("xyzzy", mode="fulltext"))  # statistics are read
        trips = [
            count_trips(searcher, Request(query, mode="fulltext"), tmp_path / "trace")
            for query in ("lease", "lease", "lease worker")
        ]
    assert trips[:2] == [5, 4]
    assert trips[2] <= 5


def test_search_reconnects_after_a_server_restart(
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
