"""Errors of an OpenAI-compatible server, and what its refusals say."""

import json
import re

#: A 429 that no waiting changes: https://platform.openai.com/docs/guides/error-codes
_OUT_OF_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota", re.IGNORECASE)
#: OpenAI and vLLM: "maximum context length is"; Ollama: "input length exceeds the context
#: length", which it may send as a 500; text-embeddings-inference: "must have less than 512 tokens".
_TOO_LONG = re.compile(
    r"context length|maximum input length|too many tokens|too long|less than \d+ tokens",
    re.IGNORECASE,
)


class EndpointError(RuntimeError):
    """A server refuses, fails, or sends no valid answer: names it, its words and the remedy.

    `too_long` says that it refuses an input for its length.
    """

    def __init__(self, message: str, too_long: bool = False) -> None:
        super().__init__(message)
        self.too_long = too_long


def is_too_long(message: str) -> bool:
    """Say whether a server refuses an input for its length."""
    return _TOO_LONG.search(message) is not None


def is_out_of_quota(text: str) -> bool:
    """Say whether a server refuses because a quota is used up, which no waiting changes."""
    return _OUT_OF_QUOTA.search(text) is not None


def error_message(text: str) -> str:
    """Return the message in the body of a refusal.

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
