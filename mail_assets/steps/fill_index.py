"""Fill one month of an index: the word index from messages, the vector index from embeddings."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import psycopg

from mail_assets.indexes.mail_index import MailIndex
from mail_assets.indexes.month import compare_month, find_altered, maintain_if_due, write_month
from mail_assets.indexes.vectors import MailVectors, vector_metadata
from mail_assets.indexes.words import MailWords, read_words
from mail_assets.month import ListMonth
from mail_assets.store.embeddings import file_key, read_embeddings
from mail_assets.tables.chunks import read_facts
from mail_assets.tables.indexes import Manifest, make_first_live, record_index
from mail_assets.tables.partitions import (
    Counts,
    Partition,
    State,
    digest_of,
    locked,
    read_state,
    write_state,
)
from mail_assets.vectors.index import Vector
from mail_assets.words.index import Document
from mail_assets.workspace import Outcome, StepError, Workspace, rate, read_made

#: Returns the entries of some keys of a month.
Make = Callable[[Sequence[str]], Iterable[Any]]


def fill_month(
    workspace: Workspace,
    month: ListMonth,
    mail_index: MailIndex[Any],
    inputs: str,
    make: Make,
    *,
    rebuild: bool = False,
) -> Outcome:
    """Bring a month's entries of an index up to date; the caller holds the partition's lock.

    `inputs` is the version of the data from which entries are made. The first index at a URL that
    has an entry becomes live. With `rebuild` every entry is compared with one made now.
    """
    began = time.monotonic()
    connection, partition = workspace.connection, Partition(mail_index.table, month)
    record_index(connection, mail_index.url, mail_index.record)
    mail_index.ensure(connection)
    state = read_state(connection, partition)
    is_made = state is not None and state.inputs == inputs and not rebuild
    made = int(state.counts[mail_index.total]) if state and is_made else None
    keys = compare_month(connection, mail_index, month, made)
    if rebuild:
        keys = find_altered(mail_index, month, keys, make)
        if keys.absent:  # the index may have entries of these keys under another list or month
            mail_index.index.delete(keys.absent)
    changes = write_month(connection, mail_index, month, keys, make)
    seconds = time.monotonic() - began
    counts: Counts = {
        mail_index.total: len(keys.wanted),
        **changes._asdict(),
        "seconds": round(seconds, 3),
        f"{mail_index.entries}_per_second": rate(changes.written, seconds),
    }
    entries = (f"{key} {digest.hex()}" for key, digest in keys.wanted.items())
    digest = digest_of(mail_index.manifest.index_name, *entries)
    write_state(connection, partition, State(inputs, digest, counts), any(changes))
    if keys.wanted:
        make_first_live(connection, mail_index.url, mail_index.name)
    return Outcome(counts, digest, any(changes))


#: Weight of a lexeme in the subject. The whole subject is repeated this many times, so that
#: phrases of it are found. When this changes, raise the version in words/index.py.
SUBJECT_WEIGHT = 4


def write_words(
    workspace: Workspace, month: ListMonth, mail_words: MailWords, *, rebuild: bool = False
) -> Outcome:
    """Bring a month of the word index up to date with its messages; write only differences.

    With `rebuild` every entry is compared with one made now, and written if it differs.

    Raises:
        StepError: messages was never materialized for this month. Nothing was written then.
    """
    connection = workspace.connection
    with locked(connection, Partition(mail_words.table, month)):
        messages = read_made(connection, "messages", month)
        inputs = word_inputs(messages, mail_words.manifest)
        make = partial(make_documents, connection, month)
        outcome = fill_month(workspace, month, mail_words, inputs, make, rebuild=rebuild)
    if outcome.counts["written"]:
        maintain_if_due(workspace, mail_words.index)
    return outcome


def word_inputs(messages: State, manifest: Manifest) -> str:
    """Return the version of the inputs of a month of the word index."""
    return f"{messages.digest} {manifest.index_name}"


def make_documents(
    connection: psycopg.Connection, month: ListMonth, keys: Sequence[str]
) -> Iterator[Document]:
    """Yield the documents of some messages of a month, made from the stored rows."""
    for key, words in read_words(connection, month, keys):
        lexemes = (*words.subject * SUBJECT_WEIGHT, *words.text, *words.further)
        yield Document(
            key,
            month,
            words.message_id,
            words.variant,
            words.sent_at,
            words.sender,
            tuple(words.flags),
            lexemes,
            tuple(words.written),
        )


def write_vectors(
    workspace: Workspace, month: ListMonth, mail_vectors: MailVectors, *, rebuild: bool = False
) -> Outcome:
    """Bring a month of the vector index up to date with its embeddings; write only differences.

    With `rebuild` every entry is compared with one made now, and written if it differs.

    Raises:
        StepError: embeddings was never materialized for this month with this encoder, lacks a
            text of its chunks, or has vectors of another dimension. Nothing was written then.
    """
    connection, encoder = workspace.connection, mail_vectors.fingerprint
    with locked(connection, Partition(mail_vectors.table, month)):
        embeddings = read_state(connection, Partition("embeddings", month))
        messages = read_state(connection, Partition("messages", month))
        if messages is None or embeddings is None or not embeddings.inputs.endswith(encoder):
            raise StepError(
                f"{month}: no embeddings of encoder {encoder} yet; materialize embeddings first"
            )
        inputs = vector_inputs(messages, embeddings, mail_vectors.manifest)
        make = partial(make_vectors, workspace, month, mail_vectors)
        outcome = fill_month(workspace, month, mail_vectors, inputs, make, rebuild=rebuild)
    if written := outcome.counts["written"]:
        workspace.log(f"{month}: {written} vectors written")
        maintain_if_due(workspace, mail_vectors.index)
    return outcome


def vector_inputs(messages: State, embeddings: State, manifest: Manifest) -> str:
    """Return the version of the inputs of a month of the vector index.

    Messages are inputs too: an entry has sender, date and subject, which are not in its text.
    """
    return f"{messages.digest} {embeddings.digest} {manifest.index_name}"


def make_vectors(
    workspace: Workspace, month: ListMonth, mail_vectors: MailVectors, keys: Sequence[str]
) -> Iterator[Vector]:
    """Return the vectors of some chunks.

    Raises:
        StepError: a text has no vector, or one of another dimension. Nothing was written then.
    """
    if not keys:
        return iter(())
    encoder, dimension = mail_vectors.fingerprint, mail_vectors.index.spec.dimension
    chosen = {*keys}
    facts = [fact for fact in read_facts(workspace.connection, month) if fact.key in chosen]
    wanted, key = {fact.text_hash for fact in facts}, file_key(month, encoder)
    values = read_embeddings(workspace.store, key, wanted)
    if missing := wanted - values.keys():
        raise StepError(
            f"{month}: the embeddings file lacks {len(missing)} of {len(wanted)} texts; "
            "materialize embeddings for this month again"
        )
    if other := {vector.size for vector in values.values()} - {dimension}:
        raise StepError(
            f"{month}: {workspace.store.url(key)} has vectors of {other.pop()} numbers, but the "
            f"index takes {dimension}; delete the file and materialize embeddings for this month "
            "again"
        )
    return (
        Vector(fact.key, values[fact.text_hash], vector_metadata(fact, month, encoder))
        for fact in facts
    )
