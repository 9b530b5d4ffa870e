"""Answers by a chat model: asked with the excerpts, its citations checked while it streams."""

from collections.abc import Generator
from dataclasses import dataclass

from mail_assets.answers.answer import cite
from mail_assets.answers.evidence import Evidence
from mail_assets.answers.maker import Written
from mail_assets.answers.prompt import build_prompt
from mail_assets.answers.references import ReferenceFilter, known_text
from mail_assets.answers.stream import AnswerStream
from mail_assets.openai.chat import ChatModel
from mail_assets.openai.client import Client
from mail_assets.openai.completion import complete


@dataclass(frozen=True)
class ChatMaker:
    """Has a chat model answer from the excerpts; without any it is not asked."""

    client: Client
    chat: ChatModel

    @property
    def name(self) -> str:
        """The model."""
        return self.chat.model

    @property
    def budget(self) -> int:
        """How many tokens of excerpts it reads."""
        return self.chat.budget

    def write(self, evidence: Evidence) -> Generator[str, None, Written]:
        """Yield what the model says, without citations of what it was not given.

        Raises:
            EndpointError: the server failed before the first word.
        """
        if not evidence.excerpts:
            return Written(sufficient=False)
        references = ReferenceFilter(known_text(evidence))
        stream = AnswerStream([excerpt.number for excerpt in evidence.excerpts])
        prompt = build_prompt(evidence.question, evidence.excerpts, evidence.history)
        said = complete(self.client, self.chat, prompt)
        yield from stream.read(references.filter(said))
        cited = {*stream.citations.cited}
        return Written(
            citations=tuple(cite(one) for one in evidence.excerpts if one.number in cited),
            sufficient=not stream.refused,
            fault=stream.fault,
            dropped=stream.citations.dropped + references.dropped,
        )
