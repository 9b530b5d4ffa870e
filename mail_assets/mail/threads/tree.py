"""Build the thread trees of a whole corpus from Message-ID, In-Reply-To and References (RFC 5322).

A thread is a tree of messages and ghosts, which are ids that messages name and no archive has.
links.py decides who is below whom. The result depends on the set of messages alone, not on their
order of arrival. Everything is iterative: real chains are 100 deep and forged ones longer.

A thread's id is the smallest of its ids. It changes when a late message joins two threads, and
when its own message vanishes from the archives. Aliases keep links to former ids alive:

* An id that is in a thread leads there.
* Another id that messages name leads to the thread of that with the smallest id. While messages
  only come, the set of messages alone decides where ids lead.
* An id that has vanished leads to its former thread while that has a message left. If the thread
  fell apart, it leads to the part with the message that came first in it.
* It leads nowhere when the last message of that thread is gone.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from mail_assets.mail.threads.links import link_messages
from mail_assets.mail.threads.message import ThreadMessage, choose_copies, named_ancestors


@dataclass(slots=True)
class ThreadNode:
    """One message of a thread, or a ghost with archived messages below it."""

    message_id: str
    thread_id: str  # the smallest id in the thread, ghosts included
    parent_id: str | None  # nearest archived ancestor
    parent_message_id: str | None  # direct parent, perhaps a ghost
    root_id: str  # topmost ancestor, perhaps a ghost
    depth: int  # number of archived ancestors
    position: int  # in pre-order, from 0
    is_ghost: bool
    by_subject: bool  # parent_id was found by subject


def build_trees(messages: Iterable[ThreadMessage]) -> list[ThreadNode]:
    """Thread the whole corpus; nodes come in (thread, position) order, oldest thread first.

    Of several messages with one id, `choose_copies` decides which counts.
    """
    archived = choose_copies(messages)
    parents, joined = link_messages(sorted(archived.values(), key=lambda m: m.order))
    children: defaultdict[str, list[str]] = defaultdict(list)
    roots: list[str] = []
    for x, parent in parents.items():
        if parent is None:
            roots.append(x)
        else:
            children[parent].append(x)
    ages = _ages(roots, children, archived)
    for siblings in children.values():
        if len(siblings) > 1:
            siblings.sort(key=lambda x: (ages[x], x))
    nodes: list[ThreadNode] = []
    for root in sorted(roots, key=lambda x: (ages[x], x)):
        if ages[root] < math.inf:
            nodes += _thread(root, children, parents, ages, archived, joined)
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
    root: str,
    children: dict[str, list[str]],
    parents: dict[str, str | None],
    ages: dict[str, float],
    archived: dict[str, ThreadMessage],
    joined: set[str],
) -> list[ThreadNode]:
    nodes: list[ThreadNode] = []
    stack: list[tuple[str, str | None, int, bool]] = [(root, None, 0, False)]
    while stack:
        x, near, depth, by_subject = stack.pop()
        ghost = x not in archived
        by_subject |= x in joined
        nodes.append(
            ThreadNode(x, "", near, parents[x], root, depth, len(nodes), ghost, by_subject)
        )
        if not ghost:
            near, depth, by_subject = x, depth + 1, False
        for child in reversed(children.get(x, ())):
            if ages[child] < math.inf:  # a ghost without archived messages below is left out
                stack.append((child, near, depth, by_subject))
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
        for x in chain(*named_ancestors(m)):
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
