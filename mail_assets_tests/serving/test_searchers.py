"""Searches in processes of their own: the same answers and errors, and none is left behind."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from mail_assets.encoding.cores import list_physical_cores
from mail_assets.processes.worker import WorkerError
from mail_assets.search.request import Mode, Request, RequestError
from mail_assets.serving import service as service_module
from mail_assets.serving.errors import read_error
from mail_assets.serving.searchers import ProcessPlace
from mail_assets.serving.service import SearchService, ServiceOptions
from mail_assets.vectors.index import VectorError
from mail_assets_tests.sample_corpus import Corpus, Search
from mail_assets_tests.serving.desk_functions import (
    describe_process,
    fail,
    kill_always,
    kill_once,
    list_thread_cores,
)

QUERIES = ["lease", "retry", "vacuum", "clock", "worker", "pause"]


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


def test_processes_give_the_hits_of_threads(
    service: SearchService, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "WAIT_SECONDS", 600.0)
    wanted = [[hit.message_id for hit in search(query).hits] for query in QUERIES]
    with ThreadPoolExecutor(6) as threads:
        answers = [*threads.map(lambda query: service.search(Request(query)), QUERIES * 3)]
    assert [[hit.message_id for hit in one.hits] for one in answers] == wanted * 3


def test_warming_up_starts_every_process_and_each_has_a_core(service: SearchService) -> None:
    found = [place.run(describe_process) for place in service._idle]
    assert len({process for process, _ in found}) == 2
    assert os.getpid() not in {process for process, _ in found}
    allowed = list_physical_cores()
    assert [cores for _, cores in found] == [
        {allowed[number % len(allowed)]} for number in _numbers(service)
    ]
    for place in service._idle:
        assert len(place.run(list_thread_cores)) == 1


def _numbers(service: SearchService) -> list[int]:
    return [service._opened.index(place) for place in service._idle]


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
    service: SearchService, tmp_path: Path
) -> None:
    place = service._idle[0]
    before, _ = place.run(describe_process)
    assert place.run(kill_once, str(tmp_path / "killed")) != before
    assert service.search(Request("lease")).hits


def test_a_search_that_kills_each_process_is_refused_alone(service: SearchService) -> None:
    place = service._idle[0]
    with pytest.raises(WorkerError, match=r"exit code -9.*MAIL_WEB_PROCESSES") as died:
        place.run(kill_always)
    told = read_error(died.value)
    assert told is not None
    assert (told.status, told.code) == (503, "unavailable")
    assert service.search(Request("lease")).hits


def test_connections_that_the_server_closed_are_replaced(
    service: SearchService, corpus: Corpus
) -> None:
    assert service.search(Request("lease")).hits
    with psycopg.connect(corpus.settings.pg_dsn, autocommit=True) as connection:
        closed = connection.execute(
            "select count(pg_terminate_backend(pid, 60000)) from pg_stat_activity"
            " where application_name in ('mail_assets/search', 'mail_assets/serve')"
            " and datname = current_database()"
        ).fetchone()
    assert closed
    assert closed[0] >= 2
    for place in [*service._idle]:
        assert service.search(Request("lease")).hits, place
    assert service.find_evidence(Request("why do jobs run twice"), 2_000).excerpts


def test_an_index_that_is_missing_is_told(corpus: Corpus, tmp_path: Path) -> None:
    settings = replace(corpus.search_settings, vectors=f"lance:{tmp_path}")
    place = ProcessPlace(settings, 0)
    try:
        with pytest.raises(VectorError):
            place.run(service_module._search, Request("lease", mode=Mode.semantic))
    finally:
        place.close()


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
