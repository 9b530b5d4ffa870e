"""Chat completions: streamed and whole, server-sent events, and thoughts before an answer."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.openai import (
    ChatMessage,
    ChatModel,
    Client,
    EndpointError,
    Server,
    ask_model,
    complete,
    leave_out_thoughts,
    parse_events,
)
from mail_assets_tests.openai.fake_chat import MODEL, chunk, fake_chat, stream
from mail_assets_tests.openai.fake_server import KEY, FakeServer, Reply, serving

ASKED = [ChatMessage("system", "be brief"), ChatMessage("user", "who?")]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving(fake_chat("The ", "harbor ", "master 🦆.")) as server:
        yield server


@pytest.fixture
def client(server: FakeServer) -> Iterator[Client]:
    with Client(Server("MAIL_CHAT", server.url, KEY), lambda stopped, seconds: None) as client:
        yield client


def ask(client: Client, model: str = MODEL) -> Iterator[str]:
    return complete(client, ChatModel(model, "unused"), ASKED)


def test_answer_comes_in_pieces_and_few_fields_are_sent(client: Client, server: FakeServer) -> None:
    assert [*ask(client)] == ["The ", "harbor ", "master 🦆."]
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "who?"}]
    assert server.seen[0].body == {"model": MODEL, "messages": messages, "stream": True}


def test_halves_of_a_character_in_two_events_are_joined(client: Client, server: FakeServer) -> None:
    server.script = [Reply(pieces=stream(["One \ud83e", "\udd86 [1]", " \ud83e"]))]
    assert "".join(ask(client)) == "One 🦆 [1] \ufffd"


@pytest.mark.parametrize(
    "pieces",
    [
        [chunk("yes"), chunk(None, "stop")],  # no [DONE]
        [chunk("yes"), b"data: [DONE]\n\n"],  # no reason
        [chunk("yes"), b"data: [DONE]"],
        [chunk("yes", "stop"), b'data: {"choices": []}\n\n'],
        [b'data: {"choices": [{"delta": null}]}\n\n', chunk("yes", "stop")],
        [b'data: {"choices": [{"delta": {"reasoning": "hm"}}]}\n\n', chunk("yes", "stop")],
        [b": waiting\n\n"] * 50 + [chunk("yes", "stop")],
        [chunk("yes", "stop"), b"data: [DONE]\n\n", b"data: rubbish\n\n"],
        [chunk("<think>"), chunk("no?</think>"), chunk("\n\n"), chunk("yes", "stop")],
    ],
)
def test_streams_of_different_servers_are_understood(
    client: Client, server: FakeServer, pieces: list[bytes]
) -> None:
    server.script = [Reply(pieces=pieces)]
    assert [*ask(client)] == ["yes"]


HALF = [chunk("half "), chunk("an")]


@pytest.mark.parametrize(("reply", "says"), [
    (Reply(pieces=HALF, cut=1), "RemoteProtocolError"),
    (Reply(pieces=HALF), "the answer broke off"),
    (Reply(pieces=stream(["half ", "an"], "length")), "finish_reason is 'length'"),
    (Reply(pieces=stream(["half ", "an"], "content_filter")), "is 'content_filter'"),
    (Reply(pieces=[*HALF, b'data: {"error": {"message": "oom"}}\n\n']), "failed in mid-answer: "),
    (Reply(pieces=[*HALF, b'data: {"choi']), "failed in mid-answer: {"),
    (Reply(pieces=[*HALF, b"data: [1]\n\n"]), "failed in mid-answer: ["),
])  # fmt: skip
def test_incomplete_answer_is_an_error_after_its_text(
    client: Client, server: FakeServer, reply: Reply, says: str
) -> None:
    server.script = [reply]
    texts = ask(client)
    assert [next(texts), next(texts)] == ["half ", "an"]
    with pytest.raises(EndpointError, match=f"^{server.url}/chat/completions: ") as caught:
        next(texts)
    assert says in str(caught.value)
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "body", ['{"choices": [{"message": {"content": "yes"}}]}', "<html>\nSign in\n</html>", ""]
)
def test_server_without_streams_is_named(client: Client, server: FakeServer, body: str) -> None:
    server.script = [Reply(body)]
    with pytest.raises(EndpointError, match="is not a stream of events; check MAIL_CHAT_URL"):
        list(ask(client))


@pytest.mark.parametrize("choices", [[], [None], [{}], {}, None])
def test_reply_without_choice_is_refused(
    client: Client, server: FakeServer, choices: object
) -> None:
    server.script = [Reply({"choices": choices})]
    with pytest.raises(EndpointError, match="the answer has no choice: "):
        ask_model(client, ChatModel(MODEL, server.url), ASKED)


def test_key_is_in_no_error_of_a_stream(client: Client, server: FakeServer) -> None:
    server.script = [Reply(pieces=[f'data: {{"error": "bad key {KEY}"}}\n\n'.encode()])]
    with pytest.raises(EndpointError, match=r"bad key \*\*\*") as caught:
        list(ask(client))
    assert KEY not in str(caught.value)


CASES = [
    (b"data: one\n\ndata: two\n\n", ["one", "two"]),
    (b"data:one\r\n\r\ndata:  two\r\n\r\n", ["one", " two"]),
    (b"data: one\r\rdata: two\r\r", ["one", "two"]),
    (b"data: one\ndata: more\n\n", ["one\nmore"]),
    (b"data: one\r\ndata: more\r\n\r\n", ["one\nmore"]),
    (b": hello\n\ndata: one\n: still here\n\n:\n\n", ["one"]),
    (b"event: x\nid: 7\nretry: 10\ndata: one\nnonsense\n\n", ["one"]),
    (b"event: ping\n\ndata: one\n\n", ["one"]),
    (b"\n\n\ndata: one\n\n\n\n", ["one"]),
    (b"data\n\ndata: one\n\n", ["", "one"]),
    (b"\xef\xbb\xbfdata: one\n\n", ["one"]),
    ("data: 漢字 🦆 \u2028 x\n\n".encode(), ["漢字 🦆 \u2028 x"]),
    (b"data: one\n\ndata: no empty line", ["one", "no empty line"]),
    (b"data: \xff\n\n", ["\ufffd"]),
    (b"", []),
]


@pytest.mark.parametrize(("stream", "found"), CASES)
def test_events_are_those_of_the_standard_at_every_cut(stream: bytes, found: list[str]) -> None:
    assert [*parse_events([stream])] == found
    assert [*parse_events(stream[i : i + 1] for i in range(len(stream)))] == found
    for cut in range(len(stream)):
        assert [*parse_events([stream[:cut], stream[cut:]])] == found


@settings(max_examples=100)
@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8")), max_size=5))
def test_any_text_arrives_as_an_event(texts: list[str]) -> None:
    sent = b"".join(f"data: {text}\n\n".encode() for text in texts)
    assert [*parse_events(sent[i : i + 3] for i in range(0, len(sent), 3))] == texts


def test_event_is_given_as_soon_as_it_is_complete() -> None:
    given: list[str] = []

    def pieces() -> Iterator[bytes]:
        yield b"data: one\n\n"
        given.append("asked for more")
        yield b"data: two\n\n"

    stream = parse_events(pieces())
    assert next(stream) == "one"
    assert given == []


@pytest.mark.parametrize(("said", "answer"), [
    ("<think>Who asks [1]? <b>me</b></think>\n\nThe lease [2].", "The lease [2]."),
    ("\n<think>\n</think>INSUFFICIENT: no mail.", "INSUFFICIENT: no mail."),
    ("<think>a</think><think>b</think>", "<think>b</think>"),
    ("<think>without end", ""),
    ("<think>a</think>", ""),
    ("<think>a</think>  \n", ""),
    ("<thing> is a tag", "<thing> is a tag"),
    ("<thi", "<thi"),
    ("The tag <think>is</think> one", "The tag <think>is</think> one"),
    (" plain", " plain"),
    ("", ""),
])  # fmt: skip
def test_thoughts_at_the_beginning_are_left_out(said: str, answer: str) -> None:
    for size in range(1, len(said) + 2):
        pieces = [said[at : at + size] for at in range(0, len(said), size)]
        assert "".join(leave_out_thoughts(pieces)) == answer


def test_answer_without_thoughts_is_not_held_back() -> None:
    assert [*leave_out_thoughts(["The ", "lease"])] == ["The ", "lease"]
