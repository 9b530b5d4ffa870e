"""What an OpenAI-compatible server says when it refuses, and the errors that come of it.

What does not live here: when a request is tried again (client.py).
"""

import json
import re

#: A 429 that no waiting cures: https://platform.openai.com/docs/guides/error-codes
NO_MONEY = re.compile(r"insufficient_quota|exceeded your current quota", re.IGNORECASE)
#: OpenAI and vLLM: "maximum context length is"; Ollama: "input length exceeds the context
#: length", which it may send as a 500; text-embeddings-inference: "must have less than 512 tokens".
TOO_LONG = re.compile(
    r"context length|maximum input length|too many tokens|too long|less than \d+ tokens",
    re.IGNORECASE,
)


class EndpointError(RuntimeError):
    """A server that refuses, fails, or answers nonsense: names it, its words and the remedy.

    `too_long`: it refuses an input for its length.
    """

    def __init__(self, message: str, too_long: bool = False) -> None:
        super().__init__(message)
        self.too_long = too_long


class PassingError(EndpointError):
    """A failure worth another attempt, after `wait` seconds if the server names a time."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


def message_of(text: str) -> str:
    """Return what a server says of an error, in the body of its answer.

    {"error": {"message": ...}} (OpenAI), {"error": ...} (Ollama), {"message": ...} (vLLM),
    {"detail": ...} (Voyage), or whatever a proxy in between writes.
    """
    said: object = text
    try:
        found = json.loads(text)
        for name in ("error", "message", "detail"):
            if isinstance(found, dict) and found.get(name):
                said = found = found[name]
    except (ValueError, RecursionError):
        pass
    return str(said).strip()
