"""Near-duplicates among hits: a patch that was sent again, a question posted twice."""

from collections.abc import Iterable
from dataclasses import replace

from mail_assets.mail.message.ids import base_subject
from mail_assets.search.response import Hit, NewerCopy

#: Share of words that the best chunks of two messages have in common to be one hit.
MIN_OVERLAP = 0.9
#: Hits that are folded into others. Whatever comes after them is a hit of its own, so that a page
#: of a corpus full of near-duplicates costs little more than another.
FOLDED = 100


class Folder:
    """Hits, best first, without near-duplicates of an earlier one, which names them in `copies`.

    The earlier one stays, though a maintainer reviews the newest: which that is depends on how many
    are read, and pages of any size have the same hits. So the newest is named beside it.

    Near-duplicates have the same sender, the same subject but for its marks (Re:, [PATCH v2]), and
    the same words in the chunk that matches best. `threads` has the threads of all that was added,
    each with the place of the hit that its first one is, or is folded into.
    """

    def __init__(self) -> None:
        self.hits: list[Hit] = []
        self.threads: dict[str, int] = {}
        self._added = 0
        self._alike: dict[tuple[str, str], list[tuple[int, set[str]]]] = {}

    def add(self, hits: Iterable[Hit]) -> None:
        """Add hits that come after those which were added before."""
        for hit in hits:
            self._added += 1
            words = {*hit.chunks[0].text.lower().split()} if hit.chunks else set()
            key = (hit.from_email, base_subject(hit.subject).lower())
            alike = self._alike.setdefault(key, [])
            place = next((at for at, known in alike if _overlap(words, known)), None)
            if place is None or self._added > FOLDED:
                place = len(self.hits)
                alike.append((place, words))
                self.hits.append(hit)
            else:
                self.hits[place] = _fold(self.hits[place], hit)
            self.threads.setdefault(hit.thread_id or hit.message_id, place)


def _fold(kept: Hit, hit: Hit) -> Hit:
    newest = kept.newer_copy
    if hit.sent_at > (newest or kept).sent_at:
        newest = NewerCopy(hit.message_id, hit.subject, hit.sent_at)
    return replace(kept, copies=(*kept.copies, hit.message_id), newer_copy=newest)


def _overlap(words: set[str], others: set[str]) -> bool:
    """Say whether two texts have nearly the same words; of none nothing is known."""
    fewer, more = sorted((len(words), len(others)))
    if not fewer or fewer < MIN_OVERLAP * more:
        return False
    both = len(words & others)
    return both >= MIN_OVERLAP * (fewer + more - both)
