"""The summary of a thread: sentences of its messages, each with its place; and its input."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.segments import own_parts


@dataclass(frozen=True)
class MessageText:
    """An archived message of a thread; ghosts have no text and are left out.

    `parent_id` is the nearest archived ancestor. `segments` are spans in characters of `body`.
    `joined` by subject, or an answer to such a message: it may be a stranger's and states no
    outcome. `sender` is the address of the author.
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
        """Return the spans of quotes with an answer right below."""
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
    """A sentence, and its place: characters `start` to `end` of the body of a message.

    `text` is as it stands there, line ends included. A model's own sentence may also rest on other
    messages (`also`).
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
    """A sentence that states a decision or names an alternative, and its place, as in Sentence.

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

    "question" is what was asked or proposed, "outcome" what was decided, if the thread says so.
    `participants` are in the order of their first message, `patches` are ids of messages with a
    patch. The dates are those of the earliest and the latest message. `statements` are alternatives
    and decisions, these in the order of time.
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
    """Return a summary of sentences, with the people, dates and patches of the messages."""
    return Summary(
        tuple(sentences),
        tuple(dict.fromkeys(message.author for message in messages)),
        min(message.sent_at for message in messages),
        max(message.sent_at for message in messages),
        tuple(message.message_id for message in messages if message.has_patch),
        tuple(statements),
    )
