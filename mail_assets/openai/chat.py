"""Ask a chat model: messages are sent, the answer comes as a stream of text or as a whole reply.

https://platform.openai.com/docs/api-reference/chat, as served by OpenAI, Ollama, vLLM and others.
Only `model`, `messages` and `stream` are sent: the names of other fields differ.
"""

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mail_assets.openai.client import Client, join_halves, replace_halves

PATH = "chat/completions"
#: Seconds that a person waits for the server to accept the question, retries included.
PATIENCE = 30.0
#: Characters of a token, about, where a server does not count.
CHARACTERS_OF_TOKEN = 4

_LINE_END = re.compile(r"\r\n|\r|\n")
_BEGIN, _END = "<think>", "</think>"


@dataclass(frozen=True)
class ChatModel:
    """A chat model; a question may carry `budget` tokens of excerpts."""

    model: str
    url: str
    budget: int = 6_000


class ChatMessage(NamedTuple):
    """A message to a chat model; `role` is system, user or assistant."""

    role: str
    content: str


def complete(client: Client, chat: ChatModel, messages: Sequence[ChatMessage]) -> Iterator[str]:
    """Yield the answer's text as it comes.

    Raises:
        EndpointError: the server refuses, fails, breaks off, or ends the answer before it is
            complete. The text up to there was yielded.
    """
    body = {
        "model": chat.model,
        "messages": [message._asdict() for message in messages],
        "stream": True,
    }
    with client.stream(PATH, body, PATIENCE) as pieces:
        yield from leave_out_thoughts(join_halves(_texts(client, pieces)))


def _texts(client: Client, pieces: Iterable[bytes]) -> Iterator[str]:
    reason: object = None
    data: str | None = None
    for data in parse_events(pieces):
        if data.strip() == "[DONE]":
            reason = reason or "stop"
            break
        choice = _choice(client, data)
        delta = choice.get("delta")
        text = delta.get("content") if isinstance(delta, dict) else None
        if isinstance(text, str) and text:
            yield text
        reason = choice.get("finish_reason") or reason
    if data is None:
        raise client.error(PATH, "answers without a stream of events; check MAIL_CHAT_URL")
    if reason is None:
        raise client.error(PATH, "the answer broke off")
    if reason != "stop":
        said = client.quote(str(reason), 40)
        raise client.error(PATH, f"the answer is not whole: finish_reason is {said!r}")


def _choice(client: Client, data: str) -> dict[str, Any]:
    """Return the first choice of an event; an event that counts tokens has none."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict) or event.get("error"):
        raise client.error(PATH, f"failed in mid-answer: {client.quote(data)}")
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    return choice if isinstance(choice, dict) else {}


class Reply(NamedTuple):
    """A reply, complete where `reason` is "stop".

    Tokens are as the server counts them, else a quarter of the characters.
    """

    text: str
    reason: str
    prompt_tokens: int
    completion_tokens: int


def count_prompt_tokens(messages: Sequence[ChatMessage]) -> int:
    """Estimate the tokens of messages."""
    return sum(len(message.content) for message in messages) // CHARACTERS_OF_TOKEN


def ask_model(client: Client, chat: ChatModel, messages: Sequence[ChatMessage]) -> Reply:
    """Return the reply to messages."""
    body = {"model": chat.model, "messages": [message._asdict() for message in messages]}
    answer = client.post(PATH, body, PATIENCE)
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise client.error(PATH, f"answers without a choice: {client.quote(str(answer), 80)!r}")
    text = message.get("content")
    text = replace_halves(text) if isinstance(text, str) else ""
    given = answer.get("usage")
    usage: dict[str, Any] = given if isinstance(given, dict) else {}
    return Reply(
        "".join(leave_out_thoughts([text])),
        str(choice.get("finish_reason") or "stop"),
        _count(usage.get("prompt_tokens"), count_prompt_tokens(messages)),
        _count(usage.get("completion_tokens"), len(text) // CHARACTERS_OF_TOKEN),
    )


def _count(tokens: object, estimate: int) -> int:
    return tokens if isinstance(tokens, int) and tokens >= 0 else estimate


def leave_out_thoughts(texts: Iterable[str]) -> Iterator[str]:
    """Yield an answer without the thoughts before it; thoughts without an end give no answer.

    Servers that know the model send its thoughts apart, or not at all. Others send them at the
    beginning of the answer, between `<think>` and `</think>`, as models of DeepSeek and Qwen do.
    """
    pieces = iter(texts)
    head = ""
    for text in pieces:
        head += text
        begun = head.lstrip()
        if begun.startswith(_BEGIN):
            _, ended, answer = begun.partition(_END)
            if answer.strip():
                yield answer.lstrip()
                break
            # each piece is looked at once, however long the thoughts are
            head = _BEGIN + (_END if ended else begun[len(_BEGIN) :][-len(_END) :])
        elif not _BEGIN.startswith(begun):
            yield head
            break
    else:
        if head and not head.startswith(_BEGIN):
            yield head
    yield from pieces


def parse_events(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each server-sent event that has any; the bytes may be cut anywhere.

    https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
    Comments, which keep a connection alive, and fields other than `data` are skipped. An event that
    the end of the stream cuts off is given too, where the standard drops it: some servers leave out
    the last empty line, and an event that is really cut is no JSON.
    """
    data: list[str] = []
    for line in _lines(pieces):
        name, _, value = line.partition(":")
        if not line and data:
            yield "\n".join(data)
            data = []
        elif name == "data":
            data.append(value.removeprefix(" "))
    if data:
        yield "\n".join(data)


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest = ""
    for piece in pieces:
        rest += decoder.decode(piece)
        # a \r at the end may be the first half of a \r\n
        whole = len(rest) - rest.endswith("\r")
        *lines, tail = _LINE_END.split(rest[:whole])
        yield from lines
        rest = tail + rest[whole:]
    yield from _LINE_END.split(rest + decoder.decode(b"", final=True))
