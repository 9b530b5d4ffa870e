"""Build the threads that changed messages touch.

Threads have no months: a reply is often in a later month than its parent, or on another list. A
message joins only messages that it names or that have the same topic, so all other threads stay as
they are. The work is proportional to the threads that a month touches. The result is the same as
if all threads were built.

In the first run, and after a change of the version, all messages count as changed. Changes are
processed in portions, one transaction each. Memory holds one portion, and a killed run keeps the
portions that it committed.
"""

import time
from collections import Counter
from functools import partial
from typing import NamedTuple

import psycopg

from mail_assets.mail.threads import SPAN, ThreadMessage, build_trees, choose_copies, find_aliases
from mail_assets.postgres.database import retry_conflicts
from mail_assets.tables.partitions import (
    Counts,
    State,
    locked,
    read_state,
    write_state,
)
from mail_assets.tables.threads import (
    CORPUS,
    Neighbours,
    Threads,
    Topic,
    change_all,
    count_aliases,
    figures_after,
    find_neighbour_threads,
    find_standing,
    has_changes,
    read_references,
    read_threads,
    replace_threads,
    set_repeatable_read,
    summarize_threads,
    take_changes,
    take_changes_of,
    touched_threads,
)
from mail_assets.workspace import Log, Outcome, rate

#: Raise it when the same messages would give other threads.
THREADS_VERSION = "7"

#: Changed messages per portion; a portion takes some 40 MB.
PORTION = 50_000


class _Portion(NamedTuple):
    """Some changed messages, and the threads that they touch, before and after.

    `more`: further changes are left. `messages` are all copies of all messages of these threads.
    """

    changed: set[str]
    more: bool
    old: Threads
    messages: list[ThreadMessage]
    new: Threads


class _Run(NamedTuple):
    """Start of a run, and its work in the portions so far.

    `rebuild`: the stored threads and their record are not trusted. The first portion notes all
    messages as changed and clears it.
    """

    began: float
    work: Counter[str]
    outcome: Outcome | None
    rebuild: bool


def are_threads_outdated(connection: psycopg.Connection) -> bool:
    """Return whether messages or the version have changed since the threads were built."""
    state = read_state(connection, CORPUS)
    return has_changes(connection) or (state is not None and state.inputs != THREADS_VERSION)


def build_threads(connection: psycopg.Connection, log: Log, *, rebuild: bool = False) -> Outcome:
    """Bring the threads up to date with the stored messages; write only differences.

    With `rebuild` all threads are built and compared, as after a change of the version.

    The lock is held for one portion at a time, because hiding an id waits for it. A portion is
    retried if a concurrent load deletes a summary that the portion deletes too.
    """
    run = _Run(time.monotonic(), Counter(), None, rebuild)
    while True:
        run, more = retry_conflicts(partial(_build_next, connection, run, log))
        if run.outcome and not more:
            return run.outcome


def _build_next(connection: psycopg.Connection, run: _Run, log: Log) -> tuple[_Run, bool]:
    with locked(connection, CORPUS), connection.transaction():
        set_repeatable_read(connection)
        state = None if run.rebuild else _read_state(connection)
        if state is None:
            change_all(connection)
        portion = _take_portion(connection)
        if state and not portion.changed:
            unchanged: Counts = {**state.counts, "written": 0, "deleted": 0}
            nothing = Outcome(unchanged, state.digest, False)
            return run._replace(outcome=run.outcome or nothing), False
        known = state or State(THREADS_VERSION, *summarize_threads(connection))
        work = run.work.copy()
        built = _write_portion(connection, known, portion, work, log)
        seconds = time.monotonic() - run.began
        counts: Counts = {
            **built.counts,
            "aliases": count_aliases(connection),
            **work,
            "seconds": round(seconds, 3),
            "messages_per_second": rate(work["read"], seconds),
        }
        # aliases may change without any row of threads
        write_state(connection, CORPUS, built._replace(counts=counts), rewritten=True)
    outcome = Outcome(counts, built.digest, bool(work["written"] or work["deleted"]))
    return run._replace(work=work, outcome=outcome, rebuild=False), portion.more


