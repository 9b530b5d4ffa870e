"""The rows of messages and quarantine: loading a month, and reading its texts.

Rows are lines of COPY, which a process can make without a connection. In the text format of COPY
(PostgreSQL 18 manual, SQL commands, COPY) tabs separate the fields, `\\N` is null, and a backslash
escapes characters that would end a field or a line. The columns are those of `copy` in
sql/messages.sql. mail/ parses messages, and steps/load_messages.py decides when a month is loaded.
"""

import datetime as dt
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple, TypeVar

import psycopg
from psycopg.rows import tuple_row

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.message.addresses import Address
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.subjects import find_topic, is_answer
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import read_value, statement
from mail_assets.tables.search_vectors import CutText, compose_vector, stem_reader

T = TypeVar("T")

#: Errors about a value that PostgreSQL cannot store. Any other error ends the load.
REFUSALS = (psycopg.DataError, psycopg.errors.ProgramLimitExceeded)

#: Most rows, and most bytes of rows, whose stems are read by one statement.
ROWS_AT_A_TIME, BYTES_AT_A_TIME = 1_000, 8 << 20
#: Bodies fetched at once: up to 1 MB each, most have 3 KB.
TEXTS_AT_A_TIME = 100


class QuarantineRow(NamedTuple):
    """A message that could not be read; its bytes can still be read from the archive."""

    ordinal: int
    offset: int
    length: int
    reason: str


#: Message-ID and variant.
RowKey = tuple[str, int]


class FirstArrival(NamedTuple):
    """The earliest time at which a text is known to have been in its archive, and its source."""

    at: dt.datetime
    source: str  # received, from_line or loaded


class KnownRow(NamedTuple):
    """The fields of an existing row that a load needs."""

    row_hash: bytes
    from_name: str
    from_email: str
    subject_base: str
    content_hash: str
    arrived_at: dt.datetime
    arrival_source: str


def read_known_rows(connection: psycopg.Connection, month: ListMonth) -> dict[RowKey, KnownRow]:
    """Return the rows of a month, by id and variant."""
    with connection.cursor(binary=True) as cursor:
        rows = cursor.execute(statement("messages", "known"), month.columns).fetchall()
    return {(message_id, variant): KnownRow(*rest) for message_id, variant, *rest in rows}


class EncodedRow(NamedTuple):
    """A line of COPY up to the full-text vector, and the words to make the vector from."""

    line: bytes
    cut: CutText


class WrittenRows(NamedTuple):
    """The number of written rows, and the refused rows as ordinal -> reason."""

    written: int
    refused: dict[int, str]


def write_rows(
    connection: psycopg.Connection, month: ListMonth, language: str, rows: Iterable[EncodedRow]
) -> WrittenRows:
    """Write rows of a month; call it inside a transaction.

    `language` is the text search configuration for stems. If PostgreSQL refuses a row, only that
    row is left out, and the server's reason is returned.
    """
    connection.execute(statement("messages", "stage"))
    ordinals: list[int] = []
    for batch in batches(rows, lambda row: len(row.line), ROWS_AT_A_TIME, BYTES_AT_A_TIME):
        words = set[str]().union(*(row.cut.words for row in batch))
        stems = stem_reader(connection).read([language], words)[language]
        with connection.cursor() as cursor, cursor.copy(statement("messages", "copy")) as copy:
            lines = (row.line + _text(compose_vector(row.cut, stems)).encode() for row in batch)
            copy.write(b"\n".join((*lines, b"")))
        ordinals += [int(row.line[: row.line.index(b"\t")]) for row in batch]
    refused: dict[int, str] = {}
    if not ordinals:
        return WrittenRows(0, refused)
    return WrittenRows(
        _upsert(_Stage(connection, month.columns, refused), sorted(ordinals)), refused
    )


