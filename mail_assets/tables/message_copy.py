"""Rows of messages as lines of COPY: made in any process, without a connection.

The text format of COPY (PostgreSQL 18 manual, SQL commands, COPY): fields parted by tabs, `\\N`
for null, a backslash before what would end a field or a line. The columns are those of `copy` in
sql/messages.sql.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import NamedTuple

from mail_assets.mail.body.segments import Segment
from mail_assets.mail.message.addresses import Address
from mail_assets.mail.message.message import Message
from mail_assets.text.byte_limits import MAX_SUBJECT_BYTES, MAX_TEXT_BYTES, cut_to_bytes
from mail_assets.text.letters import prepare_text


class MessageRow(NamedTuple):
    """A row: what its message alone decides, and what takes its whole month to know.

    `ordinal` is its position in the archive, which names the row until it is written; equal
    `row_hash` means that two rows are the same; `fields` are those of `encode_message`.
    """

    ordinal: int
    variant: int
    row_hash: bytes
    fields: str
    body_text: str
    flags: Sequence[str]
    segments: Sequence[Segment]
    identifiers: Sequence[str]
    new_text: str


def encode_message(message: Message) -> str:
    """Return the fields that a message alone decides, but for its body and flags."""
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
            _text(cut_to_bytes(prepare_text(m.subject), MAX_SUBJECT_BYTES)),
            _text(m.from_name),
            _text(m.from_email),
            _array(map(_mailbox, m.reply_to)),
            _array(map(_mailbox, m.to)),
            _array(map(_mailbox, m.cc)),
            _array(m.in_reply_to),
            _array(m.references),
            _text(m.list_id),
            m.body_kind,
            _attachments(m),
        )
    )


def encode_row(row: MessageRow) -> bytes:
    """Return the line of a row, its line end included.

    Raises:
        ValueError: a text holds NUL or half of a surrogate pair, which no PostgreSQL takes.
    """
    fields = (
        str(row.ordinal),
        str(row.variant),
        f"\\\\x{row.row_hash.hex()}",
        row.fields,
        _text(row.body_text),
        _array([*row.flags, "variant"] if row.variant else row.flags),
        _segments(row.segments),
        _array(row.identifiers),
        _text(cut_to_bytes(prepare_text(row.new_text), MAX_TEXT_BYTES)),
    )
    line = "\t".join(fields).encode() + b"\n"
    if b"\0" in line:
        raise ValueError("a text of the message holds NUL")
    return line


def _text(value: str) -> str:
    if "\\" in value:
        value = value.replace("\\", "\\\\")
    if "\n" in value:
        value = value.replace("\n", "\\n")
    if "\t" in value:
        value = value.replace("\t", "\\t")
    return value.replace("\r", "\\r") if "\r" in value else value


def _array(values: Iterable[str]) -> str:
    quoted = ['"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values]
    return _text("{" + ",".join(quoted) + "}") if quoted else "{}"


def _mailbox(address: Address) -> str:
    """Return "Name <address>", for people; nothing is quoted or encoded as in a header."""
    return f"{address.name} <{address.email}>" if address.name else address.email


def _segments(parts: Iterable[Segment]) -> str:
    return "[" + ",".join(f'[{start},{end},"{kind}"]' for start, end, kind in parts) + "]"


def _attachments(message: Message) -> str:
    """Return what is said of the attached files; their bytes stay in the archive."""
    if not message.attachments:
        return "[]"
    return _text(json.dumps([asdict(one) for one in message.attachments]))
