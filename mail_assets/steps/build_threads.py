"""Build the threads that changed messages touch, or all of them the first time.

Not by month: a reply is often in a later month, or on another list, than its parent. A
message ties together only what it names, so all other threads stay as they are: the work is
proportional to the threads that a month touches, and the result is that of building them all.
"""

import time

import psycopg

from mail_assets.mail.threads.aliases import find_aliases
from mail_assets.mail.threads.tree import build_trees
from mail_assets.steps.outcome import Outcome, rate
from mail_assets.steps.workspace import Log
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
    count_aliases,
    figures_after,
    read_references,
    read_threads,
    replace_threads,
    set_repeatable_read,
    take_changes,
    touched_threads,
)

#: Raise it when the same messages would come out in other threads.
VERSION = "2"


def build_threads(connection: psycopg.Connection, log: Log) -> Outcome:
    """Make the threads equal to what the stored messages say; write the difference only."""
    began = time.monotonic()
    with locked(connection, CORPUS), connection.transaction():
        set_repeatable_read(connection)
        state = read_state(connection, CORPUS)
        if state and state.inputs != VERSION:
            state = None
        changed = take_changes(connection)
        if state and not changed:
            return Outcome({**state.counts, "written": 0, "deleted": 0}, state.digest, False)
        old = read_threads(connection, touched_threads(connection, changed) if state else None)
        wanted = [*changed.union(node.message_id for node in old.nodes)] if state else None
        messages = [*read_references(connection, wanted)]
        log(f"threading {len(messages)} messages")
        nodes = build_trees(messages)
        new = Threads(nodes, find_aliases(messages, nodes, old.nodes, old.aliases))
        replaced = replace_threads(connection, old, new, state.digest if state else "")
        seconds = time.monotonic() - began
        known = (state.counts, old.nodes) if state else ({}, [])
        counts: Counts = {
            **figures_after(*known, new.nodes),
            "aliases": count_aliases(connection),
            "read": len(messages),
            "written": replaced.written,
            "deleted": replaced.deleted,
            "seconds": round(seconds, 3),
            "messages_per_second": rate(len(messages), seconds),
        }
        write_state(connection, CORPUS, State(VERSION, replaced.digest, counts))
    return Outcome(counts, replaced.digest, bool(replaced.written or replaced.deleted))
