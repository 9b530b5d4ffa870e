"""Turn raw messages into rows, in two passes: what a whole month teaches lies between them.

Both passes are functions of their arguments alone, so that any process may run them and the rows
are the same whatever their number. The first parses, and says of each message what decides its
fate; the second makes the row, once it is known which rows are wanted and how they end.
"""

import pickle
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mail_assets.mail.archive.mbox import RawMessage
from mail_assets.mail.body.attached import own_body, segment_with_attached
from mail_assets.mail.body.ending_lines import Ending
from mail_assets.mail.body.repeated_endings import EndingMatch
from mail_assets.mail.body.segments import (
    Segment,
    ending_of,
    mark_ending,
    new_text_spans,
    segment_body,
)
from mail_assets.mail.message.content_hash import hash_outline
from mail_assets.mail.message.forgotten import Forgotten
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message
from mail_assets.tables.message_copy import MessageRow, encode_row
from mail_assets.text.identifiers import find_identifiers


class Reading(NamedTuple):
    """How the messages of a month are read."""

    month: str
    dialect: str
    forgotten: Forgotten


class Author(NamedTuple):
    """Who wrote a message, in which thread, and how it ends: what endings are learnt from."""

    name: str
    email: str
    subject: str
    ending: Ending

    @property
    def key(self) -> str:
        """What tells authors apart."""
        return self.email or self.name


class Facts(NamedTuple):
    """What decides whether a message is stored, and under which key."""

    message_id: str
    content_hash: str
    #: Of the content without the letters that pipermail may lose; empty in other dialects.
    outline: bytes
    #: None of a message known as a duplicate: it is parsed again where it is to be stored.
    author: Author | None


class Parsed(NamedTuple):
    """A message after the first pass: facts and a draft of its row, or why it cannot be read."""

    ordinal: int
    facts: Facts | None = None
    #: Its date is that of its From_ line, or the month's for want of one.
    needs_from_line: bool = True
    draft: bytes = b""
    reason: str = ""


class RowOrder(NamedTuple):
    """A row that is wanted: its key, its hash, how the message ends, and the draft."""

    ordinal: int
    variant: int
    row_hash: bytes
    match: EndingMatch
    draft: bytes


class Row(NamedTuple):
    """A row as a line of COPY, or why it cannot be made."""

    ordinal: int
    line: bytes = b""
    reason: str = ""


def parse_batch(reading: Reading, batch: Sequence[tuple[int, RawMessage]]) -> list[Parsed]:
    """First pass: parse messages, each with its ordinal in the archive."""
    return [_parse(reading, ordinal, raw) for ordinal, raw in batch]


def _parse(reading: Reading, ordinal: int, raw: RawMessage) -> Parsed:
    try:
        message = parse_message(raw, month=reading.month, dialect=reading.dialect)
        own = own_body(message.body_text, message.attached_texts)
        parts = segment_body(own, message.from_name, message.from_email)
        ending = ending_of(own, parts)
        author = Author(message.from_name, message.from_email, message.subject_base, ending)
        outline = hash_outline(raw.raw, reading.dialect) if reading.dialect == "pipermail" else b""
        facts = Facts(message.message_id, message.content_hash, outline, author)
        draft = pickle.dumps((reading.forgotten.hide(message), parts))
    except UnreadableMessageError as error:
        return Parsed(ordinal, reason=error.reason)
    except Exception as error:  # one bad message must cost a row, not a month
        return Parsed(ordinal, reason=f"{type(error).__name__}: {error}")
    needs_from_line = message.date_source not in ("date", "received")
    return Parsed(ordinal, facts, needs_from_line, draft)


def make_rows(_: None, orders: Sequence[RowOrder]) -> list[Row]:
    """Second pass: make the rows that are wanted."""
    return [_make_row(order) for order in orders]


def _make_row(order: RowOrder) -> Row:
    try:
        message, rule_parts = pickle.loads(order.draft)
        parts = _segment(message, rule_parts, order.match)
        new = "".join(
            message.body_text[start:end] for start, end in new_text_spans(message.body_text, parts)
        )
        names = find_identifiers(f"{message.subject}\n{new}", [*_patches(message, parts)])
        row = MessageRow(message, order.variant, order.ordinal, order.row_hash, parts, names, new)
        return Row(order.ordinal, encode_row(row))
    except Exception as error:  # one bad message must cost a row, not a month
        return Row(order.ordinal, reason=f"{type(error).__name__}: {error}")


def _segment(message: Message, own: list[Segment], match: EndingMatch) -> list[Segment]:
    """Return the segments of a message; `own` are those of its own body, by the rules alone."""
    body, attached = message.body_text, message.attached_texts
    parts = mark_ending(own_body(body, attached), own, match)
    return segment_with_attached(body, attached, parts) if attached else parts


def _patches(message: Message, parts: Sequence[Segment]) -> Iterator[str]:
    """Yield the text of all patches, inline and attached."""
    yield from (message.body_text[p.start : p.end] for p in parts if p.kind == "patch")
    yield from message.patch_texts