def batches(
    items: Iterable[T], size_of: Callable[[T], int], most: int, most_bytes: int
) -> Iterator[list[T]]:
    """Yield items in lists; each ends at a number of items or of bytes."""
    batch: list[T] = []
    size = 0
    for item in items:
        batch.append(item)
        size += size_of(item)
        if len(batch) == most or size >= most_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Stage(NamedTuple):
    """The staged rows: their connection, the parameters of their month, and the refused ones."""

    connection: psycopg.Connection
    parameters: dict[str, str]
    refused: dict[int, str]


def _upsert(stage: _Stage, ordinals: Sequence[int]) -> int:
    """Write some staged rows and return their number; bisect them to find refused rows."""
    bounds = {"first": ordinals[0], "last": ordinals[-1]}
    query = statement("messages", "upsert")
    try:
        with stage.connection.transaction():
            return stage.connection.execute(query, {**stage.parameters, **bounds}).rowcount
    except REFUSALS as error:
        if len(ordinals) == 1:
            reason = f"PostgreSQL refuses it: {error.diag.message_primary} ({error.sqlstate})"
            stage.refused[ordinals[0]] = reason
            return 0
    middle = len(ordinals) // 2
    return _upsert(stage, ordinals[:middle]) + _upsert(stage, ordinals[middle:])


def delete_rows(connection: psycopg.Connection, month: ListMonth, keys: Collection[RowKey]) -> int:
    """Delete rows of a month by id and variant; return their number."""
    if not keys:
        return 0
    parameters = {
        **month.columns,
        "message_ids": [message_id for message_id, _ in keys],
        "variants": [variant for _, variant in keys],
    }
    return connection.execute(statement("messages", "delete"), parameters).rowcount


def find_contested(connection: psycopg.Connection, message_ids: Collection[str]) -> None:
    """Record which of some ids several texts claim; call it as the last statement of a load."""
    asked = {"message_ids": [*message_ids]}
    connection.execute(statement("messages", "find_contested"), asked)


def settle_rows(connection: psycopg.Connection) -> None:
    """Merge new rows into the database's indexes, so that the first searches are not slower."""
    connection.execute(statement("messages", "settle"))


def count_undated(connection: psycopg.Connection, month: ListMonth) -> int:
    """Return the number of messages of a month whose date is not from their Date field."""
    return int(read_value(connection, statement("messages", "count_undated"), month.columns) or 0)


def mend_senders(connection: psycopg.Connection, month: ListMonth) -> int:
    """Make the rows of `senders` match the messages of a month; return how many were wrong.

    Triggers maintain these rows. This repairs rows that were changed without the triggers.
    """
    return int(read_value(connection, statement("messages", "mend_senders"), month.columns) or 0)


def replace_quarantine(
    connection: psycopg.Connection,
    month: ListMonth,
    version: str,
    rows: Iterable[QuarantineRow],
) -> None:
    """Make the quarantine of a month equal to `rows`; call it inside a transaction."""
    key, rows = month.columns, [*rows]
    former = connection.execute(statement("messages", "read_quarantine"), key).fetchall()
    if former == [(*row, version) for row in rows]:
        return
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


class ChunkSource(NamedTuple):
    """The text of a message that chunks are cut from."""

    message_id: str
    variant: int
    content_hash: str
    subject: str
    body_text: str
    segments: list[Segment]


def read_texts(connection: psycopg.Connection, month: ListMonth) -> Iterator[ChunkSource]:
    """Yield the texts of a month by id and variant, inside a transaction.

    The cursor is on the server, so that a month of large messages need not fit into memory.
    """
    with connection.cursor("read_texts", row_factory=tuple_row) as cursor:
        cursor.itersize = TEXTS_AT_A_TIME
        for row in cursor.execute(statement("messages", "for_chunks"), month.columns):
            message_id, variant, content, subject, body, parts = row
            segments = [Segment(*part) for part in parts]
            yield ChunkSource(message_id, variant, content, subject, body, segments)


