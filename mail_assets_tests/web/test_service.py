"""The service under many threads: right answers, a bound on what runs, and servers that go away."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest

from mail_assets.search.language.request import Request
from mail_assets.sql_functions.install import install_functions
from mail_assets.web import searchers as service_module
from mail_assets.web.responses import ServingError
from mail_assets.web.searchers import SearchService, ServiceOptions
from mail_assets_tests.sample_corpus import Corpus, Search
from mail_assets_tests.web.conftest import serving
from mail_assets_tests.world import World, mail

QUERIES = ["lease", "retry", "vacuum", "clock", "worker", "pause"]


@pytest.fixture(params=[False, True], ids=["threads", "processes"])
def service(corpus: Corpus, request: pytest.FixtureRequest) -> Iterator[SearchService]:
    """A service of two searchers, in threads of this process or in processes of their own."""
    options = ServiceOptions(
        corpus.search_settings,
        corpus.settings.forget_key,
        corpus.settings.store,
        searchers=2,
        in_processes=request.param,
    )
    service = SearchService(options)
    yield service
    service.close()


def test_many_threads_get_the_same_hits(
    service: SearchService, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "WAIT_SECONDS", 600.0)
    wanted = {query: [hit.message_id for hit in search(query).hits] for query in QUERIES}
    with ThreadPoolExecutor(6) as threads:
        answers = [*threads.map(lambda query: service.search(Request(query)), QUERIES * 3)]
    assert [[hit.message_id for hit in one.hits] for one in answers] == [
        wanted[query] for query in QUERIES * 3
    ]


def test_search_without_a_free_slot_is_refused(
    service: SearchService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "WAIT_SECONDS", 0.0)
    with service._lend_slot(), service._lend_slot(), pytest.raises(ServingError) as refused:
        service.search(Request("lease"))
    assert (refused.value.status, refused.value.retry_after) == (503, 1)
    assert service.search(Request("lease")).hits


def test_closed_connections_are_replaced(service: SearchService, corpus: Corpus) -> None:
    def is_served() -> bool:
        return bool(
            service.search(Request("lease")).hits
            and service.find_evidence(Request("why do jobs run twice"), 2_000).excerpts
            and service.read(lambda connection: connection.execute("select 1").fetchone())
        )

    assert is_served()
    with psycopg.connect(corpus.settings.pg_dsn, autocommit=True) as connection:
        closed = connection.execute(
            "select count(pg_terminate_backend(pid, 60000)) from pg_stat_activity"
            " where application_name in ('mail_assets/search', 'mail_assets/serve')"
            " and datname = current_database()"
        ).fetchone()
    assert closed
    assert closed[0] >= 2
    assert is_served()


def test_read_connection_cannot_write(service: SearchService) -> None:
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        service.read(lambda connection: connection.execute("delete from threads"))


def test_slots_open_when_needed(service: SearchService) -> None:
    inside = threading.Event()

    def search() -> None:
        with service._lend_slot():
            inside.set()

    service.search(Request("lease"))
    service.search(Request("retry"))
    assert len(service._idle) == 1
    with service._lend_slot():
        thread = threading.Thread(target=search)
        thread.start()
        thread.join()
    assert inside.is_set()
    assert len(service._idle) == 2


def test_service_is_not_ready_if_rows_are_hidden(world: World) -> None:
    world.archive("2024-03", mail("a", "whale"))
    world.chain(last="words")
    settings = replace(world.settings(), pg_dsn=f"{world.dsn}&options=-c%20role%3Dshelf_reader")
    with world.connect() as owner:
        owner.execute("create role shelf_reader")
        owner.execute("create role shelf_public")
        owner.execute("grant select on all tables in schema public to shelf_reader")
        try:
            with serving(settings) as client:
                assert client.get("/ready").text == "ready\n"
                install_functions(owner, {}, vectors=False, public="shelf_public")
                told = client.get("/ready")
                assert (told.status_code, told.text) == (503, "the database cannot be used\n")
                owner.execute("alter role shelf_reader bypassrls")
                assert client.get("/ready").text == "ready\n"
                assert client.get("/message.json/a@example.org").status_code == 200
        finally:
            owner.execute("drop owned by shelf_reader, shelf_public")
            owner.execute("drop role shelf_reader, shelf_public")
