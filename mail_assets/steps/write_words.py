"""Make one month's part of the word index equal to its messages (see fill_index.py)."""

from collections.abc import Iterator, Sequence
from functools import partial

import psycopg

from mail_assets.indexes.month import maintain_if_due
from mail_assets.indexes.words import MailWords, read_words
from mail_assets.month import ListMonth
from mail_assets.steps.fill_index import fill_month
from mail_assets.steps.outcome import Outcome, StepError
from mail_assets.tables.indexes import Manifest
from mail_assets.tables.partitions import Partition, State, locked, read_state
from mail_assets.words.index import Document
from mail_assets.workspace import Workspace

#: How often a lexeme of the subject counts. The subject as a whole stands so often in a row, so
#: that a phrase of it is found. Raise the version in words/index.py with it.
SUBJECT_WEIGHT = 4


def write_words(
    workspace: Workspace, month: ListMonth, mail_words: MailWords, *, rebuild: bool = False
) -> Outcome:
    """Put what is new, delete what is stale; nothing when nothing has changed.

    With `rebuild` every entry is compared with what is made now, and put again where it differs.

    Raises:
        StepError: messages was never materialized for this month. Nothing was written then.
    """
    connection = workspace.connection
    with locked(connection, Partition(mail_words.table, month)):
        messages = read_state(connection, Partition("messages", month))
        if messages is None:
            raise StepError(f"{month}: no messages yet; materialize messages first")
        inputs = word_inputs(messages, mail_words.manifest)
        make = partial(make_documents, connection, month)
        outcome = fill_month(workspace, month, mail_words, inputs, make, rebuild=rebuild)
    if outcome.counts["written"]:
        maintain_if_due(workspace, mail_words.index)
    return outcome


def word_inputs(messages: State, manifest: Manifest) -> str:
    """Return what the documents of some messages are made from, and for which index."""
    return f"{messages.digest} {manifest.index_name}"


def make_documents(
    connection: psycopg.Connection, month: ListMonth, keys: Sequence[str]
) -> Iterator[Document]:
    """Yield the documents of some messages of a month, as they are now."""
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
