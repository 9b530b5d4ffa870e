"""Build the threads of the whole corpus from the references of all its messages.

Not by month: a reply often stands in a later month, or on another list, than its parent.
"""

import time

import psycopg

from mail_assets.mail.threads import build
from mail_assets.steps.outcome import Log, Outcome, rate
from mail_assets.store.partitions import (
    Counts,
    Partition,
    State,
    corpus_digest,
    locked,
    read_state,
    write_state,
)
from mail_assets.store.threads import read_references, replace_threads

CORPUS = Partition("threads", "*", "*")

#: Raise it when the same messages would come out in other threads.
VERSION = "1"


def build_threads(connection: psycopg.Connection, log: Log) -> Outcome:
    """Make the threads equal to what the stored messages say; write the difference only."""
    began = time.monotonic()
    with locked(connection, CORPUS):
        inputs = f"{VERSION} {corpus_digest(connection, 'messages')}"
        state = read_state(connection, CORPUS)
        if state and state.inputs == inputs:
            return Outcome({**state.counts, "written": 0, "deleted": 0}, state.digest, False)
        with connection.transaction():
            messages = [*read_references(connection)]
            log(f"threading {len(messages)} messages")
            nodes = build(messages)
            ghosts = sum(n.is_ghost for n in nodes)
            rebuilt = replace_threads(connection, nodes)
            seconds = time.monotonic() - began
            counts: Counts = {
                "messages": len(nodes) - ghosts,
                "threads": len({n.thread_id for n in nodes}),
                "ghosts": ghosts,
                "written": rebuilt.written,
                "deleted": rebuilt.deleted,
                "seconds": round(seconds, 3),
                "messages_per_second": rate(len(messages), seconds),
            }
            write_state(connection, CORPUS, State(inputs, rebuilt.digest, counts))
    return Outcome(counts, rebuilt.digest, bool(rebuilt.written or rebuilt.deleted))
