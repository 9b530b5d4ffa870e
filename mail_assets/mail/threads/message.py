"""A message as threading sees it, and which of its copies counts."""

from collections.abc import Iterable
from typing import NamedTuple


class ThreadMessage(NamedTuple):
    """What threading needs of a message. Ids stand without angle brackets."""

    id: str
    references: tuple[str, ...]  # oldest first
    in_reply_to: tuple[str, ...]
    sent_at: float  # seconds since 1970, UTC


def choose_copies(messages: Iterable[ThreadMessage]) -> dict[str, ThreadMessage]:
    """Return the copy that counts of each message, by id; see `build`."""

    def rank(m: ThreadMessage) -> tuple[float, int, tuple[str, ...], tuple[str, ...]]:
        return m.sent_at, -len(m.references), m.references, m.in_reply_to

    chosen: dict[str, ThreadMessage] = {}
    for m in messages:
        other = chosen.setdefault(m.id, m)
        if other is not m and rank(m) < rank(other):
            chosen[m.id] = m
    return chosen
