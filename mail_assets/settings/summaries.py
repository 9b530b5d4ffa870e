"""MAIL_SUMMARIES and MAIL_SUMMARY_TOKENS: what makes the summaries of threads."""

from typing import NamedTuple

from mail_assets.openai.chat import ChatModel
from mail_assets.openai.variables import Environ, read_number
from mail_assets.settings.errors import SettingsError
from mail_assets.settings.variables import read_choice

EXTRACTIVE, CHAT = "extractive", "chat"

#: Tokens that a run may use: some 300 threads of six messages.
SUMMARY_TOKENS = 1_000_000


class SummarySettings(NamedTuple):
    """What makes summaries, and how many tokens of a chat model a run may use."""

    maker: str = EXTRACTIVE
    tokens: int = SUMMARY_TOKENS


#: Nothing is sent anywhere.
RULES = SummarySettings()


def read_summaries(env: Environ, chat: ChatModel | None) -> SummarySettings:
    """Return what makes summaries; mail is sent nowhere unless `chat` is asked for by name.

    Raises:
        SettingsError: a chat model is wanted, and none is set.
        VariableError: a number is wrong.
    """
    maker = read_choice(env, "MAIL_SUMMARIES", EXTRACTIVE, (EXTRACTIVE, CHAT))
    if maker == CHAT and chat is None:
        raise SettingsError("MAIL_SUMMARIES", maker, "needs MAIL_CHAT_URL and MAIL_CHAT_MODEL")
    tokens = read_number(env, "MAIL_SUMMARY_TOKENS", SUMMARY_TOKENS, 1_000, 999_999_999)
    return SummarySettings(maker, tokens)
