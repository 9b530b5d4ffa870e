"""Open what makes answers: the chat model of the settings, or sentences where there is none."""

import contextlib
from collections.abc import Iterator

from mail_assets.answers.chat_maker import ChatMaker
from mail_assets.answers.extractive_maker import ExtractiveMaker
from mail_assets.answers.maker import AnswerMaker
from mail_assets.openai.chat import ChatModel
from mail_assets.openai.client import Client, Server


@contextlib.contextmanager
def open_maker(chat: ChatModel | None, key: str) -> Iterator[AnswerMaker]:
    """Yield the maker of answers; several threads may use it at once."""
    if chat is None:
        yield ExtractiveMaker()
    else:
        with Client(Server("MAIL_CHAT", chat.url, key)) as client:
            yield ChatMaker(client, chat)
