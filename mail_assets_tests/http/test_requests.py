"""Header fields, hosts of this machine, retries, and messages to a webhook; nothing sleeps."""

import logging
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from mail_assets.http.requests import (
    GivenUpError,
    RetryBudget,
    RetryPolicy,
    TransientError,
    WebhookError,
    call_with_retries,
    check_webhook,
    conditional_headers,
    escape,
    file_version,
    is_loopback,
    is_transient,
    post_message,
    retry_after,
)
from mail_assets_tests.http.receiver import PATH, Receiver, receiving

DATE = "Mon, 05 Jan 2026 15:18:12 GMT"


@pytest.mark.parametrize(("headers", "version"), [
    ({"ETag": '"abc"', "Last-Modified": DATE}, '"abc"'),
    ({"ETag": 'W/"abc"'}, 'W/"abc"'),
    ({"ETag": "unquoted", "Last-Modified": DATE}, DATE),
    ({"Last-Modified": DATE}, DATE),
    ({}, ""),
])  # fmt: skip
def test_version_is_the_etag_or_else_the_date(headers: dict[str, str], version: str) -> None:
    assert file_version(headers) == version


@pytest.mark.parametrize(("version", "conditions"), [
    ('"abc"', {"If-None-Match": '"abc"'}),
    (DATE, {"If-Modified-Since": DATE}),
    ("sha256:00", {}),
    ("a\r\nEvil: 1", {}),
    ("", {}),
])  # fmt: skip
def test_only_header_versions_become_conditions(version: str, conditions: dict[str, str]) -> None:
    assert conditional_headers(version) == conditions


@pytest.mark.parametrize(("value", "seconds"), [
    ("7", 7.0),
    (" 0 ", 0.0),
    (DATE, 0.0),
    ("soon", None),
    ("-1", None),
    ("1.5", None),
    ("", None),
    (None, None),
])  # fmt: skip
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after({} if value is None else {"Retry-After": value}) == seconds


def test_retry_after_a_future_date_is_the_time_until_it() -> None:
    began = datetime.now(UTC)
    later = format_datetime(began + timedelta(seconds=40), usegmt=True)
    found = retry_after({"Retry-After": later})
    took = (datetime.now(UTC) - began).total_seconds()
    assert found is not None
    assert 39 - took <= found <= 40


@pytest.mark.parametrize(("hosts", "here"), [
    (("127.0.0.1", "127.1.2.3", "::1", "localhost"), True),
    (("", "10.0.0.1", "localhost.example.org", "example.org", "::2"), False),
])  # fmt: skip
def test_loopback_hosts_are_this_machine(hosts: tuple[str, ...], here: bool) -> None:
    assert {is_loopback(host) for host in hosts} == {here}


POLICY = RetryPolicy(first_wait=0.5, longest_wait=20.0, jitter=1.0, attempts=8)


class Failing:
    """Fails `times` times, asking for a wait, and then answers."""

    def __init__(self, times: int, retry_after: float | None = None) -> None:
        self.calls = 0
        self._times, self._retry_after = times, retry_after

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self._times:
            raise TransientError(f"failure {self.calls}", self._retry_after)
        return "answer"


@pytest.mark.parametrize(("statuses", "transient"), [
    ((408, 429, 500, 502, 503, 504, 520, 529), True),
    ((200, 301, 400, 401, 403, 404, 409, 410, 413, 501, 505, 511), False),
])  # fmt: skip
def test_time_outs_and_outages_are_transient(statuses: tuple[int, ...], transient: bool) -> None:
    assert {is_transient(status) for status in statuses} == {transient}


def test_waits_grow_differ_and_end() -> None:
    waits = [[POLICY.next_wait(n) for n in range(1, 8)] for _ in range(200)]
    longest = [max(w for w in column if w is not None) for column in zip(*waits, strict=True)]
    assert longest == sorted(longest)
    assert longest[-1] <= 20.0
    assert len({tuple(row) for row in waits}) == 200
    assert POLICY.next_wait(8) is None


def test_jitter_takes_no_more_than_its_share() -> None:
    policy = RetryPolicy(first_wait=2.0, longest_wait=60.0, jitter=0.5)
    for attempts, longest in ((1, 2), (2, 4), (5, 32), (6, 60), (20, 60)):
        waits = [policy.next_wait(attempts) or 0.0 for _ in range(50)]
        assert longest / 2 <= min(waits) < max(waits) <= longest


def test_wait_of_the_server_is_added_or_exact() -> None:
    added = RetryPolicy(first_wait=2.0, longest_wait=60.0, jitter=0.5)
    exact = RetryPolicy(first_wait=2.0, longest_wait=60.0, jitter=0.5, exact_retry_after=True)
    assert 8.0 <= (added.next_wait(1, 7.0) or 0.0) <= 9.0
    assert exact.next_wait(1, 7.0) == 7.0
    assert exact.next_wait(1, 0.0) == 0.0


def test_policy_gives_up_a_server_that_asks_for_too_long() -> None:
    policy = RetryPolicy(first_wait=1, longest_wait=1, jitter=0, longest_retry_after=60)
    assert policy.next_wait(1, 60) == 61
    assert policy.next_wait(1, 61) is None


