"""Types of summaries: their input (messages), their content (sentences), and their makers.

A maker's fingerprint is a version of everything that determines the summary of the same messages.
When it changes, threads are summarized again.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, Protocol

from mail_assets.errors import MailAssetsError
from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.segments import own_parts


@dataclass(frozen=True)
class MessageText:
    """An archived message of a thread; ghosts have no text and are left out.

    `parent_id` is the nearest archived ancestor. `segments` are spans in characters of `body`.
    `joined`: it joined the thread by subject, or answers such a message; it may belong to another
    matter, so it states no outcome. `sender` is the author's address.
    """

    message_id: str
    author: str
    sent_at: dt.datetime
    parent_id: str | None
    subject: str
    body: str
    segments: tuple[Segment, ...]
    patch_attached: bool = False
    joined: bool = False
    sender: str = ""

    @property
    def new_text(self) -> list[tuple[int, int]]:
        """Return the spans that the author wrote for this message."""
        own = own_parts(self.body, self.segments)
        return [(part.start, part.end) for part in own if part.kind == "text"]

    @property
    def answered_quotes(self) -> list[tuple[int, int]]:
        """Return the spans of quotes that are directly followed by an answer."""
        return [
            (part.start, part.end)
            for part, below in pairwise(self.segments)
            if part.kind == "quote" and below.kind == "text"
        ]

    @property
    def has_patch(self) -> bool:
        """Return whether the body has a diff, or a patch is attached."""
        return self.patch_attached or any(part.kind == "patch" for part in self.segments)


Part = Literal["question", "discussion", "outcome"]


@dataclass(frozen=True)
class Sentence:
    """A sentence, and its position: characters `start` to `end` of a message's body.

    `text` is the text there, including line ends, or a model's own sentence. Such a sentence may
    also be based on other messages (`also`).
    """

    message_id: str
    start: int
    end: int
    text: str
    part: Part
    also: tuple[str, ...] = ()


StatementPart = Literal["decision", "alternative"]


@dataclass(frozen=True)
class Statement:
    """A sentence that states a decision or an alternative, with its position as in Sentence.

    A decision has an `outcome`. One that is not `firm` counts only if its author is known to
    decide.
    """

    message_id: str
    start: int
    end: int
    text: str
    part: StatementPart
    outcome: str = ""
    firm: bool = True


@dataclass(frozen=True)
class Summary:
    """The content of a thread in sentences, in the thread's order.

    A "question" is a question or proposal, an "outcome" a decision that the thread states.
    `participants` are in the order of their first message. `patches` are ids of messages with a
    patch. The dates are those of the earliest and the latest message. `statements` are
    alternatives, then decisions in the order of time.
    """

    sentences: tuple[Sentence, ...]
    participants: tuple[str, ...]
    first_at: dt.datetime
    last_at: dt.datetime
    patches: tuple[str, ...]
    statements: tuple[Statement, ...] = ()


def describe_thread(
    messages: Sequence[MessageText],
    sentences: Iterable[Sentence],
    statements: Iterable[Statement] = (),
) -> Summary:
    """Return a summary with the people, dates and patches of the messages."""
    return Summary(
        tuple(sentences),
        tuple(dict.fromkeys(message.author for message in messages)),
        min(message.sent_at for message in messages),
        max(message.sent_at for message in messages),
        tuple(message.message_id for message in messages if message.has_patch),
        tuple(statements),
    )


# --- makers ---


class SummaryError(MailAssetsError):
    """One thread cannot be summarized; others may be."""


class MakerStoppedError(MailAssetsError):
    """A maker stops for this run: its server cannot be reached, or its budget is used up."""


class Usage(NamedTuple):
    """Usage of a maker: requests, and tokens as counted by the server.

    `unsupported` counts sentences of a model that their citations do not support.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unsupported: int = 0

    def plus(self, **more: int) -> "Usage":
        """Return the usage with some figures increased."""
        return self._replace(**{name: getattr(self, name) + count for name, count in more.items()})


NOTHING = Usage()


class Maker(Protocol):
    """Makes the summary of a thread."""

    @property
    def fingerprint(self) -> str:
        """Return a version of everything that determines the summary of the same messages."""

    @property
    def verbatim(self) -> bool:
        """Return whether all sentences are copied from messages."""

    @property
    def portion(self) -> int:
        """Return the number of characters of mail between two commits."""

    @property
    def stateless(self) -> bool:
        """Return whether it has no state between threads, so that each process may have a copy."""

    @property
    def usage(self) -> Usage:
        """Return the usage so far."""

    def summarize(self, messages: Sequence[MessageText]) -> Summary:
        """Return the summary of the archived messages of a thread, given in the thread's order.

        Raises:
            SummaryError: this thread cannot be summarized.
            MakerStoppedError: no thread can be summarized in this run.
        """
