"""Ask a chat model: messages are sent, the answer comes as a stream of text.

https://platform.openai.com/docs/api-reference/chat-streaming, as served by OpenAI, Ollama, vLLM and
others. Only `model`, `messages` and `stream` are sent: the names of other fields differ.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from mail_assets.openai.characters import join_halves
from mail_assets.openai.chat import ChatModel
from mail_assets.openai.client import Client
from mail_assets.openai.sse import parse_events
from mail_assets.openai.thoughts import leave_out_thoughts

PATH = "chat/completions"
#: Seconds in all that somebody who waits for an answer waits for the server to take the question.
PATIENCE = 30.0


class ChatMessage(NamedTuple):
    """A message to a chat model; `role` is system, user or assistant."""

    role: str
    content: str


def complete(client: Client, chat: ChatModel, messages: Sequence[ChatMessage]) -> Iterator[str]:
    """Yield the answer's text as it comes.

    Raises:
        EndpointError: the server refuses, fails, breaks off, or ends the answer for any other
            reason than that it is complete. What came before it was yielded.
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
    """Return the first choice of an event, empty where there is none (a count of tokens)."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict) or event.get("error"):
        raise client.error(PATH, f"failed in mid-answer: {client.quote(data)}")
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    return choice if isinstance(choice, dict) else {}
