"""Summaries by a chat model: within a budget, each sentence checked against what it cites."""

from collections.abc import Sequence
from dataclasses import dataclass

from mail_assets.openai.chat import (
    CHARACTERS_OF_TOKEN,
    ChatModel,
    Reply,
    ask_model,
    count_prompt_tokens,
)
from mail_assets.openai.client import Client, EndpointError
from mail_assets.summaries.chat_prompt import PROMPT_VERSION, build_prompt, choose_messages
from mail_assets.summaries.chat_reply import check_reply
from mail_assets.summaries.maker import NOTHING, MakerStoppedError, SummaryError, Usage
from mail_assets.summaries.message_text import MessageText
from mail_assets.summaries.summary import Summary, describe_thread

#: Failures of the server one after the other, behind which no more is asked.
MOST_FAILURES = 3
#: Tokens that a reply takes, about; what is left of the budget must suffice for it.
REPLY_TOKENS = 500


def chat_fingerprint(chat: ChatModel) -> str:
    """Identify everything that decides what a model is asked about the same messages."""
    return f"chat-{PROMPT_VERSION} {chat.model} {chat.budget}"


@dataclass
class ChatMaker:
    """Asks a chat model about one thread after the other; `budget` is how many tokens it may use.

    Each summary is paid for: it is written before the next is asked for.
    """

    client: Client
    chat: ChatModel
    budget: int
    usage: Usage = NOTHING
    failures: int = 0
    verbatim: bool = False
    portion: int = 0
    stateless: bool = False

    @property
    def fingerprint(self) -> str:
        """Identify everything that decides what is asked about the same messages."""
        return chat_fingerprint(self.chat)

    def summarize(self, messages: Sequence[MessageText]) -> Summary:
        """Return what the model says of a thread, as far as the messages support it.

        Raises:
            SummaryError: the model says nothing that is supported, or the server fails.
            MakerStoppedError: the budget is used, or the server has failed too often.
        """
        shown = choose_messages(messages)
        reply = self._ask(shown)
        if reply.reason != "stop":
            raise SummaryError(f"the reply is not whole: finish_reason is {reply.reason[:40]!r}")
        sentences, unsupported = check_reply(reply.text, shown)
        self.usage = self.usage.plus(unsupported=unsupported)
        if not sentences:
            raise SummaryError("the reply has no sentence that the messages it cites support")
        return describe_thread(messages, sentences)

    def _ask(self, shown: Sequence[MessageText]) -> Reply:
        prompt = build_prompt(shown, self.chat.budget * CHARACTERS_OF_TOKEN)
        used = self.usage.prompt_tokens + self.usage.completion_tokens
        if used + count_prompt_tokens(prompt) + REPLY_TOKENS > self.budget:
            raise MakerStoppedError(
                f"{used} of the {self.budget} tokens of MAIL_SUMMARY_TOKENS are used"
            )
        self.usage = self.usage.plus(requests=1)
        try:
            reply = ask_model(self.client, self.chat, prompt)
        except EndpointError as error:
            self.failures += not error.too_long
            if self.failures >= MOST_FAILURES:
                raise MakerStoppedError(f"failed {self.failures} times: {error}") from None
            raise SummaryError(str(error)) from None
        self.failures = 0
        self.usage = self.usage.plus(
            prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens
        )
        return reply
