"""Questions are answered over HTTP as events, JSON or a page."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from mail_assets.answers.chat import ChatMaker
from mail_assets.openai import ChatModel, Client, Server
from mail_assets.web.answers import choose_type
from mail_assets_tests.openai.fake_chat import MODEL, chunk, fake_chat
from mail_assets_tests.openai.fake_server import KEY, FakeServer, Json, Reply
from mail_assets_tests.openai.fake_server import serving as serving_fake
from mail_assets_tests.sample_corpus import QUERY, Corpus
from mail_assets_tests.waits import LONG
from mail_assets_tests.web.conftest import fill, serving, serving_world
from mail_assets_tests.web.test_privacy import read_addresses
from mail_assets_tests.world import World, mail

EVENTS = {"Accept": "text/event-stream"}
PAGE = {"Accept": "text/html,application/xhtml+xml"}
DATA = {"Accept": "application/json"}


def read_events(text: str) -> list[tuple[str, Any]]:
    events = []
    for block in text.split("\n\n")[:-1]:
        name, data = block.split("\n")
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


@pytest.fixture(scope="module")
def chat() -> Iterator[FakeServer]:
    """A chat model that cites two excerpts and a missing one, and writes an address."""
    with serving_fake(fake_chat("The lease ", "ran out [", "1", "][2]", ", see [77].")) as server:
        yield server


@pytest.fixture(scope="module")
def answered(corpus: Corpus, chat: FakeServer) -> Iterator[httpx.Client]:
    """A server whose questions are answered by the chat model."""
    with serving_model(corpus, chat) as served:
        yield served


@contextmanager
def serving_model(corpus: Corpus, chat: FakeServer) -> Iterator[httpx.Client]:
    """Serve the sample lists; a chat model answers questions."""
    with (
        Client(Server("MAIL_CHAT", chat.url, KEY)) as client,
        serving(corpus.settings, maker=ChatMaker(client, ChatModel(MODEL, chat.url))) as served,
    ):
        yield served


def test_answer_arrives_as_events(answered: httpx.Client) -> None:
    response = answered.post("/answer", data={"q": QUERY}, headers=EVENTS)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-store"
    events = read_events(response.text)
    names = [name for name, _ in events]
    assert names[0] == "excerpts"
    assert names[-2:] == ["citations", "end"]
    assert {*names[1:-2]} == {"text"}
    text = "".join(data["text"] for name, data in events if name == "text")
    assert text == "The lease ran out [1][2], see."
    [citations] = [data["citations"] for name, data in events if name == "citations"]
    assert [one["number"] for one in citations] == [1, 2]
    for one in citations:
        assert "from_email" not in one
        assert answered.get(one["url"]).status_code == 200
    end = events[-1][1]
    assert (end["answers"], end["complete"], end["dropped"]) == (True, True, 1)


def test_answer_is_also_json_and_page(answered: httpx.Client) -> None:
    data = answered.post("/answer", json={"q": QUERY}, headers=DATA).json()
    assert data["text"] == "The lease ran out [1][2], see."
    assert data["maker"] == MODEL
    page = answered.post("/answer", data={"q": QUERY}, headers=PAGE)
    assert page.headers["content-type"].startswith("text/html")
    for one in data["citations"]:
        assert f'[<a href="{one["html_url"]}">{one["number"]}</a>]' in page.text
    assert "it may be wrong" in page.text
    assert f'value="{QUERY}"' in page.text


def test_form_sends_nothing_to_the_model(answered: httpx.Client, chat: FakeServer) -> None:
    before = len(chat.seen)
    for path in ("/answer", f"/answer?q={QUERY}", f"/search?q={QUERY}"):
        page = answered.get(path)
        assert page.status_code == 200
        assert 'method="post"' in page.text
    assert answered.head("/answer").status_code == 200
    assert len(chat.seen) == before
    assert "/answer.js" in answered.get(f"/search?q={QUERY}").text


def test_model_receives_no_address(
    answered: httpx.Client, chat: FakeServer, corpus: Corpus
) -> None:
    answered.post("/answer", json={"q": QUERY})
    asked = json.dumps(chat.seen[-1].body)
    assert "| From: " in asked
    addresses = read_addresses(corpus)
    assert not [one for one in addresses if f"<{one}>" in asked.lower()]


def test_passages_are_given_without_model(public: httpx.Client) -> None:
    data = public.post("/answer", json={"q": QUERY}, headers=DATA).json()
    assert data["maker"] == "passages"
    assert data["complete"]
    page = public.post("/answer", data={"q": QUERY}, headers=PAGE)
    assert "These are paragraphs of the mail itself." in page.text
    assert "/answer.js" not in public.get(f"/search?q={QUERY}").text


def test_nothing_answers_if_filter_excludes_all(public: httpx.Client) -> None:
    answer = public.post("/answer", json={"q": QUERY, "sender": "nobody"}, headers=DATA).json()
    assert answer["answers"] is None
    assert not answer["citations"]


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Content-Type": "application/json"}, b'{"q": ""}', 400),
        ({"Content-Type": "application/json"}, b'{"q": 1}', 400),
        ({"Content-Type": "application/json"}, b'["q"]', 400),
        ({"Content-Type": "application/json"}, b"{" * 10_000, 400),
        ({"Content-Type": "application/json"}, b"\xff", 400),
        ({"Content-Type": "application/json"}, b'{"q": "x", "limit": "5"}', 400),
        ({"Content-Type": "application/json"}, b'{"q": "list:nowhere"}', 400),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"q=a&q=b", 400),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"q=%ff", 400),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"a=&" * 100, 400),
        ({"Content-Type": "text/plain"}, b"q=a", 415),
        ({}, b"q=a", 415),
        ({"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"}, b'{"q":"x"}', 403),
    ],
)
def test_wrong_question_is_refused_as_json_and_page(
    public: httpx.Client, headers: dict[str, str], body: bytes, status: int
) -> None:
    response = public.post("/answer", content=body, headers=headers)
    assert response.status_code == status
    assert {*response.json()["error"]} == {"code", "message", "allowed"}
    page = public.post("/answer", content=body, headers=headers | PAGE)
    assert page.status_code == status
    assert page.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "text/event-stream"),
        ("*/*", "text/event-stream"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html"),
        ("application/json", "application/json"),
        ("application/json, text/event-stream", "text/event-stream"),
        ("application/json;q=0.9", "application/json"),
    ],
)
def test_accept_header_chooses_the_format(accept: str, kind: str) -> None:
    assert choose_type(accept) == kind


def test_failing_model_is_reported_without_its_url(corpus: Corpus) -> None:
    broken = FakeServer({"/v1/chat/completions": lambda _: Reply({"no": "stream"})})
    with serving_fake(broken) as server, serving_model(corpus, server) as served:
        events = read_events(served.post("/answer", data={"q": QUERY}, headers=EVENTS).text)
        assert [name for name, _ in events] == ["excerpts", "error"]
        response = served.post("/answer", data={"q": QUERY}, headers=DATA)
        assert response.status_code == 503
        assert server.url not in response.text + json.dumps(events)


class SlowModel:
    """A chat model that writes one word, and after `left` is set writes without end."""

    def __init__(self) -> None:
        self.asked, self.left, self.noticed = (threading.Event() for _ in range(3))

    def answer(self, _: Json) -> Reply:
        pieces: Any = self._words()
        return Reply(pieces=pieces, headers=[("Content-Type", "text/event-stream")])

    def _words(self) -> Iterator[bytes]:
        try:
            yield chunk("First. ")
            self.asked.set()
            assert self.left.wait(LONG)
            while True:
                yield chunk("And on. ")
        finally:
            self.noticed.set()


def test_leaving_client_ends_the_stream(corpus: Corpus) -> None:
    model = SlowModel()
    slow = FakeServer({"/v1/chat/completions": model.answer})
    with serving_fake(slow) as server, serving_model(corpus, server) as served:
        with served.stream("POST", "/answer", data={"q": QUERY}, headers=EVENTS) as response:
            assert next(response.iter_lines()) == "event: excerpts"
            # no slot or connection is used while the model writes
            for _ in range(4):
                assert served.get(f"/search.json?q={QUERY}").status_code == 200
        model.left.set()
        assert model.noticed.wait(LONG)


@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_leaving_client_ends_a_whole_answer(corpus: Corpus, accept: str) -> None:
    model = SlowModel()
    slow = FakeServer({"/v1/chat/completions": model.answer})
    body = json.dumps({"q": QUERY})
    question = (
        f"POST /answer HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )
    with serving_fake(slow) as server, serving_model(corpus, server) as served:
        address = (served.base_url.host, served.base_url.port)
        with socket.create_connection(address, LONG) as connection:
            connection.sendall(question.encode())
            assert model.asked.wait(LONG)
        model.left.set()
        assert model.noticed.wait(LONG)


#: Texts whose sentences or lines end within an address; a chunk ends within the last address.
CUT = "The ocelot sleeps in the old barn until noon. " * 3 + (
    "Whoever wants the ocelot should write to anna.keeper@\nharbor.example the barn opens the"
    " ocelot at noon.\n"
)


@pytest.mark.parametrize("question", ["who wants the ocelot", "when does the barn open the ocelot"])
def test_answer_and_prompt_have_no_part_of_an_address(
    world: World, chat: FakeServer, question: str
) -> None:
    fill(world, mail("a", CUT * 20))
    world.chain(last="chunks")
    with serving_world(world) as client:
        given = {"q": question, "mode": "fulltext"}
        said = client.post("/answer", json=given, headers=DATA).text
    with (
        Client(Server("MAIL_CHAT", chat.url, KEY)) as model,
        serving(world.settings(), maker=ChatMaker(model, ChatModel(MODEL, chat.url))) as client,
    ):
        client.post("/answer", json=given)
    for text in (said, json.dumps(chat.seen[-1].body)):
        assert "ocelot" in text
        assert "anna.keeper" not in text
        assert "harbor.example" not in text
