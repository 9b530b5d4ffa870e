"""Permits: as many at once as there are, in the order of who came.

[test_search_slots] Searches in processes of their own: the same answers and errors, and none is left behind.
"""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from mail_assets.processes.machine import list_physical_cores
from mail_assets.processes.workers import WorkerError
from mail_assets.search.language.request import Mode, Request, RequestError
from mail_assets.vectors.index import VectorError
from mail_assets.web import searchers as service_module
from mail_assets.web.responses import read_error
from mail_assets.web.searchers import Permits, ProcessSlot, SearchService, ServiceOptions
from mail_assets_tests.sample_corpus import Corpus
from mail_assets_tests.web.slot_functions import (
    count_objects,
    describe_process,
    fail,
    kill_always,
    kill_once,
    list_thread_cores,
)


def wait_until_waiting(permits: Permits, count: int) -> None:
    """Return when so many threads wait for a permit."""
    while len(permits._waiting) < count:
        threading.Event().wait(0.001)


def test_there_are_as_many_as_said() -> None:
    permits = Permits(2)
    assert permits.acquire(0)
    assert permits.acquire(0)
    assert not permits.acquire(0)
    permits.release()
    assert permits.acquire(0)


def test_who_came_first_is_next_also_before_the_one_that_gives_back() -> None:
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


def test_who_stops_waiting_takes_none() -> None:
    permits = Permits(1)
    permits.acquire()
    assert not permits.acquire(0.001)
    permits.release()
    assert permits.acquire(0)
    assert not permits.acquire(0)


def test_no_permit_is_lost_or_made_by_many_threads() -> None:
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


@pytest.fixture(scope="module")
def service(corpus: Corpus) -> Iterator[SearchService]:
    """A service of two processes."""
    settings = corpus.settings
    options = ServiceOptions(
        corpus.search_settings, settings.forget_key, settings.store, 2, in_processes=True
    )
    service = SearchService(options)
    service.warm_up()
    yield service
    service.close()


def test_warming_up_starts_every_process_and_each_has_a_core(service: SearchService) -> None:
    found = [slot.run(describe_process) for slot in service._idle]
    assert len({process for process, _ in found}) == 2
    assert os.getpid() not in {process for process, _ in found}
    allowed = list_physical_cores()
    turns = [{allowed[number % len(allowed)]} for number in range(len(found))]
    assert sorted(map(sorted, (cores for _, cores in found))) == sorted(map(sorted, turns))
    for slot in service._idle:
        assert len(slot.run(list_thread_cores)) == 1


def test_what_a_process_has_loaded_is_never_collected(service: SearchService) -> None:
    for slot in service._idle:
        spared, others = slot.run(count_objects)
        assert spared > 10 * others


def test_similar_messages_and_evidence_are_found_there_too(service: SearchService) -> None:
    best = service.search(Request("lease")).hits[0]
    near = service.find_similar(best.message_id, 3)
    assert near.hits
    assert best.message_id not in [hit.message_id for hit in near.hits]
    evidence = service.find_evidence(Request("why do jobs run twice"), 2_000)
    assert evidence.excerpts


def test_errors_are_those_that_were_raised(service: SearchService) -> None:
    with pytest.raises(RequestError, match="harbor-nowhere") as refused:
        service.search(Request("lease list:harbor-nowhere"))
    told = read_error(refused.value)
    assert told is not None
    assert told.status == 400
    assert "searcher.py" in refused.value.__notes__[0]


def test_an_error_that_cannot_be_sent_is_told_by_its_text(service: SearchService) -> None:
    with pytest.raises(RuntimeError, match="NotSendableError: lantern at pier 4"):
        service._idle[0].run(fail)
    assert service.search(Request("lease")).hits


def test_a_killed_process_is_started_again_and_the_search_answered(
    service: SearchService, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slot = service._idle[0]
    before, _ = slot.run(describe_process)
    assert slot.run(kill_once, str(tmp_path / "killed")) != before
    assert "exit code -9" in caplog.text
    assert service.search(Request("lease")).hits


def test_a_search_that_kills_each_process_is_refused_alone(service: SearchService) -> None:
    slot = service._idle[0]
    with pytest.raises(WorkerError, match=r"exit code -9.*MAIL_WEB_PROCESSES") as died:
        slot.run(kill_always)
    told = read_error(died.value)
    assert told is not None
    assert (told.status, told.code) == (503, "unavailable")
    assert service.search(Request("lease")).hits


def test_an_index_that_is_missing_is_told(corpus: Corpus, tmp_path: Path) -> None:
    settings = replace(corpus.search_settings, vectors=f"lance:{tmp_path}")
    slot = ProcessSlot(settings, 0)
    try:
        with pytest.raises(VectorError):
            slot.run(service_module._search, Request("lease", mode=Mode.semantic))
    finally:
        slot.close()


def test_a_closed_service_has_no_process(corpus: Corpus) -> None:
    settings = corpus.settings
    options = ServiceOptions(
        corpus.search_settings, settings.forget_key, settings.store, 1, in_processes=True
    )
    service = SearchService(options)
    service.search(Request("lease"))
    process, _ = service._idle[0].run(describe_process)
    service.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
