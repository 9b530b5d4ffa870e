"""The rows of threads: finding those that changed messages affect, and writing the difference.

mail/threads.py builds threads, steps/build_threads.py decides when, and reading/conversations.py
reads a thread for display.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import psycopg
from psycopg.rows import dict_row, tuple_row

from mail_assets.mail.threads import SPAN, Alias, ThreadMessage, ThreadNode
from mail_assets.postgres.statements import copy_rows, read_as, read_column, read_value, statement
from mail_assets.tables.partitions import (
    Counts,
    Partition,
    RowChanges,
    State,
    read_state,
    write_state,
)

#: Threads are not partitioned by month: they span all lists.
CORPUS = Partition("threads", None)

#: The digest of all rows is the sum of their digests modulo this number, so that a change of some
#: rows can be applied without reading the others.
_MODULUS = 1 << 128


class Threads(NamedTuple):
    """Some whole threads: their nodes in (thread, position) order, and their aliases."""

    nodes: list[ThreadNode]
    aliases: dict[str, Alias]


def set_repeatable_read(connection: psycopg.Connection) -> None:
    """Make every statement of a new transaction see the same rows."""
    connection.execute(statement("threads", "snapshot"))


def has_changes(connection: psycopg.Connection) -> bool:
    """Return whether a message has changed since threads were built."""
    return bool(read_value(connection, statement("threads", "has_changes")))


def take_changes(connection: psycopg.Connection, most: int) -> list[str]:
    """Take at most `most` ids of changed messages, in a transaction; ids may repeat."""
    return read_column(connection, statement("threads", "take_changes"), {"most": most})


def take_changes_of(connection: psycopg.Connection, thread_ids: Sequence[str]) -> set[str]:
    """Take the changed messages of some threads, in a transaction."""
    query = statement("threads", "take_changes_of")
    return {*read_column(connection, query, {"threads": [*thread_ids]})}


def change_all(connection: psycopg.Connection) -> None:
    """Note all messages as changed, also those that are gone but have nodes."""
    connection.execute(statement("threads", "change_all"))


def summarize_threads(connection: psycopg.Connection) -> tuple[str, Counts]:
    """Return the digest and the figures of all rows, inside a transaction."""
    total = 0
    with connection.cursor("nodes", row_factory=tuple_row) as cursor:
        cursor.itersize = 10_000
        for row in cursor.execute(statement("threads", "all_nodes")):
            total += _digest(ThreadNode(*row))
    with connection.cursor(row_factory=dict_row) as figures:
        counts = figures.execute(statement("threads", "figures")).fetchone()
    return f"{total % _MODULUS:032x}", dict(counts or {})


def touched_threads(connection: psycopg.Connection, changed: Collection[str]) -> list[str]:
    """Return the threads that changed messages may affect: by membership, reference or subject."""
    parameters = {"changed": [*changed], "span": SPAN}
    return read_column(connection, statement("threads", "touched"), parameters)


class Topic(NamedTuple):
    """A list, and a subject in the form used for comparison."""

    list_name: str
    topic: str


class Neighbours(NamedTuple):
    """The ids and topics by which other threads depend on some threads.

    ids: find the threads that one of these is in or leads to.
    named: find the threads with messages that refer to one of these.
    topics: topic -> span of time in seconds since 1970. Find the threads with messages of the topic
        in that span, which may be joined by subject.
    """

    ids: Collection[str]
    named: Collection[str]
    topics: Mapping[Topic, tuple[float, float]]


def find_neighbour_threads(connection: psycopg.Connection, wanted: Neighbours) -> set[str]:
    """Return the threads that match one of the neighbours."""
    found: set[str] = set()
    if wanted.ids:
        query = statement("threads", "holding")
        found.update(read_column(connection, query, {"ids": [*wanted.ids]}))
    if wanted.named:
        query = statement("threads", "naming")
        found.update(read_column(connection, query, {"ids": [*wanted.named]}))
    if wanted.topics:
        spans = wanted.topics.values()
        parameters = {
            "lists": [one.list_name for one in wanted.topics],
            "topics": [one.topic for one in wanted.topics],
            "firsts": [first for first, _ in spans],
            "lasts": [last for _, last in spans],
        }
        found.update(read_column(connection, statement("threads", "speaking"), parameters))
    return found


def find_standing(connection: psycopg.Connection, ids: Collection[str]) -> set[str]:
    """Return the ids among `ids` that are in a thread."""
    return {*read_column(connection, statement("threads", "standing"), {"ids": [*ids]})}


def read_threads(connection: psycopg.Connection, thread_ids: Sequence[str] | None) -> Threads:
    """Return some stored threads, or all."""
    query = statement("threads", "nodes")
    nodes = read_as(connection, ThreadNode, query, {"threads": thread_ids})
    members = None if thread_ids is None else [node.message_id for node in nodes]
    rows = connection.execute(statement("threads", "aliases"), {"message_ids": members}).fetchall()
    return Threads(nodes, {x: Alias(*rest) for x, *rest in rows})


def read_references(
    connection: psycopg.Connection, message_ids: Sequence[str] | None = None
) -> Iterator[ThreadMessage]:
    """Yield the references of each copy of some messages, or of all, in no order.

    Equal ids are one object. Each message names all its ancestors, so separate strings would take
    most of the memory for a million messages.
    """
    once: dict[str, str] = {}
    lists: dict[str, tuple[str, ...]] = {}
    with connection.transaction(), connection.cursor("references") as cursor:
        cursor.itersize = 10_000
        cursor.execute(statement("threads", "references"), {"message_ids": message_ids})
        for message_id, references, in_reply_to, sent, arrived, tie, name, topic, *rest in cursor:
            yield ThreadMessage(
                once.setdefault(message_id, message_id),
                tuple(once.setdefault(x, x) for x in references),
                tuple(once.setdefault(x, x) for x in in_reply_to),
                sent,
                arrived,
                tie,
                lists.setdefault(name, (name,)),
                once.setdefault(topic, topic),
                *rest,
            )


def replace_threads(
    connection: psycopg.Connection, old: Threads, new: Threads, digest: str
) -> RowChanges:
    """Write the difference between stored and newly built threads, in a transaction.

    `digest` is the digest of all rows before, or "" if `old` has all threads.
    """
    before = {node.message_id: node for node in old.nodes}
    after = {node.message_id: node for node in new.nodes}
    written = [node for x, node in after.items() if before.get(x) != node]
    deleted = [x for x in before if x not in after]
    _write_nodes(connection, written, deleted)
    _write_aliases(connection, old.aliases, new.aliases)
    if not digest:
        total = sum(map(_digest, new.nodes))
    else:
        gone = [before[x] for x in (*deleted, *(n.message_id for n in written)) if x in before]
        total = int(digest, 16) + sum(map(_digest, written)) - sum(map(_digest, gone))
    return RowChanges(len(written), len(deleted), f"{total % _MODULUS:032x}")


def discard_nodes(connection: psycopg.Connection, message_ids: Collection[str]) -> None:
    """Delete nodes between two builds, inside a transaction that holds the lock of `CORPUS`.

    The recorded digest and figures are updated, because the next build starts from them.
    """
    query = statement("threads", "threads_of")
    old = read_threads(connection, read_column(connection, query, {"ids": [*message_ids]}))
    left = old._replace(nodes=[n for n in old.nodes if n.message_id not in message_ids])
    state = read_state(connection, CORPUS)
    digest = replace_threads(connection, old, left, state.digest if state else "").digest
    if state:
        counts = {
            **state.counts,
            **figures_after(state.counts, old, left),
            "aliases": count_aliases(connection),
        }
        write_state(connection, CORPUS, State(state.inputs, digest, counts), rewritten=True)


def figures_after(counts: Counts, old: Threads, new: Threads) -> Counts:
    """Return the figures of all threads after some have changed from `old` to `new`."""
    before, after = _count(old), _count(new)
    return {name: counts.get(name, 0) - before[name] + after[name] for name in after}


def _count(threads: Threads) -> Counts:
    ghosts = sum(node.is_ghost for node in threads.nodes)
    return {
        "messages": len(threads.nodes) - ghosts,
        "threads": len({node.thread_id for node in threads.nodes}),
        "ghosts": ghosts,
    }


def count_aliases(connection: psycopg.Connection) -> int:
    """Return the number of ids that lead to a thread but are not in it."""
    return int(read_value(connection, statement("threads", "count_aliases")) or 0)


def _row(n: ThreadNode) -> tuple[object, ...]:
    return (
        *(n.message_id, n.thread_id, n.parent_id, n.parent_message_id),
        *(n.root_id, n.depth, n.position, n.is_ghost, n.by_subject),
    )


def _digest(node: ThreadNode) -> int:
    return int.from_bytes(hashlib.sha256(repr(_row(node)).encode()).digest()[:16], "big")


def _write_nodes(
    connection: psycopg.Connection, written: Sequence[ThreadNode], deleted: Sequence[str]
) -> None:
    if deleted:
        connection.execute(statement("threads", "delete"), {"ids": deleted})
    if not written:
        return
    connection.execute(statement("threads", "stage"))
    copy_rows(connection, statement("threads", "copy"), map(_row, written))
    connection.execute(statement("threads", "upsert"))


def _write_aliases(
    connection: psycopg.Connection, old: Mapping[str, Alias], new: Mapping[str, Alias]
) -> None:
    gone = [x for x in old if x not in new]
    if gone:
        connection.execute(statement("threads", "delete_aliases"), {"ids": gone})
    written = {x: alias for x, alias in new.items() if old.get(x) != alias}
    if written:
        connection.execute(
            statement("threads", "upsert_aliases"),
            {
                "ids": [*written],
                "message_ids": [alias.message_id for alias in written.values()],
                "named": [alias.named for alias in written.values()],
            },
        )
