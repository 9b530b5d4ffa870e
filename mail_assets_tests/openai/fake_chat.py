"""The chat completions of a strict loopback server, whole or in pieces, as OpenAI sends them."""

import json
from collections.abc import Sequence
from typing import Any

from mail_assets_tests.openai.fake_server import FakeServer, Json, Refusal, Reply

MODEL = "made-chat-mini"
#: What stands before and after the earlier questions and answers.
FIRST, EARLIER, LAST = "system", ("user", "assistant"), "user"


def chunk(content: str | None = None, reason: str | None = None) -> bytes:
    """One event of a stream."""
    delta = {} if content is None else {"content": content}
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    event = {"id": "chat-1", "object": "chat.completion.chunk", "choices": [choice]}
    return f"data: {json.dumps(event)}\n\n".encode()


def stream(texts: Sequence[str], reason: str | None = "stop", end: bytes = b"") -> list[bytes]:
    """A whole stream: a comment, a role, the texts, the reason, the usage, the end."""
    usage: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 5}}
    return [
        b": keep-alive\n\n",
        *(chunk(text) for text in ("", *texts)),
        chunk(None, reason),
        f"data: {json.dumps(usage)}\n\n".encode(),
        end or b"data: [DONE]\n\n",
    ]


def whole(text: str, reason: str = "stop") -> Reply:
    """A whole reply, as OpenAI sends it where no stream is asked for."""
    message = {"role": "assistant", "content": text, "refusal": None}
    return Reply(
        {
            "id": "chat-1",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }
    )


def fake_chat(*texts: str) -> FakeServer:
    """A server that answers every question with these texts."""

    def completions(body: Json) -> Reply:
        streams = "stream" in body
        if body.keys() - {"stream"} != {"model", "messages"} or (streams and not body["stream"]):
            raise Refusal(400, f"Unrecognized request: {sorted(body)}")
        if body["model"] != MODEL:
            raise Refusal(404, f"The model '{body['model']}' does not exist", "model_not_found")
        roles = tuple(message["role"] for message in body["messages"])
        alternate = (FIRST, *EARLIER * (len(roles) // 2 - 1), LAST)
        if roles != alternate or not all(message["content"] for message in body["messages"]):
            raise Refusal(400, f"messages must be {alternate}, found {roles}")
        if not streams:
            return whole("".join(texts))
        return Reply(pieces=stream(texts), headers=[("Content-Type", "text/event-stream")])

    return FakeServer({"/v1/chat/completions": completions})
