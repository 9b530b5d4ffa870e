"""Requests to a server: retries, final failures, secrets, and halves of characters."""

import logging
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.openai import Client, EndpointError, Server, join_halves, replace_halves
from mail_assets_tests.openai.fake_server import KEY, FakeServer, Reply, serving

OK = {"answer": 42}
PATIENCE = 100.0


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving(FakeServer({"/v1/things": lambda body: Reply({**OK, "asked": body})})) as server:
        yield server


class Pauses(list[float]):
    """Records the seconds of each pause and does not wait."""

    def __call__(self, stopped: threading.Event, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def client(server: FakeServer, pauses: Pauses) -> Iterator[Client]:
    with Client(Server("MAIL_THING", server.url, KEY), pauses) as client:
        yield client


def post(client: Client, patience: float = PATIENCE) -> dict[str, Any]:
    return client.post("things", {"question": "?"}, patience)


def refused(client: Client, patience: float = PATIENCE) -> EndpointError:
    with pytest.raises(EndpointError) as caught:
        post(client, patience)
    return caught.value


def test_post_sends_and_returns_an_object(client: Client, pauses: Pauses) -> None:
    assert post(client) == {**OK, "asked": {"question": "?"}}
    assert pauses == []


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_transient_failure_is_retried_with_growing_pauses(
    client: Client, server: FakeServer, pauses: Pauses, status: int
) -> None:
    server.script = [Reply("not now", status)] * 4
    assert post(client)["answer"] == 42
    assert len(server.seen) == 5
    for pause, most in zip(pauses, (1, 2, 4, 8), strict=True):
        assert most / 2 <= pause <= most


def test_broken_connection_is_retried(client: Client, server: FakeServer, pauses: Pauses) -> None:
    server.script = [Reply(OK, cut=5), Reply(OK, cut=5)]
    assert post(client)["answer"] == 42
    assert len(pauses) == 2


def test_wait_beyond_the_patience_fails_at_once(
    client: Client, server: FakeServer, pauses: Pauses
) -> None:
    server.script = [Reply("busy", 429, [("Retry-After", "3600")])] * 2
    error = str(refused(client))
    assert "HTTP 429: busy (asks to wait 3600 s); run again later" in error
    assert (pauses, len(server.seen)) == ([], 1)


def test_end_of_patience_reports_attempts_and_seconds(
    client: Client, server: FakeServer, pauses: Pauses
) -> None:
    server.script = [Reply("out of memory", 500)] * 50
    began = time.monotonic()
    error = str(refused(client, patience=20))
    assert f"{server.url}/things: HTTP 500: out of memory, " in error
    said = re.search(r"(\d+) times in (\d+) s; run again later", error)
    assert said
    assert int(said[1]) == len(pauses) + 1
    took = time.monotonic() - began
    assert sum(pauses) - 1 <= int(said[2]) <= sum(pauses) + took + 1
    assert sum(pauses) <= 20 < sum(pauses) + took + 2 ** len(pauses), "the next may be as long"


def test_missing_server_is_retried_and_named(pauses: Pauses) -> None:
    with (
        Client(Server("MAIL_THING", "http://127.0.0.1:1/v1"), pauses) as client,
        pytest.raises(EndpointError, match=r"http://127.0.0.1:1/v1/things: ConnectError: "),
    ):
        post(client, patience=10)
    assert len(pauses) > 2


def test_stop_ends_a_pause(client: Client, server: FakeServer) -> None:
    server.script = [Reply("", 429, [("Retry-After", "50")])] * 2
    stopped = threading.Event()
    stopped.set()
    with (
        Client(Server("MAIL_THING", server.url, KEY)) as real,
        pytest.raises(EndpointError, match="; stopped"),
    ):
        real.post("things", {}, PATIENCE, stopped)
    assert len(server.seen) == 1


def openai(message: str, code: str = "") -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code}}


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(openai("bad field"), 400), "HTTP 400: bad field"),
        (Reply(openai("who are you"), 401), "HTTP 401: who are you; MAIL_THING_KEY is refused"),
        (Reply(openai("not for you"), 403), "HTTP 403: not for you; MAIL_THING_KEY is refused"),
        (Reply(openai("no model"), 404), "HTTP 404: no model; check MAIL_THING_URL"),
        (Reply({"error": "model not found, try pulling it"}, 404), "404: model not found, try"),
        (Reply({"detail": "dimensions not supported"}, 400), "HTTP 400: dimensions not supported"),
        (Reply({"object": "error", "message": "vllm says no"}, 422), "HTTP 422: vllm says no"),
        (Reply("<html>\n<h1>Forbidden</h1>", 403), "HTTP 403: <html> <h1>Forbidden</h1>; MAIL"),
        (Reply("", 501), "HTTP 501: Not Implemented"),
        (Reply(openai("y" * 5000), 400), "y" * 400 + "..."),
        (Reply("", 307, [("Location", "http://127.0.0.1:1/")]), "correct MAIL_THING_URL"),
        (Reply(openai("no money", "insufficient_quota"), 429), "HTTP 429: no money"),
        (Reply({"error": "the input length exceeds the context length"}, 500), "context length"),
        (
            Reply("<html>hello"),
            "the answer is not a JSON object but '<html>hello'; check MAIL_THING_URL",
        ),
        (Reply("[1]"), "the answer is not a JSON object but '[1]'"),
        (Reply("[" * 100_000), "the answer is not a JSON object"),
    ],
)
def test_other_failures_end_at_once_with_the_servers_words(
    client: Client, server: FakeServer, pauses: Pauses, reply: Reply, says: str
) -> None:
    server.script = [reply]
    error = str(refused(client))
    assert error.startswith(f"{server.url}/things: ")
    assert says in error
    assert "\n" not in error
    assert (pauses, len(server.seen)) == ([], 1)


