"""What makes summaries of threads: rules, or a chat model on a server."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from pydantic import Field

from mail_assets.openai.chat import ChatModel
from mail_assets.openai.client import Client, Server
from mail_assets.summaries.chat_maker import ChatMaker, chat_fingerprint
from mail_assets.summaries.maker import ExtractiveMaker, Maker


class SummariesResource(dg.ConfigurableResource):
    """Opens the maker of summaries. The key of a server stays in the environment."""

    model: str = Field(default="", description="MAIL_CHAT_MODEL; empty where rules make summaries")
    url: str = Field(default="", description="MAIL_CHAT_URL")
    key: str = Field(default="", description="MAIL_CHAT_KEY")
    budget: int = Field(default=0, description="MAIL_CHAT_BUDGET: tokens of a thread that are sent")
    tokens: int = Field(default=0, description="MAIL_SUMMARY_TOKENS: tokens that a run may use")

    @property
    def fingerprint(self) -> str:
        """Identify everything that decides what is made of the same messages."""
        return chat_fingerprint(self._chat) if self.model else ExtractiveMaker().fingerprint

    @contextmanager
    def open(self) -> Iterator[Maker]:
        """Yield the maker of a run."""
        if not self.model:
            yield ExtractiveMaker()
            return
        with Client(Server("MAIL_CHAT", self.url, self.key)) as client:
            yield ChatMaker(client, self._chat, self.tokens)

    @property
    def _chat(self) -> ChatModel:
        return ChatModel(self.model, self.url, self.budget)
