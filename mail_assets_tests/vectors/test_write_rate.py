"""The rate of writes, by a clock that only the test moves."""

from __future__ import annotations

import pytest

from mail_assets.vectors.s3vectors import WriteRate


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