@pytest.mark.parametrize("says", [
    "This model's maximum context length is 8192 tokens, however you requested 9001 tokens",
    "the input length exceeds the context length",
    "Input validation error: `inputs` must have less than 512 tokens. Given: 600",
])  # fmt: skip
def test_refusal_for_length_is_recognised(client: Client, server: FakeServer, says: str) -> None:
    server.script = [Reply(openai(says), 400), Reply(openai("no such field"), 400)]
    assert refused(client).too_long
    assert not refused(client).too_long


def test_missing_key_and_wrong_key_have_own_messages(server: FakeServer) -> None:
    for key, says in (("", "MAIL_THING_KEY is not set"), ("wrong", "MAIL_THING_KEY is refused")):
        with Client(Server("MAIL_THING", server.url, key)) as client:
            assert says in str(refused(client))
    assert "authorization" not in server.seen[0].headers


@pytest.mark.parametrize("cut", [0, 330, 380, 395])
def test_key_is_in_no_error_log_or_repr(
    server: FakeServer, caplog: pytest.LogCaptureFixture, cut: int
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = f"{'x' * cut} wrong key {KEY} from {KEY}"
    with Client(Server("MAIL_THING", server.url, KEY), Pauses()) as client:
        said = []
        for reply in (Reply(openai(echo), 401), Reply(echo), Reply(f"{{{KEY * 9}")):
            server.script = [Reply(openai(echo), 500), Reply(OK, cut=3), reply]
            said.append(str(refused(client)))
        shown = "".join(said) + caplog.text + repr(client) + repr(vars(client))
    assert KEY[:9] not in shown
    assert "***" in said[0] or cut > 390
    assert len(server.seen) == 9
    assert {seen.headers["authorization"] for seen in server.seen} == {f"Bearer {KEY}"}


def test_stream_gives_its_pieces(client: Client, server: FakeServer) -> None:
    server.script = [Reply(pieces=[b"one ", b"two ", b"three"])]
    with client.stream("things", {}, PATIENCE) as pieces:
        assert b"".join(pieces) == b"one two three"


def test_stream_is_retried_until_it_begins(
    client: Client, server: FakeServer, pauses: Pauses
) -> None:
    server.script = [Reply("", 503), Reply("", 429), Reply(pieces=[b"x"])]
    with client.stream("things", {}, PATIENCE) as pieces:
        assert [*pieces] == [b"x"]
    assert len(pauses) == 2


def test_broken_stream_is_an_error_after_its_pieces(
    client: Client, server: FakeServer, pauses: Pauses
) -> None:
    server.script = [Reply(pieces=[b"one "], cut=1)]
    got = []
    with client.stream("things", {}, PATIENCE) as pieces:
        got.append(next(pieces))
        with pytest.raises(EndpointError, match="RemoteProtocolError"):
            next(pieces)
    assert (got, pauses, len(server.seen)) == ([b"one "], [], 1)


@pytest.mark.parametrize(("texts", "joined"), [
    (["a duck \ud83e", "\udd86 [1]"], "a duck \U0001f986 [1]"),
    (["\ud83e", "", "\udd86"], "\U0001f986"),
    (["a \ud83e b [1]"], "a \ufffd b [1]"),
    (["a \ud83e", " b"], "a \ufffd b"),
    (["\udd86", "\ud83e"], "\ufffd\ufffd"),
    (["\ud83e\ud83e", "\udd86"], "\ufffd\U0001f986"),
])  # fmt: skip
def test_halves_are_joined_and_one_alone_is_replaced(texts: list[str], joined: str) -> None:
    assert "".join(join_halves(texts)) == joined


@given(st.lists(st.text(st.characters(codec=None, exclude_categories=()))))
def test_halves_join_across_pieces_as_in_the_whole(texts: list[str]) -> None:
    joined = "".join(join_halves(texts))
    assert joined == replace_halves("".join(texts))
    assert joined.encode().decode() == joined
