"""Searches run in limited slots, in threads or processes, and survive failures."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from mail_assets.processes.machine import list_physical_cores
from mail_assets.processes.workers import WorkerError
from mail_assets.search.language.request import Mode, Request, RequestError
from mail_assets.sql_functions import install_functions
from mail_assets.vectors.index import VectorError
from mail_assets.web import searchers
from mail_assets.web.responses import ServingError, read_error
from mail_assets.web.searchers import Permits, ProcessSlot, SearchService
from mail_assets_tests.sample_corpus import Corpus, Search
from mail_assets_tests.waits import LONG
from mail_assets_tests.web.conftest import open_service, serving
from mail_assets_tests.web.slot_functions import (
    count_compiled,
    count_objects,
    describe_process,
    fail,
    kill_always,
    kill_once,
    list_thread_cores,
)
from mail_assets_tests.world import World, mail


def test_reads_of_a_document_share_a_tested_connection(corpus: Corpus) -> None:
    with open_service(corpus.settings) as service:

        def find_session() -> int:
            return service.read(lambda connection: connection.info.backend_pid)

        with service.reading():
            lent = service._reads.get_stats()["requests_num"]
            sessions = {find_session() for _ in range(5)}
            with service.reading():
                sessions.add(find_session())
            assert service._reads.get_stats()["requests_num"] == lent
            with ThreadPoolExecutor(1) as threads:  # another thread uses another connection
                assert threads.submit(find_session).result() not in sessions
        assert len(sessions) == 1
        with pytest.raises(psycopg.Error), service.reading():
            service.read(lambda connection: connection.execute("select no_such_thing"))
        assert find_session()


def wait_until_waiting(permits: Permits, count: int) -> None:
    """Return when `count` threads wait for a permit."""
    while len(permits._waiting) < count:
        threading.Event().wait(0.001)


def test_permits_are_limited() -> None:
    permits = Permits(2)
    assert permits.acquire(0)
    assert permits.acquire(0)
    assert not permits.acquire(0)
    permits.release()
    assert permits.acquire(0)


def test_permit_goes_to_the_longest_waiting_thread() -> None:
    permits, order = Permits(1), []

    def work(name: int) -> None:
        assert permits.acquire()
        order.append(name)
        permits.release()

    permits.acquire()
    with ThreadPoolExecutor(3) as threads:
        for name in range(3):
            threads.submit(work, name)
            wait_until_waiting(permits, name + 1)
        permits.release()
        assert permits.acquire()
        order.append(3)
        permits.release()
    assert order == [0, 1, 2, 3]


def test_timed_out_thread_takes_no_permit() -> None:
    permits = Permits(1)
    permits.acquire()
    assert not permits.acquire(0.001)
    permits.release()
    assert permits.acquire(0)
    assert not permits.acquire(0)


def test_many_threads_keep_the_number_of_permits() -> None:
    permits, inside, most = Permits(2), [], []

    def work(number: int) -> None:
        for _ in range(200):
            if permits.acquire(0.0001 if number % 2 else None):
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)
                permits.release()

    with ThreadPoolExecutor(6) as threads:
        assert [*threads.map(work, range(6))]
    assert max(most) <= 2
    assert permits.acquire(0)
    assert permits.acquire(0)
    assert not permits.acquire(0)


@contextmanager
def open_two(corpus: Corpus, *, in_processes: bool) -> Iterator[SearchService]:
    """Yield a service of two searchers; reads wait long for a connection, for slow machines."""
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(searchers, "WAIT_SECONDS", LONG)
            opened = open_service(corpus.settings, searchers=2, in_processes=in_processes)
            service = stack.enter_context(opened)
        yield service


@pytest.fixture(scope="module")
def threads(corpus: Corpus) -> Iterator[SearchService]:
    with open_two(corpus, in_processes=False) as service:
        yield service


@pytest.fixture(scope="module")
def processes(corpus: Corpus) -> Iterator[SearchService]:
    """A service of two processes."""
    with open_two(corpus, in_processes=True) as service:
        service.warm_up(names_only=True)
        yield service


@pytest.fixture(params=["threads", "processes"])
def service(request: pytest.FixtureRequest) -> SearchService:
    """A service of two searchers, in threads of this process or in separate processes."""
    found: SearchService = request.getfixturevalue(request.param)
    return found


def test_warm_up_starts_each_process_on_its_core(processes: SearchService) -> None:
    found = [slot.run(describe_process) for slot in processes._idle]
    assert len({process for process, _ in found}) == 2
    assert os.getpid() not in {process for process, _ in found}
    allowed = list_physical_cores()
    turns = [{allowed[number % len(allowed)]} for number in range(len(found))]
    assert sorted(map(sorted, (cores for _, cores in found))) == sorted(map(sorted, turns))
    for slot in processes._idle:
        assert len(slot.run(list_thread_cores)) == 1


def test_warm_up_compiles_addresses_in_each_process(processes: SearchService) -> None:
    assert [slot.run(count_compiled) for slot in processes._idle] == [1, 1]


def test_loaded_objects_are_not_garbage_collected(processes: SearchService) -> None:
    for slot in processes._idle:
        spared, others = slot.run(count_objects)
        assert spared > 10 * others


def test_process_finds_similar_messages_and_evidence(processes: SearchService) -> None:
    best = processes.search(Request("lease")).hits[0]
    near = processes.find_similar(best.message_id, 3)
    assert near.hits
    assert best.message_id not in [hit.message_id for hit in near.hits]
    evidence = processes.find_evidence(Request("why do jobs run twice"), 2_000)
    assert evidence.excerpts


def test_process_raises_the_original_error(processes: SearchService) -> None:
    with pytest.raises(RequestError, match="harbor-nowhere") as refused:
        processes.search(Request("lease list:harbor-nowhere"))
    shown = read_error(refused.value)
    assert shown
    assert shown.status == 400
    assert "searcher.py" in refused.value.__notes__[0]


def test_unpicklable_error_is_sent_as_text(processes: SearchService) -> None:
    with pytest.raises(RuntimeError, match="NotSendableError: lantern at pier 4"):
        processes._idle[0].run(fail)
    assert processes.search(Request("lease")).hits


def test_killed_process_is_restarted(
    processes: SearchService, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slot = processes._idle[0]
    before, _ = slot.run(describe_process)
    assert slot.run(kill_once, str(tmp_path / "killed")) != before
    assert "code -9" in caplog.text
    assert processes.search(Request("lease")).hits


def test_search_that_kills_processes_is_refused(processes: SearchService) -> None:
    slot = processes._idle[0]
    with pytest.raises(WorkerError, match=r"code -9.*MAIL_WEB_PROCESSES") as died:
        slot.run(kill_always)
    shown = read_error(died.value)
    assert shown
    assert (shown.status, shown.code) == (503, "unavailable")
    assert processes.search(Request("lease")).hits


def test_missing_index_is_reported(corpus: Corpus, tmp_path: Path) -> None:
    settings = replace(corpus.search_settings, vectors=f"lance:{tmp_path}")
    slot = ProcessSlot(settings, 0)
    try:
        with pytest.raises(VectorError):
            slot.run(searchers._search, settings.languages, Request("lease", mode=Mode.semantic))
    finally:
        slot.close()


def test_closed_service_has_no_process(corpus: Corpus) -> None:
    with open_service(corpus.settings, in_processes=True) as service:
        service.search(Request("lease"))
        process, _ = service._idle[0].run(describe_process)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


QUERIES = ["lease", "retry", "vacuum", "clock", "worker", "pause"]


def test_many_threads_get_the_same_hits(
    service: SearchService, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searchers, "WAIT_SECONDS", 600.0)
    wanted = {query: [hit.message_id for hit in search(query).hits] for query in QUERIES}
    with ThreadPoolExecutor(6) as threads:
        answers = [*threads.map(lambda query: service.search(Request(query)), QUERIES * 3)]
    assert [[hit.message_id for hit in one.hits] for one in answers] == [
        wanted[query] for query in QUERIES * 3
    ]


def test_search_without_a_free_slot_is_refused(
    service: SearchService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searchers, "WAIT_SECONDS", 0.0)
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


def test_read_connection_cannot_write(threads: SearchService) -> None:
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        threads.read(lambda connection: connection.execute("delete from threads"))


def test_slots_open_when_needed(corpus: Corpus) -> None:
    with open_service(corpus.settings, searchers=2) as service:
        service.search(Request("lease"))
        service.search(Request("retry"))
        assert len(service._idle) == 1
        with service._lend_slot(), ThreadPoolExecutor(1) as threads:
            threads.submit(service.search, Request("lease")).result()
        assert len(service._idle) == 2


def test_service_is_not_ready_if_rows_are_hidden(world: World) -> None:
    world.load(mail("a", "whale"), last="words")
    settings = replace(world.settings(), pg_dsn=f"{world.dsn}&options=-c%20role%3Dshelf_reader")
    with world.connect() as owner:
        owner.execute("create role shelf_reader")
        owner.execute("create role shelf_public")
        owner.execute("grant select on all tables in schema public to shelf_reader")
        try:
            with serving(settings) as client:
                assert client.get("/ready").text == "ready\n"
                install_functions(owner, {}, vectors=False, public="shelf_public")
                hidden = client.get("/ready")
                assert (hidden.status_code, hidden.text) == (503, "the database cannot be used\n")
                owner.execute("alter role shelf_reader bypassrls")
                assert client.get("/ready").text == "ready\n"
                assert client.get("/message.json/a@example.org").status_code == 200
        finally:
            owner.execute("drop owned by shelf_reader, shelf_public")
            owner.execute("drop role shelf_reader, shelf_public")
