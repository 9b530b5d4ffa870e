"""Ask a chat model and wait for its whole reply, with the tokens that it took.

https://platform.openai.com/docs/api-reference/chat/create, as served by OpenAI, Ollama, vLLM and
others. Only `model` and `messages` are sent: the names of other fields differ.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mail_assets.openai.characters import replace_halves
from mail_assets.openai.chat import ChatModel
from mail_assets.openai.client import Client
from mail_assets.openai.completion import PATH, PATIENCE, ChatMessage
from mail_assets.openai.thoughts import leave_out_thoughts

#: Characters of a token, about, where a server does not count.
CHARACTERS_OF_TOKEN = 4


class Reply(NamedTuple):
    """The text of a reply; it is whole where `reason` is "stop". Tokens are as the server counts
    them, else a quarter of the characters.
    """

    text: str
    reason: str
    prompt_tokens: int
    completion_tokens: int


def count_prompt_tokens(messages: Sequence[ChatMessage]) -> int:
    """Return about how many tokens messages have."""
    return sum(len(message.content) for message in messages) // CHARACTERS_OF_TOKEN


def ask_model(client: Client, chat: ChatModel, messages: Sequence[ChatMessage]) -> Reply:
    """Return the reply to messages.

    Raises:
        EndpointError: the server refuses, is not there for longer than `PATIENCE`, or sends none.
    """
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
