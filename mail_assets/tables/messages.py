"""The rows of messages and quarantine: loading one month, reading it back.

What does not live here: how a message is parsed (mail/) and when a month is loaded
(steps/load_messages.py).
"""

import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row

from mail_assets.mail.body.segments import Segment
from mail_assets.mail.message.addresses import Address
from mail_assets.mail.message.message import Message
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.tables.partitions import RowChanges


class MessageRow(NamedTuple):
    """A message with what its row holds besides: where it is in the archive, its segments."""

    message: Message
    variant: int
    ordinal: int
    offset: int
    length: int
    segments: list[Segment]
    identifiers: list[str]
    new_text: str


class QuarantineRow(NamedTuple):
    """A message that could not be read; its bytes stay reachable in the archive."""

    ordinal: int
    offset: int
    length: int
    reason: str


def replace_messages(
    connection: psycopg.Connection,
    month: ListMonth,
    stored: Iterable[MessageRow],
    language: str,
    version: str,
) -> RowChanges:
    """Make the rows of a month equal to `stored`; call it inside a transaction.

    `version` is that of everything that made the rows (parser, segmenter, identifiers): it
    goes into each row's hash, so that a new parser writes all rows again.
    """
    place = (month.list_name, month.month)
    connection.execute(statement("messages", "stage"))
    digest = hashlib.sha256()
    with connection.cursor() as cursor, cursor.copy(statement("messages", "copy")) as copy:
        for row in stored:
            columns = _columns(row)
            row_hash = hashlib.sha256(
                json.dumps([version, language, *columns], default=str).encode()
            ).digest()
            digest.update(row_hash)
            name, variant, content_hash, *rest = columns
            copy.write_row((*place, name, variant, content_hash, row_hash, *rest))
    connection.execute(statement("messages", "analyze_stage"))
    written = connection.execute(statement("messages", "upsert"), {"language": language}).rowcount
    deleted = connection.execute(statement("messages", "delete_vanished"), month.columns).rowcount
    return RowChanges(written, deleted, digest.hexdigest())


def _columns(row: MessageRow) -> tuple[Any, ...]:
    """Return the columns of messages_stage from message_id on, without row_hash."""
    m = row.message
    return (
        m.message_id,
        row.variant,
        m.content_hash,
        row.ordinal,
        row.offset,
        row.length,
        m.sent_at,
        m.date_source,
        m.date_raw,
        m.subject,
        m.subject_base,
        m.from_name,
        m.from_email,
        [_mailbox(a) for a in m.reply_to],
        [_mailbox(a) for a in m.to],
        [_mailbox(a) for a in m.cc],
        [*m.in_reply_to],
        [*m.references],
        m.list_id,
        m.body_kind,
        m.body_text,
        json.dumps([[s.start, s.end, s.kind] for s in row.segments]),
        json.dumps([asdict(a) for a in m.attachments]),
        row.identifiers,
        [*m.flags, *(["variant"] if row.variant else [])],
        row.new_text,
    )


def _mailbox(address: Address) -> str:
    """Return "Name <address>", for people; nothing is quoted or encoded as in a header."""
    return f"{address.name} <{address.email}>" if address.name else address.email


def replace_quarantine(
    connection: psycopg.Connection,
    month: ListMonth,
    version: str,
    rows: Iterable[QuarantineRow],
) -> None:
    """Make the quarantine of a month equal to `rows`; call it inside a transaction."""
    key = month.columns
    connection.execute(statement("messages", "delete_quarantine"), key)
    with connection.cursor() as cursor:
        cursor.executemany(
            statement("messages", "quarantine"),
            [
                {
                    **key,
                    "ordinal": row.ordinal,
                    "archive_offset": row.offset,
                    "archive_length": row.length,
                    "reason": row.reason,
                    "parser_version": version,
                }
                for row in rows
            ],
        )


class MessageText(NamedTuple):
    """What chunking needs of a message."""

    message_id: str
    variant: int
    content_hash: str
    subject: str
    body_text: str
    segments: list[Segment]


def read_texts(connection: psycopg.Connection, month: ListMonth) -> list[MessageText]:
    """Return the texts of a month in the order of its archive."""
    rows = connection.execute(statement("messages", "for_chunks"), month.columns).fetchall()
    return [
        MessageText(message_id, variant, content, subject, body, [Segment(*p) for p in parts])
        for message_id, variant, content, subject, body, parts in rows
    ]


def list_messages(
    connection: psycopg.Connection, list_name: str, month: str | None
) -> Iterator[dict[str, Any]]:
    """Yield one record a message of a list, in the order of its archives.

    A server-side cursor: a list of 400,000 messages does not have to fit into memory.
    """
    with (
        connection.transaction(),
        connection.cursor("list_messages", row_factory=dict_row) as cursor,
    ):
        cursor.execute(statement("messages", "list"), {"list": list_name, "month": month})
        for row in cursor:
            yield {**row, "sent_at": utc(row["sent_at"])}


def show_message(connection: psycopg.Connection, message_id: str) -> list[dict[str, Any]]:
    """Return every row with this id: one for each list, month and variant."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement("messages", "show"), {"message_id": message_id}).fetchall()


def utc(moment: dt.datetime) -> str:
    """Return a moment as ISO 8601 in UTC, to the second."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