def test_patience_counts_time_spent_and_the_next_wait() -> None:
    policy = RetryPolicy(first_wait=4, longest_wait=4, jitter=0, patience=10)
    assert policy.next_wait(1, seconds=6) == 4
    assert policy.next_wait(1, seconds=6.1) is None


def test_call_is_repeated_until_it_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    slept: list[float] = []
    attempt = Failing(3, retry_after=5.0)
    policy = RetryPolicy(first_wait=1, longest_wait=9, jitter=0)
    assert call_with_retries(attempt, policy, slept.append) == "answer"
    assert (attempt.calls, slept) == (4, [6, 7, 9])
    assert caplog.messages[0] == "failure 1; trying again in 6.0 s"


def test_giving_up_reports_the_attempts() -> None:
    slept: list[float] = []
    policy = RetryPolicy(first_wait=3, longest_wait=9, jitter=0, attempts=3)
    with pytest.raises(GivenUpError, match="failure 3") as found:
        call_with_retries(Failing(9, retry_after=1.0), policy, slept.append)
    assert slept == [4, 7]
    assert found.value.attempts == 3
    assert found.value.retry_after == 1.0
    assert found.value.seconds == pytest.approx(11, abs=1)
    assert not found.value.stopped


def test_interrupted_pause_ends_the_attempts() -> None:
    attempt = Failing(9)
    with pytest.raises(GivenUpError) as found:
        call_with_retries(attempt, POLICY, lambda seconds: True)
    assert found.value.stopped
    assert attempt.calls == 1


def test_other_errors_are_not_tried_again() -> None:
    def attempt() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        call_with_retries(attempt, POLICY, lambda seconds: pytest.fail("no pause"))


def test_budget_ends_retries_and_answers_refill_it() -> None:
    budget = RetryBudget()
    taken = 0
    while budget.take():
        taken += 1
    assert taken == RetryBudget.CAPACITY // RetryBudget.COST
    for _ in range(RetryBudget.COST):
        budget.refill()
    assert budget.take()
    assert not budget.take()


def test_budget_never_grows_beyond_its_capacity() -> None:
    budget = RetryBudget()
    budget.refill()
    assert sum(budget.take() for _ in range(1_000)) == RetryBudget.CAPACITY // RetryBudget.COST


# --- messages to a webhook -----------------------------------------------------------------------


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.mark.parametrize(
    "text", ["plain", "line\nline", "naïve — ✓", "a &amp; b &lt;c&gt;", '\\ "']
)
def test_text_arrives_unchanged(receiver: Receiver, text: str) -> None:
    post_message(receiver.url, text)
    assert receiver.texts == [text]


@pytest.mark.parametrize(("refusal", "fault"), [
    ((500, ""), "HTTP 500: Internal Server Error"),
    ((404, "no_service\n"), "HTTP 404: no_service"),
    ((403, "a  long\nanswer " + "x" * 500), f"HTTP 403: a long answer {'x' * 186}"),
    ((302, ""), "HTTP 302: Found"),
    ((307, ""), "HTTP 307: Temporary Redirect"),
])  # fmt: skip
def test_refusal_is_an_error_with_the_servers_answer(
    receiver: Receiver, refusal: tuple[int, str], fault: str
) -> None:
    receiver.refusals.append(refusal)
    with pytest.raises(WebhookError) as error:
        post_message(receiver.url, "text")
    assert str(error.value) == fault
    assert receiver.texts == []


def test_missing_server_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(WebhookError, match=r"no answer: .*refused"):
        post_message(f"http://127.0.0.1:{port}{PATH}", "text")


def test_url_is_in_no_log_or_error(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    post_message(receiver.url, "text")
    receiver.refusals.append((404, f"nothing at {receiver.url}"))
    with pytest.raises(WebhookError) as error:
        post_message(receiver.url, "text")
    assert str(error.value) == "HTTP 404: nothing at ***"
    assert PATH not in caplog.text


@pytest.mark.parametrize(
    "url",
    ["https://hooks.slack.com/x", "http://127.0.0.1:9/x", "http://localhost/x", "http://[::1]/x"],
)
def test_webhook_is_https_or_on_this_machine(url: str) -> None:
    check_webhook(url)


@pytest.mark.parametrize("url", [
    *("", "x", "hooks.slack.com/x", "ftp://example.org", "https:///x", "file:///etc/passwd"),
    *("http://example.org/x", "http://10.0.0.1/x", "https://[::1/x", "https://a:b/x"),
    *("https://exa mple.org", "https://example.org/\n", "https://exämple.org"),
])  # fmt: skip
def test_other_urls_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match=r"^must be ") as error:
        check_webhook(url)
    assert not url or url not in str(error.value)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [("a & b", "a &amp; b"), ("<!channel>", "&lt;!channel&gt;"), ("&lt;", "&amp;lt;")],
)
def test_text_is_escaped_for_slack(text: str, escaped: str) -> None:
    assert escape(text) == escaped
