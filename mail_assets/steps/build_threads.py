"""Build the threads that changed messages touch.

Threads have no months: a reply is often in a later month, or on another list, than its parent. A
message joins only the messages that it names, so all other threads stay as they are. The work is
proportional to the threads that a month touches, and the result is that of building them all.

The first time, and for another version, all messages count as changed. Changes are processed in
portions, each a transaction: memory is that of a portion, and a killed run's work stays.
"""

import time
from collections import Counter
from functools import partial
from typing import NamedTuple

import psycopg

from mail_assets.mail.threads.tree import build_trees, find_aliases
from mail_assets.postgres.database import retry_conflicts
from mail_assets.steps.outcome import Outcome, rate
from mail_assets.tables.partitions import (
    Counts,
    State,
    locked,
    read_state,
    write_state,
)
from mail_assets.tables.threads import (
    CORPUS,
    Threads,
    change_all,
    count_aliases,
    figures_after,
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
from mail_assets.workspace import Log

#: Raise it when the same messages would give other threads.
THREADS_VERSION = "4"

#: Changed messages of a portion, which take some 40 MB.
PORTION = 50_000


class _Portion(NamedTuple):
    """Some changed messages, the threads that they touch, and whether there are more."""

    changed: set[str]
    threads: list[str]
    more: bool


class _Run(NamedTuple):
    """Start of a run, and its work in the portions so far."""

    began: float
    work: Counter[str]
    outcome: Outcome | None


def are_threads_outdated(connection: psycopg.Connection) -> bool:
    """Return whether messages or the version have changed since the threads were built."""
    state = read_state(connection, CORPUS)
    return has_changes(connection) or (state is not None and state.inputs != THREADS_VERSION)


def build_threads(connection: psycopg.Connection, log: Log) -> Outcome:
    """Make the threads equal to what the stored messages say; write the difference only.

    The lock is held for one portion at a time, because hiding an id waits for it. A portion is
    built again if a load has meanwhile deleted a summary that it deletes too.
    """
    run = _Run(time.monotonic(), Counter(), None)
    while True:
        run, more = retry_conflicts(partial(_build_next, connection, run, log))
        if run.outcome and not more:
            return run.outcome


def _build_next(connection: psycopg.Connection, run: _Run, log: Log) -> tuple[_Run, bool]:
    with locked(connection, CORPUS), connection.transaction():
        set_repeatable_read(connection)
        state = _read_state(connection)
        portion = _take_portion(connection)
        if state and not portion.changed:
            unchanged: Counts = {**state.counts, "written": 0, "deleted": 0}
            nothing = Outcome(unchanged, state.digest, False)
            return run._replace(outcome=run.outcome or nothing), False
        known = state or State(THREADS_VERSION, *summarize_threads(connection))
        work = run.work.copy()
        built = _build_portion(connection, known, portion, work, log)
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
    return run._replace(work=work, outcome=outcome), portion.more


def _read_state(connection: psycopg.Connection) -> State | None:
    """Return what this version has built so far; if another did, note all messages as changed."""
    state = read_state(connection, CORPUS)
    if state and state.inputs == THREADS_VERSION:
        return state
    change_all(connection)
    return None


def _take_portion(connection: psycopg.Connection) -> _Portion:
    """Take changes, and all other changes of the threads that they touch.

    A thread is built from what all of its messages name now. If some of their changes were left for
    later, it could take in a message of a thread that is not in this portion.
    """
    taken = take_changes(connection, PORTION)
    changed, more = {*taken}, len(taken) == PORTION
    threads = touched_threads(connection, changed)
    while more and (others := take_changes_of(connection, threads) - changed):
        changed |= others
        threads = touched_threads(connection, changed)
    return _Portion(changed, threads, more)


def _build_portion(
    connection: psycopg.Connection, known: State, portion: _Portion, work: Counter[str], log: Log
) -> State:
    """Build some threads; return digest and figures of all threads, and add to `work`."""
    old = read_threads(connection, portion.threads)
    wanted = [*portion.changed.union(node.message_id for node in old.nodes)]
    messages = [*read_references(connection, wanted)]
    log(f"threading {len(messages)} messages")
    nodes = build_trees(messages)
    new = Threads(nodes, find_aliases(messages, nodes, old.nodes, old.aliases))
    replaced = replace_threads(connection, old, new, known.digest)
    work.update(read=len(messages), written=replaced.written, deleted=replaced.deleted)
    return State(THREADS_VERSION, replaced.digest, figures_after(known.counts, old, new))
