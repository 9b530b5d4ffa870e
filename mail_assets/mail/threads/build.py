"""Threads of a whole corpus from Message-ID, In-Reply-To and References.

A thread is a connected set: every id that a message names belongs to the message's thread,
archived or not (an id without a message is a ghost). notmuch and public-inbox do the same;
the result depends on the set of messages alone, not on their order of arrival. Inside a
thread the parents follow JWZ (https://www.jwz.org/doc/threading.html) without its subject
step. Everything is iterative: real chains are 100 deep and forged ones longer.
What does not live here: reading ids out of headers, and storing the result.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple


class ThreadMessage(NamedTuple):
    """What threading needs of a message. Ids stand without angle brackets."""

    id: str
    references: tuple[str, ...]  # oldest first
    in_reply_to: tuple[str, ...]
    sent_at: float  # seconds since 1970, UTC


@dataclass(slots=True)
class Node:
    """One message of a thread, or a ghost with archived messages below it.

    depth counts archived ancestors, so it is 0 where parent_id is None and one more than
    the depth of parent_id elsewhere. position numbers the thread in pre-order from 0.
    A thread has several root_ids where reference chains disagree or a cycle was broken.
    """

    message_id: str
    thread_id: str  # the smallest id that stands in the thread, ghosts included
    parent_id: str | None  # nearest archived ancestor
    parent_message_id: str | None  # direct parent, perhaps a ghost
    root_id: str  # topmost ancestor, perhaps a ghost
    depth: int
    position: int
    is_ghost: bool


class _Sets:
    """Disjoint sets of ids with path halving: near-linear whatever the shape of the corpus."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def find(self, x: str) -> str:
        above = self._above
        up = above.setdefault(x, x)
        while up != x:
            above[x] = up = above[up]
            x, up = up, above[up]
        return x

    def put_under(self, root: str, new_root: str) -> None:
        self._above[root] = new_root


def build(messages: Iterable[ThreadMessage]) -> list[Node]:
    """Thread the whole corpus; nodes come in (thread, position) order, oldest thread first.

    Of several messages with one id the earliest counts; of equally early ones that with
    the most references, then the smaller by value, so copies never make the order matter.
    """
    archived = canonical(messages)
    in_order = sorted(archived.values(), key=lambda m: (m.sent_at, m.id))
    thread_of = _unite(in_order)
    parents = _link(in_order)
    children: defaultdict[str, list[str]] = defaultdict(list)
    roots: list[str] = []
    for x, parent in parents.items():
        if parent is None:
            roots.append(x)
        else:
            children[parent].append(x)
    ages = _ages(roots, children, archived)
    threads: defaultdict[str, list[str]] = defaultdict(list)
    for root in sorted(roots, key=lambda x: (ages[x], x)):
        if ages[root] < math.inf:
            threads[thread_of.find(root)].append(root)
    for siblings in children.values():
        if len(siblings) > 1:
            siblings.sort(key=lambda x: (ages[x], x))
    nodes: list[Node] = []
    for thread_roots in threads.values():
        nodes += _thread(thread_roots, children, parents, ages, archived)
    return nodes


def canonical(messages: Iterable[ThreadMessage]) -> dict[str, ThreadMessage]:
    """Return the copy that counts of each message, by id; see `build`."""

    def rank(m: ThreadMessage) -> tuple[float, int, tuple[str, ...], tuple[str, ...]]:
        return m.sent_at, -len(m.references), m.references, m.in_reply_to

    chosen: dict[str, ThreadMessage] = {}
    for m in messages:
        other = chosen.setdefault(m.id, m)
        if other is not m and rank(m) < rank(other):
            chosen[m.id] = m
    return chosen


def _unite(messages: Iterable[ThreadMessage]) -> _Sets:
    """Unite each message with every id that it names."""
    sets = _Sets()
    for m in messages:
        mine = sets.find(m.id)
        for x in (*m.references, *m.in_reply_to):
            other = sets.find(x)
            if mine < other:
                sets.put_under(other, mine)
            elif other < mine:
                sets.put_under(mine, other)
                mine = other
    return sets


def _link(messages: Iterable[ThreadMessage]) -> dict[str, str | None]:
    """Map each id, ghosts included, to its direct parent; messages must come oldest first.

    First every message takes the parent that it names itself: its latest reference that
    is not below it already. Then reference chains guess a parent for the ids that have
    none. No link is ever replaced, so the root of an id can be kept in a disjoint set,
    and hanging a root x below y makes a cycle exactly when x is the root of y.
    """
    parents: dict[str, str | None] = {}
    trees = _Sets()
    chains: list[list[str]] = []
    for m in messages:
        chain = _chain(m)
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


def _chain(m: ThreadMessage) -> list[str]:
    """Ancestors named by a message, oldest first, itself left out.

    A sane In-Reply-To (exactly one id) is the direct parent and goes last, as in notmuch;
    one with several ids counts only where there are no references, and then its first.
    """
    chain = [x for x in dict.fromkeys(m.references) if x != m.id]
    direct = m.in_reply_to if len(m.in_reply_to) == 1 or not chain else ()
    if direct and direct[0] != m.id:
        if direct[0] in chain:
            chain.remove(direct[0])
        chain.append(direct[0])
    return chain


def _ages(
    roots: list[str], children: dict[str, list[str]], archived: dict[str, ThreadMessage]
) -> dict[str, float]:
    """When each id was sent; a ghost is as old as what hangs below it, infinity for nothing."""
    order: list[str] = []
    stack = list(roots)
    while stack:
        x = stack.pop()
        order.append(x)
        if x in children:
            stack.extend(children[x])
    ages: dict[str, float] = {}
    for x in reversed(order):
        message = archived.get(x)
        if message is not None:
            ages[x] = message.sent_at
        else:
            ages[x] = min((ages[c] for c in children.get(x, ())), default=math.inf)
    return ages


def _thread(
    roots: list[str],
    children: dict[str, list[str]],
    parents: dict[str, str | None],
    ages: dict[str, float],
    archived: dict[str, ThreadMessage],
) -> list[Node]:
    """Walk one thread in pre-order. Ghosts with nothing archived below them are left out."""
    nodes: list[Node] = []
    stack: list[tuple[str, str | None, str, int]] = [(r, None, r, 0) for r in reversed(roots)]
    while stack:
        x, near, root, depth = stack.pop()
        ghost = x not in archived
        nodes.append(Node(x, "", near, parents[x], root, depth, len(nodes), ghost))
        if not ghost:
            near, depth = x, depth + 1
        for child in reversed(children.get(x, ())):
            if ages[child] < math.inf:
                stack.append((child, near, root, depth))
    thread_id = min(node.message_id for node in nodes)
    for node in nodes:
        node.thread_id = thread_id
    return nodes
