"""Server-sent events, cut at every byte."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.openai.chat import parse_events

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
def test_events_are_those_of_the_standard_wherever_the_bytes_are_cut(
    stream: bytes, found: list[str]
) -> None:
    assert [*parse_events([stream])] == found
    assert [*parse_events(stream[i : i + 1] for i in range(len(stream)))] == found
    for cut in range(len(stream)):
        assert [*parse_events([stream[:cut], stream[cut:]])] == found


@settings(max_examples=100)
@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8")), max_size=5))
def test_what_is_sent_arrives(texts: list[str]) -> None:
    sent = b"".join(f"data: {text}\n\n".encode() for text in texts)
    assert [*parse_events(sent[i : i + 3] for i in range(0, len(sent), 3))] == texts


def test_an_event_is_given_when_it_is_whole_and_not_later() -> None:
    given: list[str] = []

    def pieces() -> Iterator[bytes]:
        yield b"data: one\n\n"
        given.append("asked for more")
        yield b"data: two\n\n"

    stream = parse_events(pieces())
    assert next(stream) == "one"
    assert given == []
