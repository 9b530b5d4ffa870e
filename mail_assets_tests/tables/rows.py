"""Rows to store: messages from real bytes, and one chunk to each of them."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import psycopg

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.segments import new_text_spans, segment_body
from mail_assets.mail.message.content_hash import identify_text
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import parse_message
from mail_assets.month import ListMonth
from mail_assets.tables.chunks import ChunkRow, chunk_key, replace_chunks
from mail_assets.tables.mbox_archives import ArchiveEntry, read_entries, replace_entries
from mail_assets.tables.messages import (
    EncodedRow,
    FirstArrival,
    MessageRow,
    WrittenRows,
    delete_rows,
    encode_message,
    encode_row,
    read_known_rows,
    read_texts,
    write_rows,
)
from mail_assets.tables.partitions import RowChanges
from mail_assets.tables.search_vectors import cut_message
from mail_assets.text.chunking import Chunk, build_document
from mail_assets.text.identifiers import find_identifiers
from mail_assets_tests.mail.mails import raw_message

MONTH = ListMonth("dev", "2024-03")
NEXT_MONTH = ListMonth("dev", "2024-04")
OTHER_LIST = ListMonth("users", "2024-03")


class Stored(NamedTuple):
    message: Message
    variant: int
    ordinal: int
    segments: Sequence[Segment]
    identifiers: Sequence[str]
    new_text: str


def stored(
    name: str,
    body: str = "The worker holds its lease.\n",
    subject: str = "Leases",
    headers: str = "",
    variant: int = 0,
    ordinal: int = 0,
) -> Stored:
    """Return a message as the reader of an archive makes it."""
    raw = (
        f"From: Jo Berg <jo@example.org>\nTo: dev@example.org\nSubject: {subject}\n"
        f"Date: Fri, 1 Mar 2024 10:00:00 +0000\nMessage-ID: <{name}>\n"
        f"Content-Type: text/plain; charset=utf-8\n{headers}\n{body}"
    ).encode()
    message = parse_message(raw_message(raw), month=MONTH.month, dialect="plain")
    parts = segment_body(message.body_text)
    new = "".join(message.body_text[s:e] for s, e in new_text_spans(message.body_text, parts))
    found = find_identifiers(f"{message.subject}\n{new}", [])
    return Stored(message, variant, ordinal, parts, found, new)


def encode(row: Stored) -> EncodedRow:
    message = row.message
    made = (encode_message(message, row.segments), message.body_text, message.flags)
    arrival = FirstArrival(*message.arrival) if message.arrival else None
    identity = identify_text(message, [message.body_text], "plain")
    cut = cut_message(message.subject, row.new_text, row.identifiers)
    texts = (row.segments, row.identifiers, cut)
    return encode_row(MessageRow(row.ordinal, row.variant, b"", *made, *texts, identity, arrival))


def load(
    connection: psycopg.Connection,
    messages: Iterable[Stored],
    month: ListMonth = MONTH,
    language: str = "english",
) -> RowChanges:
    """Make the rows of a month equal to `messages`, as the step does."""
    rows = [*messages]
    with connection.transaction():
        written = write(connection, rows, month, language)
        kept = [row for row in rows if row.ordinal not in written.refused]
        kept_keys = {(row.message.message_id, row.variant) for row in kept}
        vanished = read_known_rows(connection, month).keys() - kept_keys
        deleted = delete_rows(connection, month, vanished)
        former = read_entries(connection, month)
        replace_entries(connection, month, former, [_entry(row) for row in kept])
    return RowChanges(written.written, deleted, "")


def write(
    connection: psycopg.Connection,
    rows: Iterable[Stored],
    month: ListMonth = MONTH,
    language: str = "english",
) -> WrittenRows:
    """Write rows of a month, inside a transaction."""
    return write_rows(connection, month, language, map(encode, rows))


def _entry(row: Stored) -> ArchiveEntry:
    name, content_hash = row.message.message_id, row.message.content_hash
    place = (row.ordinal, 1000 * row.ordinal, 100)
    return ArchiveEntry(*place, b"", "stored", name, row.variant, content_hash)


def rechunk(connection: psycopg.Connection, month: ListMonth = MONTH) -> RowChanges:
    """Make one chunk of each stored message."""
    rows = []
    with connection.transaction():
        texts = [*read_texts(connection, month)]
    for text in texts:
        variant = text.content_hash if text.variant else ""
        rows.append(
            ChunkRow(
                chunk_key(month, text.message_id, variant, 0),
                text.message_id,
                text.variant,
                hashlib.sha256(build_document(text.subject, text.body_text).encode()).digest(),
                Chunk(0, ((0, len(text.body_text)),), text.body_text, len(text.body_text.split())),
            )
        )
    with connection.transaction():
        return replace_chunks(connection, month, rows)
