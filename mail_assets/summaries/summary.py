"""The summary of a thread: sentences of its messages, each with the place where it stands."""

import datetime as dt
from dataclasses import dataclass
from typing import Literal

Part = Literal["question", "discussion", "outcome"]


@dataclass(frozen=True)
class Sentence:
    """A sentence, and the characters start to end of the body of the message that carry it.

    text is as it stands there, line ends included; a model's own sentence may rest on other
    messages also.
    """

    message_id: str
    start: int
    end: int
    text: str
    part: Part
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """What a thread is about, in sentences of its messages in the thread's order.

    "question" is what was asked or proposed, "outcome" what was decided; a thread that states no
    outcome has none. participants are in the order of their first message, patches the ids of
    messages that carry one. The dates are those of the earliest and the latest message.
    """

    sentences: tuple[Sentence, ...]
    participants: tuple[str, ...]
    first_at: dt.datetime
    last_at: dt.datetime
    patches: tuple[str, ...]
