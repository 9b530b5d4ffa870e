"""A client gets what it is allowed, evenly, and takes nothing from others."""

from contextlib import ExitStack

import pytest

from mail_assets.web import limits
from mail_assets.web.limits import Allowance, Cost, Limits
from mail_assets.web.responses import ServingError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make(clock: Clock, per_minute: int, at_once: int = 100) -> Limits:
    return Limits(dict.fromkeys(Cost, Allowance(per_minute, at_once)), clock)


def ask(limits: Limits, client: str = "a", cost: Cost = Cost.search) -> int:
    """Return 0, or the seconds after which the client may come again."""
    try:
        with limits.admit(client, cost):
            return 0
    except ServingError as error:
        return error.retry_after


def test_a_minutes_requests_may_come_at_once_and_more_one_by_one(clock: Clock) -> None:
    limits = make(clock, 6)
    assert [ask(limits) for _ in range(8)] == [0] * 6 + [10, 10]
    clock.now = 9.0
    assert ask(limits) == 1
    clock.now = 10.0
    assert [ask(limits), ask(limits)] == [0, 10]


def test_who_comes_when_told_to_is_admitted(clock: Clock) -> None:
    limits = make(clock, 7)
    for _ in range(50):
        clock.now += ask(limits)
        wait = ask(limits)
        clock.now += wait
        assert not wait or ask(limits) == 0


def test_a_refusal_is_said_as_all_errors_are(clock: Clock) -> None:
    limits = make(clock, 1)
    ask(limits)
    with pytest.raises(ServingError) as refused, limits.admit("a", Cost.search):
        pass
    assert (refused.value.status, refused.value.code) == (429, "too_many_requests")


def test_clients_and_kinds_of_requests_are_counted_apart(clock: Clock) -> None:
    limits = make(clock, 1)
    assert [ask(limits, "a"), ask(limits, "a")] == [0, 60]
    assert ask(limits, "b") == 0
    assert ask(limits, "a", Cost.read) == 0


def test_no_number_is_any_number(clock: Clock) -> None:
    limits = make(clock, 0)
    assert {ask(limits) for _ in range(1_000)} == {0}


def test_rest_fills_a_bucket_and_no_more(clock: Clock) -> None:
    limits = make(clock, 3)
    clock.now = 1e6
    ask(limits)
    clock.now = 2e6
    assert [ask(limits) for _ in range(4)] == [0, 0, 0, 20]


def test_many_clients_take_no_memory(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CLIENTS", 10)
    made = make(clock, 1)
    for number in range(1_000):
        assert ask(made, f"192.0.2.{number}") == 0
    assert len(made._buckets) == 10 * len(Cost)
    assert ask(made, "192.0.2.999") == 60  # the last ones are known


def test_what_runs_at_once_is_bounded_for_all(clock: Clock) -> None:
    limits = make(clock, 0, at_once=3)
    with ExitStack() as running:
        for client in "abc":
            running.enter_context(limits.admit(client, Cost.search))
        with pytest.raises(ServingError) as refused, limits.admit("d", Cost.search):
            pass
        assert (refused.value.status, refused.value.retry_after) == (503, 1)
        assert ask(limits, "d", Cost.read) == 0
    assert ask(limits, "d") == 0


def test_a_request_that_is_turned_away_costs_nothing(clock: Clock) -> None:
    limits = make(clock, 1, at_once=1)
    with (
        limits.admit("a", Cost.search),
        pytest.raises(ServingError),
        limits.admit("b", Cost.search),
    ):
        pass
    assert ask(limits, "b") == 0


def test_a_request_that_fails_runs_no_longer(clock: Clock) -> None:
    limits = make(clock, 0, at_once=1)
    with pytest.raises(ZeroDivisionError), limits.admit("a", Cost.search):
        raise ZeroDivisionError
    assert ask(limits) == 0


@pytest.mark.parametrize("here", ["127.0.0.1", "::/64", ""])
def test_clients_on_this_machine_have_an_allowance_of_their_own(clock: Clock, here: str) -> None:
    assert [ask(make(clock, 1), here) for _ in range(50)] == [0] * 50
    limits = Limits(dict.fromkeys(Cost, Allowance(1, 100, per_minute_here=2)), clock)
    assert [ask(limits, here) for _ in range(3)] == [0, 0, 30]
    assert [ask(limits, "192.0.2.1") for _ in range(2)] == [0, 60]
