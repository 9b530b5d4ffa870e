"""What a leg finds: a message, in one of its copies, with what speaks for it.

What does not live here: how it was found (semantic.py, fulltext.py), and how it is shown (page.py).
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from mail_assets.month import ListMonth


class Copy(NamedTuple):
    """One row of messages beside its id: a message can stand in several lists and months."""

    month: ListMonth
    variant: int


@dataclass(frozen=True)
class Candidate:
    """A message as one leg sees it, or as fusion does.

    `chunks` are the keys that the vector index named, nearest first, with their distances;
    `ranks` are the places in the legs, from 1; `thread_score` is what the best of its thread
    added to the score.
    """

    message_id: str
    copy: Copy
    thread_id: str | None
    score: float
    chunks: dict[str, float] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    thread_score: float = 0.0
