"""Build the thread trees of a whole corpus from Message-ID, In-Reply-To and References.

A thread is a connected set: every id that a message names belongs to the message's thread,
archived or not (an id without a message is a ghost). notmuch and public-inbox do the same;
the result depends on the set of messages alone, not on their order of arrival.
Everything is iterative: real chains are 100 deep and forged ones longer.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from mail_assets.mail.threads.links import link_parents, unite_threads
from mail_assets.mail.threads.message import ThreadMessage, choose_copies


@dataclass(slots=True)
class ThreadNode:
    """One message of a thread, or a ghost with archived messages below it.

    depth counts archived ancestors, so it is 0 where parent_id is None and one more than
    the depth of parent_id elsewhere. position numbers the thread in pre-order from 0.
    A thread has several root_ids where reference chains disagree or a cycle was broken.
    """

    message_id: str
    thread_id: str  # the smallest id in the thread, ghosts included
    parent_id: str | None  # nearest archived ancestor
    parent_message_id: str | None  # direct parent, perhaps a ghost
    root_id: str  # topmost ancestor, perhaps a ghost
    depth: int
    position: int
    is_ghost: bool


def build_trees(messages: Iterable[ThreadMessage]) -> list[ThreadNode]:
    """Thread the whole corpus; nodes come in (thread, position) order, oldest thread first.

    Of several messages with one id one counts (choose_copies), whatever their order.
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
) -> list[ThreadNode]:
    """Walk one thread in pre-order. Ghosts with nothing archived below them are left out."""
    nodes: list[ThreadNode] = []
    stack: list[tuple[str, str | None, str, int]] = [(r, None, r, 0) for r in reversed(roots)]
    while stack:
        x, near, root, depth = stack.pop()
        ghost = x not in archived
        nodes.append(ThreadNode(x, "", near, parents[x], root, depth, len(nodes), ghost))
        if not ghost:
            near, depth = x, depth + 1
        for child in reversed(children.get(x, ())):
            if ages[child] < math.inf:
                stack.append((child, near, root, depth))
    thread_id = min(node.message_id for node in nodes)
    for node in nodes:
        node.thread_id = thread_id
    return nodes
