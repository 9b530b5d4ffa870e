"""Make one month's part of the word index equal to its messages (see index_month.py)."""

import time
from collections.abc import Iterator, Sequence
from functools import partial

import psycopg

from mail_assets.indexes.month import MonthKeys, maintain_if_due, write_month
from mail_assets.indexes.words import MailWords
from mail_assets.month import ListMonth
from mail_assets.steps.outcome import Outcome, StepError, rate
from mail_assets.tables.indexes import (
    Manifest,
    make_first_live,
    mark_lost,
    read_manifest,
    record_index,
)
from mail_assets.tables.partitions import (
    Counts,
    Partition,
    State,
    digest_of,
    locked,
    locked_index,
    read_state,
    write_state,
)
from mail_assets.tables.words import read_words
from mail_assets.words.index import Document
from mail_assets.workspace import Workspace

ASSET = "words"

#: How often a lexeme of the subject counts. Its lexemes stand so often in a row, as a whole: a
#: phrase of the subject is found. Raise the VERSION of words/index.py with it.
SUBJECT_WEIGHT = 4


def write_words(workspace: Workspace, month: ListMonth, words: MailWords) -> Outcome:
    """Put what is new, delete what is stale; nothing when nothing has changed.

    Where messages are those that the month was made from, none is read: the manifest says what
    the index should have.

    Raises:
        StepError: messages was never materialized for this month. Nothing was written then.
    """
    began = time.monotonic()
    connection, partition, part = workspace.connection, Partition(ASSET, month), words.part(month)
    with locked(connection, partition):
        messages = read_state(connection, Partition("messages", month))
        if messages is None:
            raise StepError(f"{month}: no messages yet; materialize messages first")
        record_index(connection, words.url, words.record)
        with locked_index(connection, ASSET):
            words.index.ensure(before=lambda: mark_lost(connection, part.manifest))
        inputs = document_inputs(messages, part.manifest)
        state, manifest = read_state(connection, partition), read_manifest(connection, part)
        # a manifest that somebody has emptied says nothing
        if state and state.inputs == inputs and state.counts["documents"] == len(manifest):
            wanted = {key: entry.digest for key, entry in sorted(manifest.items())}
        else:
            wanted = {**words.read_digests(connection, month)}
        keys = MonthKeys(wanted, manifest, words.month_keys(month, manifest.keys()))
        changes = write_month(
            connection, part, keys, words.index, partial(make_documents, connection, month)
        )
        seconds = time.monotonic() - began
        counts: Counts = {
            "documents": len(wanted),
            **changes._asdict(),
            "seconds": round(seconds, 3),
            "documents_per_second": rate(changes.written, seconds),
        }
        digest = digest_of(part.manifest.index_name, *(f"{k} {d.hex()}" for k, d in wanted.items()))
        write_state(connection, partition, State(inputs, digest, counts), any(changes))
        if wanted:
            make_first_live(connection, words.url, words.name)
    if changes.written:
        maintain_if_due(workspace, words.index)
    return Outcome(counts, digest, any(changes))


def document_inputs(messages: State, manifest: Manifest) -> str:
    """Return what the documents of some messages are made from, and for which index."""
    return f"{messages.digest} {manifest.index_name}"


def make_documents(
    connection: psycopg.Connection, month: ListMonth, keys: Sequence[str]
) -> Iterator[Document]:
    """Yield the documents of some messages of a month, as they are now."""
    for key, words in read_words(connection, month, keys):
        lexemes = (*words.subject * SUBJECT_WEIGHT, *words.rest)
        yield Document(
            key,
            month,
            words.message_id,
            words.variant,
            words.sent_at,
            words.sender,
            tuple(words.flags),
            lexemes,
        )
