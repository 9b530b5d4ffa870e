"""The pace of writes and retries, by a clock that only tests move."""

from __future__ import annotations

import pytest

from mail_assets.vectors import pace
from mail_assets.vectors.pace import Retries, WriteRate


class Clock:
    """Time that passes when somebody sleeps."""

    now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_writes_are_held_to_the_rate_after_a_burst() -> None:
    clock = Clock()
    rate = WriteRate(1_000, burst=2_000, clock=clock, sleep=clock.sleep)
    for _ in range(4):
        rate.take(500)
    assert clock.now == 100
    for _ in range(10):
        rate.take(500)
    assert clock.now == pytest.approx(105)


def test_an_idle_time_gives_no_more_than_the_burst() -> None:
    clock = Clock()
    rate = WriteRate(1_000, burst=2_000, clock=clock, sleep=clock.sleep)
    clock.sleep(3_600)
    rate.take(2_000)
    rate.take(1_000)
    assert clock.now == pytest.approx(3_701)


def test_waits_grow_differ_and_end() -> None:
    waits = [[Retries(seed).wait(n) for n in range(1, pace.ATTEMPTS)] for seed in range(200)]
    longest = [max(w for w in column if w is not None) for column in zip(*waits, strict=True)]
    assert longest == sorted(longest)
    assert longest[-1] <= pace.LONGEST_WAIT
    assert len({tuple(row) for row in waits}) == 200
    assert Retries().wait(pace.ATTEMPTS) is None


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("7", 7.0, 7.5), ("0", 0.0, 0.5), ("Sat, 01 Jan 2028 00:00:00 GMT", 0.0, 0.5), ("", 0.0, 0.5)],
)
def test_retry_after_is_waited_for(header: str, least: float, most: float) -> None:
    wait = Retries(0).wait(1, header)
    assert wait is not None
    assert least < wait <= most


def test_a_service_that_asks_for_an_hour_is_given_up() -> None:
    assert Retries().wait(1, "3600") is None


def test_a_budget_ends_the_retries_of_a_service_that_is_down_and_answers_refill_it() -> None:
    retries = Retries()
    waits = 0
    while retries.wait(1) is not None:
        waits += 1
    assert waits == Retries.CAPACITY // Retries.COST
    for _ in range(Retries.COST):
        retries.answered()
    assert retries.wait(1) is not None
    assert retries.wait(1) is None
