"""A message as threading sees it, and the choice among copies of one message."""

from collections.abc import Iterable
from typing import NamedTuple


class ThreadMessage(NamedTuple):
    """What threading needs of a message. Ids are without angle brackets."""

    id: str
    references: tuple[str, ...]  # oldest first
    in_reply_to: tuple[str, ...]
    sent_at: float  # seconds since 1970, UTC


def choose_copies(messages: Iterable[ThreadMessage]) -> dict[str, ThreadMessage]:
    """Return the copy that counts of each message, by id.

    The earliest; of equally early ones that with the most references, then the smaller by value.
    """

    def rank(m: ThreadMessage) -> tuple[float, int, tuple[str, ...], tuple[str, ...]]:
        return m.sent_at, -len(m.references), m.references, m.in_reply_to

    chosen: dict[str, ThreadMessage] = {}
    for m in messages:
        other = chosen.setdefault(m.id, m)
        if other is not m and rank(m) < rank(other):
            chosen[m.id] = m
    return chosen