def read_arrivals(rows: Mapping[RowKey, KnownRow]) -> dict[tuple[str, str], FirstArrival]:
    """Return the first arrival of each text of a month, by its id and content hash."""
    arrivals: dict[tuple[str, str], FirstArrival] = {}
    for (message_id, _), row in rows.items():
        key, known = (
            (message_id, row.content_hash),
            FirstArrival(row.arrived_at, row.arrival_source),
        )
        arrivals[key] = min(known, arrivals.get(key, known))
    return arrivals


class MessageRow(NamedTuple):
    """A row of messages: the fields of its message, and those that depend on the whole month.

    `ordinal` is the position in the archive and identifies the row until it is written. Rows with
    equal `row_hash` are equal. `fields` is the result of `encode_message`.
    """

    ordinal: int
    variant: int
    row_hash: bytes
    fields: str
    body_text: str
    flags: Sequence[str]
    segments: Sequence[Segment]
    identifiers: Sequence[str]
    cut: CutText
    #: The digests of a TextIdentity.
    identity: Sequence[bytes | None]
    #: None if only the Date field dates the message: then the time of the first load counts.
    arrival: FirstArrival | None = None


def encode_message(message: Message, parts: Sequence[Segment]) -> str:
    """Return the fields that depend on a message and its segments alone, without body and flags."""
    m = message
    return "\t".join(
        (
            _text(m.message_id),
            m.content_hash,
            m.sent_at.isoformat(),
            m.date_source,
            _text(m.date_raw),
            _text(m.subject),
            _text(m.subject_base),
            _text(find_topic(m.subject)),
            "t" if is_answer(m.subject) or _quotes(parts) else "f",
            _text(m.from_name),
            _text(m.from_email),
            _array(map(_mailbox, m.reply_to)),
            _array(map(_mailbox, m.to)),
            _array(map(_mailbox, m.cc)),
            _array(m.in_reply_to),
            _array(m.references),
            _text(m.list_id),
            m.body_kind,
            _text(json.dumps([asdict(one) for one in m.attachments])) if m.attachments else "[]",
        )
    )


def _quotes(parts: Sequence[Segment]) -> bool:
    """Return whether a mail has a quote and no patch; the notes of a patch may quote a review.

    Used to detect replies, because archives of Pipermail lack the "Re:" of subjects, and many lack
    references.
    """
    kinds = {part.kind for part in parts}
    return "quote" in kinds and "patch" not in kinds


def encode_row(row: MessageRow) -> EncodedRow:
    """Return the line of a row up to its vector, and its words.

    Raises:
        ValueError: a text contains NUL or half of a surrogate pair, which PostgreSQL cannot store.
    """
    fields = (
        str(row.ordinal),
        str(row.variant),
        f"\\\\x{row.row_hash.hex()}",
        row.fields,
        _text(row.body_text),
        _array([*row.flags, "variant"] if row.variant else row.flags),
        "[" + ",".join(f'[{start},{end},"{kind}"]' for start, end, kind in row.segments) + "]",
        _array(row.identifiers),
        *(f"\\\\x{one.hex()}" if one else "\\N" for one in row.identity),
        *((row.arrival.at.isoformat(), row.arrival.source) if row.arrival else ("\\N", "loaded")),
        "",
    )
    line = "\t".join(fields).encode()
    if b"\0" in line:
        raise ValueError("a text of the message contains NUL")
    return EncodedRow(line, row.cut)


def _text(value: str) -> str:
    if "\\" in value:
        value = value.replace("\\", "\\\\")
    if "\n" in value:
        value = value.replace("\n", "\\n")
    if "\t" in value:
        value = value.replace("\t", "\\t")
    return value.replace("\r", "\\r") if "\r" in value else value


def _array(values: Iterable[str]) -> str:
    items = [*values]
    whole = "".join(items)
    if '"' in whole or "\\" in whole:
        items = [value.replace("\\", "\\\\").replace('"', '\\"') for value in items]
    return _text('{"' + '","'.join(items) + '"}') if items else "{}"


def _mailbox(address: Address) -> str:
    # for display: not quoted or encoded as in a header field
    return f"{address.name} <{address.email}>" if address.name else address.email
