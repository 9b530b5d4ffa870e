"""Settings of a chat model on a server."""

from dataclasses import dataclass

from mail_assets.openai.variables import Environ, VariableError, read_number, read_url


@dataclass(frozen=True)
class ChatModel:
    """A chat model; `budget` is how many tokens of excerpts a question may carry."""

    model: str
    url: str
    budget: int = 6_000


def read_chat(env: Environ) -> ChatModel | None:
    """Return the chat model of MAIL_CHAT_URL and MAIL_CHAT_MODEL, None where neither is set.

    There is no default server: mail is sent nowhere unasked.

    Raises:
        VariableError: one of the two is missing, or a variable is wrong.
    """
    budget = read_number(env, "MAIL_CHAT_BUDGET", 6_000, 1_000, 1_000_000)
    url, model = env.get("MAIL_CHAT_URL", ""), env.get("MAIL_CHAT_MODEL", "").strip()
    if not url and not model:
        return None
    if not url or not model:
        missing, other = ("URL", "MODEL") if model else ("MODEL", "URL")
        raise VariableError(f"MAIL_CHAT_{missing}", "", f"needed beside MAIL_CHAT_{other}")
    return ChatModel(model, read_url(env, "MAIL_CHAT_URL"), budget)
