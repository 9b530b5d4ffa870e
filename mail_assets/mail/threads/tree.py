"""Build the thread trees of a whole corpus from Message-ID, In-Reply-To and References (RFC 5322).

A thread is a connected set: every id that a message names belongs to the message's thread,
archived or not (an id without a message is a ghost). notmuch and public-inbox do the same.
The result depends on the set of messages alone, not on their order of arrival.
Everything is iterative: real chains are 100 deep and forged ones longer.

Parents follow JWZ (https://www.jwz.org/doc/threading.html) without its subject step.

A thread's id is the smallest of its ids. It changes when a late message joins two threads, and
when its own message vanishes from the archives. Aliases keep links to former ids alive:

* An id that is in a thread leads there. While messages only come, every id stays in a thread or
  stays named by a message, so the set of messages alone decides where ids lead.
* An id that has vanished leads to its former thread while that has a message left. If the thread
  fell apart, it leads to the part with the message that came first in it.
* It leads nowhere when the last message of that thread is gone.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple


class ThreadMessage(NamedTuple):
    """The fields of a message that threading needs. Ids have no angle brackets."""

    id: str
    references: tuple[str, ...]  # oldest first
    in_reply_to: tuple[str, ...]
    sent_at: float  # seconds since 1970, UTC
    arrived_at: float = 0.0  # seconds since 1970, UTC
    tie: str = ""  # order of copies that arrived in the same second


def choose_copies(messages: Iterable[ThreadMessage]) -> dict[str, ThreadMessage]:
    """Return one copy of each message, by id: the copy that arrived first.

    Anybody may send other mail under the same id, with any date and references. The rule is that of
    `first_copy` in sql/schema.sql; values without a tie are compared as a whole.
    """

    def rank(m: ThreadMessage) -> tuple[object, ...]:
        return m.arrived_at, m.tie, m.sent_at, -len(m.references), m.references, m.in_reply_to

    chosen: dict[str, ThreadMessage] = {}
    for m in messages:
        other = chosen.setdefault(m.id, m)
        if other is not m and rank(m) < rank(other):
            chosen[m.id] = m
    return chosen


class DisjointSets:
    """Union-find over ids with path halving: near-linear for any corpus."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def find(self, x: str) -> str:
        """Return the representative of the set of x; an unknown x is a set of its own."""
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
    """Unite each message with the ancestors that it names."""
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

    First every message takes the parent that it names itself: its latest reference that is not
    already below it. Then reference chains suggest a parent for the ids that have none. No link is
    ever replaced, so a disjoint set can keep the root of an id, and hanging a root x below y makes
    a cycle exactly when x is the root of y.
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
    """Return the ancestors named by a message, oldest first, without itself.

    A sane In-Reply-To (exactly one id) is the direct parent and goes last, as in notmuch. Of
    several ids the first counts, and only if there are no references.
    """
    chain = [x for x in dict.fromkeys(m.references) if x != m.id]
    direct = [x for x in m.in_reply_to if x != m.id]
    if direct and (len(direct) == 1 or not chain):
        if direct[0] in chain:
            chain.remove(direct[0])
        chain.append(direct[0])
    return chain


@dataclass(slots=True)
class ThreadNode:
    """One message of a thread, or a ghost with archived messages below it.

    A thread has several root_ids if reference chains disagree or a cycle was broken.
    """

    message_id: str
    thread_id: str  # the smallest id in the thread, ghosts included
    parent_id: str | None  # nearest archived ancestor
    parent_message_id: str | None  # direct parent, perhaps a ghost
    root_id: str  # topmost ancestor, perhaps a ghost
    depth: int  # number of archived ancestors
    position: int  # in pre-order, from 0
    is_ghost: bool


def build_trees(messages: Iterable[ThreadMessage]) -> list[ThreadNode]:
    """Thread the whole corpus; nodes come in (thread, position) order, oldest thread first.

    Of several messages with one id, `choose_copies` decides which counts.
    """
    archived = choose_copies(messages)
    in_order = sorted(archived.values(), key=lambda m: (m.sent_at, m.id))
    thread_of = unite_threads(in_order)
    parents = link_parents(in_order)
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
    nodes: list[ThreadNode] = []
    for thread_roots in threads.values():
        nodes += _thread(thread_roots, children, parents, ages, archived)
    return nodes


def _ages(
    roots: list[str], children: dict[str, list[str]], archived: dict[str, ThreadMessage]
) -> dict[str, float]:
    order: list[str] = []
    stack = list(roots)
    while stack:
        x = stack.pop()
        order.append(x)
        if x in children:
            stack.extend(children[x])
    # a ghost is as old as the oldest message below it; infinity without one
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
) -> list[ThreadNode]:
    nodes: list[ThreadNode] = []
    stack: list[tuple[str, str | None, str, int]] = [(r, None, r, 0) for r in reversed(roots)]
    while stack:
        x, near, root, depth = stack.pop()
        ghost = x not in archived
        nodes.append(ThreadNode(x, "", near, parents[x], root, depth, len(nodes), ghost))
        if not ghost:
            near, depth = x, depth + 1
        for child in reversed(children.get(x, ())):
            if ages[child] < math.inf:  # a ghost without archived messages below is left out
                stack.append((child, near, root, depth))
    thread_id = min(node.message_id for node in nodes)
    for node in nodes:
        node.thread_id = thread_id
    return nodes


class Alias(NamedTuple):
    """An id outside all threads leads to the thread of an archived message."""

    message_id: str
    named: bool  # a message of that thread names the id; else the id was there before


def find_aliases(
    messages: Iterable[ThreadMessage],
    nodes: Sequence[ThreadNode],
    old_nodes: Sequence[ThreadNode],
    old_aliases: Mapping[str, Alias],
) -> dict[str, Alias]:
    """Return the aliases of the threads `nodes`, which were built from `messages`.

    These threads replace `old_nodes`, in (thread, position) order, and `old_aliases`.
    """
    in_threads = {node.message_id for node in nodes}
    found: dict[str, Alias] = {}
    for m in choose_copies(messages).values():
        for x in named_ancestors(m):
            if x not in in_threads and (x not in found or m.id < found[x].message_id):
                found[x] = Alias(m.id, True)
    archived = {node.message_id for node in nodes if not node.is_ghost}
    first: dict[str, str] = {}
    for node in old_nodes:
        if node.message_id in archived:
            first.setdefault(node.thread_id, node.message_id)
    thread_of = {node.message_id: node.thread_id for node in old_nodes}
    for x in (*thread_of, *old_aliases):
        if x in in_threads or x in found:
            continue
        member = old_aliases[x].message_id if x in old_aliases else x
        heir = member if member in archived else first.get(thread_of.get(member, ""))
        if heir is not None:
            found[x] = Alias(heir, False)
    return found
