"""Listings of several lists in parallel: failures and time-outs are reported by list."""

import threading
from collections.abc import Callable, Iterator

import pytest

from mail_assets.month import ListMonth
from mail_assets.sources import source
from mail_assets.sources.source import ArchiveSource, Fetched, SourceError, Unchanged, list_archives
from mail_assets_tests.sources.time_limits import end_time_after


class Source(ArchiveSource):
    """A list with the months that a function returns."""

    def __init__(self, name: str, read: Callable[[], dict[str, str]]) -> None:
        super().__init__(name, f"/srv/{name}")
        self._read = read

    def versions(self) -> dict[ListMonth, str]:
        return self.by_list_month(self._read())

    def fetch(self, *_: object) -> Fetched | Unchanged | None:
        raise AssertionError("a listing fetches no archive")


def has(name: str) -> Source:
    return Source(name, lambda: {"2024-03": f"version of {name}"})


@pytest.fixture
def hangs() -> Iterator[Source]:
    """A list that answers when the test is over."""
    over = threading.Event()
    yield Source("hangs", lambda: {"2024-03": str(over.wait())})
    over.set()


def test_every_list_is_listed() -> None:
    found = list_archives([has("a"), has("b")], 10)
    assert found.versions == {
        ListMonth("a", "2024-03"): "version of a",
        ListMonth("b", "2024-03"): "version of b",
    }
    assert (found.failed, found.waiting) == ({}, [])


def test_list_that_fails_says_why() -> None:
    def fail() -> dict[str, str]:
        raise SourceError("list b: no such folder")

    found = list_archives([has("a"), Source("b", fail)], 10)
    assert found.versions.keys() == {ListMonth("a", "2024-03")}
    assert found.failed == {"b": "list b: no such folder"}


def test_fault_of_the_program_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        list_archives([Source("a", lambda: {"2024-03": str(1 / 0)})], 10)


def test_list_that_hangs_ends_with_the_time(hangs: Source) -> None:
    found = list_archives([hangs], 0.01)
    assert {*found.failed, *found.waiting} == {"hangs"}  # a busy machine may not have begun it


def test_list_that_hangs_is_not_waited_for(hangs: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    end_time_after(monkeypatch, "a")
    found = list_archives([hangs, has("a")], 0.2)
    assert found.versions.keys() == {ListMonth("a", "2024-03")}
    assert found.failed == {"hangs": "list hangs: no answer within 0.2 s"}


def test_list_without_a_turn_is_no_failure(hangs: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "WORKERS", 1)
    end_time_after(monkeypatch)
    found = list_archives([hangs, has("a"), has("b")], 0.2)
    assert found.failed.keys() == {"hangs"}
    assert found.waiting == ["a", "b"]