def _read_state(connection: psycopg.Connection) -> State | None:
    """Return the state that this version has built, None if another version built it."""
    state = read_state(connection, CORPUS)
    return state if state and state.inputs == THREADS_VERSION else None


def _take_portion(connection: psycopg.Connection) -> _Portion:
    """Take changes, and everything that is needed to build the threads that they touch.

    A thread is built from the ids that all of its messages name now. So the changes of all of them
    are taken: otherwise a thread could take in a message of a thread outside this portion. The
    threads on which it depends are built too.
    """
    taken = take_changes(connection, PORTION)
    changed, more = {*taken}, len(taken) == PORTION
    threads = {*touched_threads(connection, changed)}
    portion = _Portion(changed, more, Threads([], {}), [], Threads([], {}))
    read: set[str] = set()
    while True:
        while more and (others := take_changes_of(connection, [*threads]) - changed):
            changed |= others
            threads.update(touched_threads(connection, others))
        known = {m.id for m in portion.messages}
        old = read_threads(connection, [*threads - read])
        portion.old.nodes.extend(old.nodes)
        portion.old.aliases.update(old.aliases)
        wanted = changed.union(node.message_id for node in old.nodes) - known
        portion.messages.extend(read_references(connection, [*wanted]))
        read |= threads
        portion = portion._replace(new=_build(portion))
        threads |= find_neighbour_threads(connection, _find_neighbours(portion))
        if threads == read:
            return portion


def _build(portion: _Portion) -> Threads:
    nodes = build_trees(portion.messages)
    aliases = find_aliases(portion.messages, nodes, portion.old.nodes, portion.old.aliases)
    return Threads(nodes, aliases)


def _find_neighbours(portion: _Portion) -> Neighbours:
    """Return the ids and topics by which built threads may depend on others; see mail/threads.py.

    An id that none of their messages has may be in another thread. Messages of other threads may
    name a ghost that has one message, or an id whose alias changed. An answer whose parent was not
    found joins a thread by subject.
    """
    old, new = portion.old, portion.new
    chosen = choose_copies(portion.messages)
    threads = {node.message_id: node.thread_id for node in new.nodes if node.is_ghost}
    threads |= {x: node.thread_id for node in new.nodes for x in node.left_out}
    sizes = Counter(node.thread_id for node in new.nodes if not node.is_ghost)
    led = {x: alias for x, alias in new.aliases.items() if alias.named}
    named = {x for x, alias in old.aliases.items() if alias.named and led.get(x) != alias}
    named |= {x for x, alias in led.items() if old.aliases.get(x) != alias}
    named |= {x for x, thread_id in threads.items() if sizes[thread_id] == 1}
    named |= {node.message_id for node in old.nodes} - {node.message_id for node in new.nodes}
    topics: dict[Topic, tuple[float, float]] = {}
    for node in new.nodes:
        m = chosen.get(node.message_id)
        if m and m.is_answer and m.topic and (node.by_subject or node.parent_id is None):
            for name in m.lists:
                topic = Topic(name, m.topic)
                first, last = topics.get(topic, (m.sent_at, m.sent_at))
                topics[topic] = min(first, m.sent_at - SPAN), max(last, m.sent_at)
    return Neighbours(threads.keys(), named, topics)


def _write_portion(
    connection: psycopg.Connection, known: State, portion: _Portion, work: Counter[str], log: Log
) -> State:
    """Write the threads of a portion; add to `work`; return digest and figures of all threads."""
    log(f"threading {len(portion.messages)} messages")
    old, new = portion.old, portion.new
    was_there = {node.message_id for node in old.nodes}
    for x in find_standing(connection, new.aliases.keys() - was_there):
        del new.aliases[x]  # the message is in a thread outside this portion
    replaced = replace_threads(connection, old, new, known.digest)
    work.update(read=len(portion.messages), written=replaced.written, deleted=replaced.deleted)
    return State(THREADS_VERSION, replaced.digest, figures_after(known.counts, old, new))
