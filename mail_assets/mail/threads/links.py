"""Unite ids into threads, and link each to its parent.

The parents follow JWZ (https://www.jwz.org/doc/threading.html) without its subject step.
"""

from collections.abc import Iterable
from itertools import pairwise

from mail_assets.mail.threads.message import ThreadMessage


class DisjointSets:
    """Union-find over ids, with path halving: near-linear whatever the shape of the corpus."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def find(self, x: str) -> str:
        """The representative of the set of x; an unknown x is a set of its own."""
        above = self._above
        up = above.setdefault(x, x)
        while up != x:
            above[x] = up = above[up]
            x, up = up, above[up]
        return x

    def put_under(self, root: str, new_root: str) -> None:
        """Unite the sets of two representatives; new_root represents both."""
        self._above[root] = new_root


def unite_threads(messages: Iterable[ThreadMessage]) -> DisjointSets:
    """Unite each message with the ancestors that it names, those that link_parents believes."""
    sets = DisjointSets()
    for m in messages:
        mine = sets.find(m.id)
        for x in named_ancestors(m):
            other = sets.find(x)
            if mine < other:
                sets.put_under(other, mine)
            elif other < mine:
                sets.put_under(mine, other)
                mine = other
    return sets


def link_parents(messages: Iterable[ThreadMessage]) -> dict[str, str | None]:
    """Map each id, ghosts included, to its direct parent; messages must come oldest first.

    First every message takes the parent that it names itself: its latest reference that
    is not below it already. Then reference chains guess a parent for the ids that have
    none. No link is ever replaced, so the root of an id can be kept in a disjoint set,
    and hanging a root x below y makes a cycle exactly when x is the root of y.
    """
    parents: dict[str, str | None] = {}
    trees = DisjointSets()
    chains: list[list[str]] = []
    for m in messages:
        chain = named_ancestors(m)
        parents[m.id] = None
        for x in reversed(chain):
            root = trees.find(x)
            if root != m.id:
                parents[m.id] = x
                trees.put_under(m.id, root)
                break
        if len(chain) > 1 or (chain and parents[m.id] is None):
            chains.append(chain)
    for chain in chains:
        for above, x in pairwise(chain):
            if parents.get(x) is None:
                root = trees.find(above)
                if root != x:
                    parents[x] = above
                    trees.put_under(x, root)
    for x in [p for p in parents.values() if p is not None]:
        parents.setdefault(x, None)
    return parents


def named_ancestors(m: ThreadMessage) -> list[str]:
    """Ancestors named by a message, oldest first, itself left out.

    A sane In-Reply-To (exactly one id) is the direct parent and goes last, as in notmuch;
    one with several ids counts only where there are no references, and then its first.
    """
    chain = [x for x in dict.fromkeys(m.references) if x != m.id]
    direct = [x for x in m.in_reply_to if x != m.id]
    if direct and (len(direct) == 1 or not chain):
        if direct[0] in chain:
            chain.remove(direct[0])
        chain.append(direct[0])
    return chain
