"""Requests are limited early: by cost, client, size, and number at once."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import ip_network
from select import select
from typing import Any

import httpx
import pytest

from mail_assets.search.language.request import Request, RequestError
from mail_assets.search.response import Response
from mail_assets.web import limits, searchers
from mail_assets.web.app import Application
from mail_assets.web.documents import Documents
from mail_assets.web.limits import (
    DEFAULT_ALLOWANCES,
    MAX_BODY,
    Allowance,
    Asked,
    Clients,
    Cost,
    Limits,
    find_cost,
)
from mail_assets.web.privacy import HIDDEN, Publication
from mail_assets.web.responses import ServingError
from mail_assets.web.searchers import SearchService
from mail_assets_tests.sample_corpus import QUERY, ROOT, Corpus
from mail_assets_tests.waits import LONG
from mail_assets_tests.web.conftest import BASE_URL, UNLIMITED, open_service, raw_request, serving
from mail_assets_tests.web.readings import ask_tool


def send_get(client: httpx.Client, path: str) -> socket.socket:
    """Send a request on a new connection, without waiting for the answer."""
    connection = socket.create_connection((client.base_url.host, client.base_url.port), LONG)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


@pytest.fixture(scope="module")
def application(corpus: Corpus) -> Iterator[Application]:
    with open_service(corpus.settings) as service:
        yield Application(Documents(service, Publication(HIDDEN)), BASE_URL)


def call(tool: str) -> bytes:
    return json.dumps({"method": "tools/call", "params": {"name": tool}}).encode()


@pytest.mark.parametrize(
    ("method", "path", "body", "cost"),
    [
        ("GET", "/", b"", Cost.read),
        ("GET", "/message/x", b"", Cost.read),
        ("GET", "/thread.json/search", b"", Cost.read),
        ("GET", "/search", b"", Cost.search),
        ("GET", "/search.json", b"", Cost.search),
        ("GET", "/search?q=lease&offset=10", b"", Cost.search),
        ("GET", "/search?%71=lease&%6fffset=10", b"", Cost.search),
        ("GET", f"/search?q=lease{'&list=' * 100}", b"", Cost.search),
        ("GET", "/search?q=lease&list=&mode=hybrid", b"", Cost.read),  # it is redirected
        ("GET", "/search.json?q=lease&list=&mode=hybrid", b"", Cost.search),
        ("GET", "/search.mbox.gz", b"", Cost.export),
        ("GET", "/thread.mbox.gz/x", b"", Cost.export),
        ("GET", "/similar/x", b"", Cost.search),
        ("GET", "/series/x", b"", Cost.read),
        ("GET", "/series.json/x?old=0&new=1", b"", Cost.search),
        ("GET", "/series/x?%6fld=0", b"", Cost.search),  # it compares with the next one
        ("GET", "/answer", b"", Cost.read),
        ("POST", "/answer", b"", Cost.answer),
        ("GET", "/health", b"", None),
        ("GET", "/static/style.css", b"", None),
        ("GET", "/nothing", b"", Cost.read),
        ("POST", "/mcp", call("semantic_search"), Cost.search),
        ("POST", "/mcp", call("get_message"), Cost.read),
        ("POST", "/mcp", b'{"method": "tools/list"}', Cost.read),
        ("POST", "/mcp", b"no JSON", Cost.read),
        ("POST", "/mcp", b"[" * 100_000, Cost.read),
        ("POST", "/mcp", b"\xff", Cost.read),
    ],
)
def test_cost_of_a_request_follows_its_path_and_tool(
    application: Application, method: str, path: str, body: bytes, cost: Any
) -> None:
    page, _, query = path.partition("?")
    assert find_cost(application.costs, page, Asked(method, query.encode(), body)) == cost


def test_paths_with_the_same_first_part_have_the_same_cost(application: Application) -> None:
    for one in application.paths.all:
        assert application.costs[one.path.split("/")[1]] == one.cost


@pytest.fixture(scope="module")
def limited(corpus: Corpus) -> Iterator[httpx.Client]:
    """A server that lets each client search twice, behind a proxy on this machine."""
    allowances = {
        Cost.read: Allowance(0, 10),
        Cost.search: Allowance(2, 10),
        Cost.export: Allowance(1, 1),
        Cost.answer: Allowance(1, 1),
    }
    clients = Clients((ip_network("127.0.0.1"),))
    with serving(
        corpus.settings, limits=Limits(allowances, clock=lambda: 0.0), clients=clients
    ) as client:
        yield client


def test_too_many_requests_get_429_with_retry_after(limited: httpx.Client) -> None:
    headers = {"x-forwarded-for": "192.0.2.1"}
    for path in (f"/search.json?q={QUERY}", f"/similar.json/{ROOT}"):
        assert limited.get(path, headers=headers).status_code == 200
    refused = limited.get(f"/search.json?q={QUERY}", headers=headers)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
    assert refused.json()["error"]["code"] == "too_many_requests"
    assert refused.headers["cache-control"] == "no-store"
    assert refused.headers["x-content-type-options"] == "nosniff"
    page = limited.get(f"/search?q={QUERY}", headers=headers)
    assert (page.status_code, page.headers["retry-after"]) == (429, "30")
    assert "at most 2 requests a minute" in page.text
    assert limited.get(f"/message/{ROOT}", headers=headers).status_code == 200
    other = {"x-forwarded-for": "192.0.2.1, 192.0.2.2"}
    assert limited.get(f"/search.json?q={QUERY}", headers=other).status_code == 200


def test_searching_tool_is_counted_as_a_search(limited: httpx.Client) -> None:
    limited.headers["x-forwarded-for"] = "192.0.2.9"
    try:
        answers = [ask_tool(limited, "semantic_search", query=QUERY) for _ in range(3)]
    finally:
        del limited.headers["x-forwarded-for"]
    assert [one.status_code for one in answers] == [200, 200, 429]
    assert answers[-1].json()["error"]["code"] == "too_many_requests"


@pytest.mark.parametrize("path", ["/mcp", "/search", "/nowhere"])
def test_large_body_is_refused(public: httpx.Client, path: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {10 << 20}\r\n\r\n"
    assert raw_request(public, head.encode()).startswith(b"HTTP/1.1 413 ")


def test_chunked_body_is_refused_at_the_limit(public: httpx.Client) -> None:
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n%b\r\n" % (MAX_BODY, b"x" * MAX_BODY)
    assert raw_request(public, head + chunk + b"1\r\nx\r\n").startswith(b"HTTP/1.1 413 ")


def test_client_that_leaves_frees_its_place(corpus: Corpus) -> None:
    limits = Limits(UNLIMITED)
    with serving(corpus.settings, limits=limits) as client:
        for number in range(40):
            send_get(client, f"/search.json?q={number}+worker").close()
    # the server ends after the requests in progress
    assert not +limits._running


@pytest.fixture
def go_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """An event for which all searches wait."""
    event = threading.Event()

    def search(self: SearchService, request: Request, patience: float = 0.0) -> Response:
        assert event.wait(LONG)
        raise RequestError("it was to wait")

    monkeypatch.setattr(SearchService, "search", search)
    yield event
    event.set()


def test_reads_do_not_wait_for_searches(corpus: Corpus, go_on: threading.Event) -> None:
    with serving(corpus.settings) as client, ExitStack() as stack:
        stack.callback(go_on.set)
        for number in range(20):
            stack.enter_context(send_get(client, f"/search.json?q={number}"))
        assert client.get(f"/message.json/{ROOT}").status_code == 200


def test_requests_at_once_are_limited(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    read, at_once = SearchService.read, DEFAULT_ALLOWANCES[Cost.read].at_once

    def wait_and_read(self: SearchService, *given: Any) -> Any:
        assert go_on.wait(LONG)
        return read(self, *given)

    monkeypatch.setattr(searchers, "WAIT_SECONDS", LONG)
    limits, here = Limits(UNLIMITED), Clients((ip_network("127.0.0.1"),))
    with serving(corpus.settings, limits=limits, clients=here) as client, ExitStack() as stack:
        monkeypatch.setattr(SearchService, "read", wait_and_read)
        path = f"/message.json/{ROOT}"
        waiting = [stack.enter_context(send_get(client, path)) for _ in range(at_once)]
        stack.callback(go_on.set)
        while limits._running[Cost.read] < at_once:
            assert select(waiting, [], [], 0.01)[0] == []  # no request is refused
        assert client.get(f"/message.json/{ROOT}").status_code == 503
        go_on.set()
        for one in waiting:
            with one.makefile("rb") as answer:
                assert answer.readline() == b"HTTP/1.1 200 OK\r\n"


def test_request_without_a_thread_gets_503(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, go_on: threading.Event
) -> None:
    monkeypatch.setattr(searchers, "WAIT_SECONDS", 0.01)
    with serving(corpus.settings) as client, ExitStack() as stack:
        stack.callback(go_on.set)
        asked = [stack.enter_context(send_get(client, "/search.json?q=x")) for _ in range(5)]
        # three threads for two searchers: two requests get no thread
        turned_away: set[socket.socket] = set()
        while len(turned_away) < 2:
            turned_away |= {*select([*{*asked} - turned_away], [], [], LONG)[0]}
        for one in turned_away:
            with one.makefile("rb") as answer:
                assert answer.readline().startswith(b"HTTP/1.1 503 ")


PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def identify(peer: str, *forwarded: str, believed: bool = True) -> str:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    scope = {"type": "http", "client": (peer, 1) if peer else None, "headers": headers}
    return Clients(PROXIES if believed else ()).identify(scope)


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_client_is_an_ipv4_address_or_ipv6_network(peer: str, client: str) -> None:
    assert identify(peer) == client


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", ["192.0.2.7"], "192.0.2.7"),
        ("10.0.0.1", ["198.51.100.1, 192.0.2.7"], "192.0.2.7"),
        ("10.0.0.1", ["198.51.100.1", "192.0.2.7"], "192.0.2.7"),
        ("10.0.0.1", ["192.0.2.7, 10.0.0.2"], "192.0.2.7"),
        ("10.0.0.1", ["192.0.2.7, [fd00::1]"], "192.0.2.7"),
        ("10.0.0.1", ["2001:db8::1"], "2001:db8::/64"),
        ("10.0.0.1", ["192.0.2.7:49152"], "192.0.2.7"),
        ("10.0.0.1", ["192.0.2.7:49152, 10.0.0.2:443"], "192.0.2.7"),
        ("10.0.0.1", ["192.0.2.7, [fd00::1]:443"], "192.0.2.7"),
        ("10.0.0.1", ["[2001:db8::1]:49152"], "2001:db8::/64"),
        ("10.0.0.1", ["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::/64"),
        ("10.0.0.1", ["192.0.2.7:http"], "10.0.0.1"),
        ("10.0.0.1", [":443"], "10.0.0.1"),
        ("10.0.0.1", ["nobody"], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.7, nobody, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.3, " * 40 + "10.0.0.2"], "10.0.0.3"),
        ("192.0.2.9", ["192.0.2.7"], "192.0.2.9"),
    ],
)
def test_known_proxy_names_the_client(peer: str, forwarded: list[str], client: str) -> None:
    assert identify(peer, *forwarded) == client


def test_unknown_proxy_is_not_believed() -> None:
    assert identify("10.0.0.1", "192.0.2.7", believed=False) == "10.0.0.1"


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
    """Return 0, or the seconds after which the client may try again."""
    try:
        with limits.admit(client, cost):
            return 0
    except ServingError as error:
        return error.retry_after


def test_bucket_allows_a_burst_and_then_refills(clock: Clock) -> None:
    limits = make(clock, 6)
    assert [ask(limits) for _ in range(8)] == [0] * 6 + [10, 10]
    clock.now = 9.0
    assert ask(limits) == 1
    clock.now = 10.0
    assert [ask(limits), ask(limits)] == [0, 10]


def test_client_that_waits_is_admitted(clock: Clock) -> None:
    limits = make(clock, 7)
    for _ in range(50):
        clock.now += ask(limits)
        wait = ask(limits)
        clock.now += wait
        assert not wait or ask(limits) == 0


def test_clients_and_costs_have_separate_buckets(clock: Clock) -> None:
    limits = make(clock, 1)
    assert [ask(limits, "a"), ask(limits, "a")] == [0, 60]
    assert ask(limits, "b") == 0
    assert ask(limits, "a", Cost.read) == 0


def test_zero_allows_any_number(clock: Clock) -> None:
    limits = make(clock, 0)
    assert {ask(limits) for _ in range(1_000)} == {0}


def test_bucket_does_not_overflow(clock: Clock) -> None:
    limits = make(clock, 3)
    clock.now = 1e6
    ask(limits)
    clock.now = 2e6
    assert [ask(limits) for _ in range(4)] == [0, 0, 0, 20]


def test_number_of_buckets_is_limited(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CLIENTS", 10)
    made = make(clock, 1)
    for number in range(1_000):
        assert ask(made, f"192.0.2.{number}") == 0
    assert len(made._buckets) == 10 * len(Cost)
    assert ask(made, "192.0.2.999") == 60  # the newest clients are remembered


def test_limit_at_once_holds_for_all_clients(clock: Clock) -> None:
    limits = make(clock, 0, at_once=3)
    with ExitStack() as running:
        for client in "abc":
            running.enter_context(limits.admit(client, Cost.search))
        with pytest.raises(ServingError) as refused, limits.admit("d", Cost.search):
            pass
        assert (refused.value.status, refused.value.retry_after) == (503, 1)
        assert ask(limits, "d", Cost.read) == 0
    assert ask(limits, "d") == 0


def test_refused_request_takes_no_token(clock: Clock) -> None:
    limits = make(clock, 1, at_once=1)
    with (
        limits.admit("a", Cost.search),
        pytest.raises(ServingError),
        limits.admit("b", Cost.search),
    ):
        pass
    assert ask(limits, "b") == 0


def test_failed_request_frees_its_place(clock: Clock) -> None:
    limits = make(clock, 0, at_once=1)
    with pytest.raises(ZeroDivisionError), limits.admit("a", Cost.search):
        raise ZeroDivisionError
    assert ask(limits) == 0


@pytest.mark.parametrize("here", ["127.0.0.1", "::/64", ""])
def test_local_clients_have_their_own_allowance(clock: Clock, here: str) -> None:
    assert [ask(make(clock, 1), here) for _ in range(50)] == [0] * 50
    limits = Limits(dict.fromkeys(Cost, Allowance(1, 100, per_minute_here=2)), clock)
    assert [ask(limits, here) for _ in range(3)] == [0, 0, 30]
    assert [ask(limits, "192.0.2.1") for _ in range(2)] == [0, 60]
