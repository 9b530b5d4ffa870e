"""The fields of a message that threading needs, and the copy of a message that counts."""

from collections.abc import Iterable
from typing import NamedTuple


class ThreadMessage(NamedTuple):
    """The fields of a message that threading needs. Ids have no angle brackets."""

    id: str
    references: tuple[str, ...]  # oldest first
    in_reply_to: tuple[str, ...]
    sent_at: float  # seconds since 1970, UTC
    arrived_at: float = 0.0  # seconds since 1970, UTC
    tie: str = ""  # order of copies that arrived in the same second
    lists: tuple[str, ...] = ()
    topic: str = ""  # what answers without a found parent are joined by; "" joins nothing
    is_answer: bool = False  # by its subject, or because it quotes
    known_at: float | None = None  # arrived_at, or sent_at if only the first load is known
    text: int = 0  # number of its text among those that contest the id

    @property
    def order(self) -> tuple[float, float, str]:
        """Position among all messages: their arrival decides who was there first."""
        known_at = self.sent_at if self.known_at is None else self.known_at
        return known_at, self.sent_at, self.id


def choose_copies(messages: Iterable[ThreadMessage]) -> dict[str, ThreadMessage]:
    """Return one copy of each message, by id: the one that arrived first.

    Anybody may send other mail under the same id, with any date and references. The rule is that of
    `first_copy` in sql/schema.sql; values without a tie are compared as a whole. The copy gets the
    lists of all copies with its text.
    """

    def rank(m: ThreadMessage) -> tuple[object, ...]:
        others = (m.in_reply_to, m.lists, m.topic, m.is_answer, m.order)
        return m.arrived_at, m.tie, m.sent_at, -len(m.references), m.references, *others

    chosen: dict[str, ThreadMessage] = {}
    copies: dict[str, list[ThreadMessage]] = {}
    for m in messages:
        other = chosen.setdefault(m.id, m)
        if other is not m:
            copies.setdefault(m.id, [other]).append(m)
            if rank(m) < rank(other):
                chosen[m.id] = m
    for x, found in copies.items():
        first = chosen[x]
        lists = {name for m in found if m.text == first.text for name in m.lists}
        chosen[x] = first._replace(lists=tuple(sorted(lists)))
    return chosen


def named_ancestors(m: ThreadMessage) -> tuple[list[str], list[str]]:
    """Return the ancestors that a message names, oldest first, and the ids after its parent.

    A sane In-Reply-To (exactly one id) is the direct parent, as in notmuch. Of several ids the
    first counts, and only if there are no references. Where References has the parent, the ids
    before it are its ancestors, as written. Those after it are not: Proton adds ids of its own
    there, and some programs write the newest id first.
    """
    chain = [x for x in dict.fromkeys(m.references) if x != m.id]
    direct = [x for x in m.in_reply_to if x != m.id]
    if direct and (len(direct) == 1 or not chain):
        if direct[0] not in chain:
            return [*chain, direct[0]], []
        end = chain.index(direct[0]) + 1
        return chain[:end], chain[end:]
    return chain, []
