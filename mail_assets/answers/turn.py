"""An earlier question of a conversation, and what was answered."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Turn:
    """A question and its answer."""

    question: str
    answer: str
