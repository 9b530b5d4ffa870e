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
from mail_assets.text.byte_limits import MAX_SUBJECT_BYTES, MAX_TEXT_BYTES, cut_to_bytes

#: What PostgreSQL says of a value that it cannot store; anything else ends the load.
REFUSALS = (psycopg.DataError, psycopg.errors.ProgramLimitExceeded)


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


class LoadedMonth(NamedTuple):
    """What loading a month did, and the messages that PostgreSQL would not take."""

    rows: RowChanges
    refused: list[QuarantineRow]


def replace_messages(
    connection: psycopg.Connection,
    month: ListMonth,
    stored: Iterable[MessageRow],
    language: str,
    version: str,
) -> LoadedMonth:
    """Make the rows of a month equal to `stored`; call it inside a transaction.

    `version` is that of everything that made the rows (parser, segmenter, identifiers): it
    goes into each row's hash, so that a new parser writes all rows again. A row that PostgreSQL
    refuses is left out with the server's reason, and costs no other row.
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
    ordinals = connection.execute(statement("messages", "staged_range")).fetchone()
    first, last = ordinals if ordinals and ordinals[0] is not None else (0, -1)
    refused: list[QuarantineRow] = []
    written = _upsert(connection, _Range(first, last, language), refused)
    deleted = connection.execute(statement("messages", "delete_vanished"), month.columns).rowcount
    return LoadedMonth(RowChanges(written, deleted, digest.hexdigest()), refused)


class _Range(NamedTuple):
    """A range of the stage, by ordinal, and the language of its texts."""

    first: int
    last: int
    language: str


def _upsert(connection: psycopg.Connection, rows: _Range, refused: list[QuarantineRow]) -> int:
    """Write a range of the stage; return the number of rows written.

    A range that PostgreSQL refuses is halved until the row that it refuses is alone: that one is
    unstaged and added to `refused`.
    """
    try:
        with connection.transaction():
            return connection.execute(statement("messages", "upsert"), rows._asdict()).rowcount
    except REFUSALS as error:
        if rows.first == rows.last:
            place = {"ordinal": rows.first}
            found = connection.execute(statement("messages", "unstage"), place).fetchone()
            if found is None:  # no row stands there: the error is not one of a row
                raise
            offset, length = found
            refused.append(QuarantineRow(rows.first, offset, length, _reason(error)))
            return 0
    middle = (rows.first + rows.last) // 2
    halves = rows._replace(last=middle), rows._replace(first=middle + 1)
    return sum(_upsert(connection, half, refused) for half in halves)


def _reason(error: psycopg.Error) -> str:
    return f"PostgreSQL refuses it: {error.diag.message_primary} ({error.sqlstate})"


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
        cut_to_bytes(m.subject, MAX_SUBJECT_BYTES),
        cut_to_bytes(row.new_text, MAX_TEXT_BYTES),
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
