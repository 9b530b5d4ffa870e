"""Permits: as many at once as there are, in the order of who came."""

import threading
from concurrent.futures import ThreadPoolExecutor

from mail_assets.web.searchers import Permits


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
