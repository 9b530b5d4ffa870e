"""Read the messages of a month's archive, and make their rows, in two passes.

The first pass parses messages. It returns the facts that decide whether each is stored, and a draft
of its row. Messages whose bytes are known are not parsed again. The second pass makes the wanted
rows; it needs the footers and signatures learnt from the whole month. Both passes are pure
functions: any process may run them, and the rows do not depend on the number of processes.
"""

import datetime as dt
import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from mmap import mmap
from typing import IO, NamedTuple

from mail_assets.mail.archive.mbox import RawMessage, split_mbox
from mail_assets.mail.body.endings import EndedMail, Ending, EndingMatch
from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.segments import (
    mark_ending,
    new_text_spans,
    own_body,
    readable_text,
    segment_with_attached,
    segment_with_ending,
)
from mail_assets.mail.body.signatures import name_words
from mail_assets.mail.message.content_hash import (
    drop_notices,
    find_lossy_copies,
    identify_text,
)
from mail_assets.mail.message.dates import find_made_up
from mail_assets.mail.message.forgotten import Forgotten
from mail_assets.mail.message.message import Message, TextIdentity
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message
from mail_assets.processes.workers import WorkerPool
from mail_assets.tables.messages import (
    EncodedRow,
    FirstArrival,
    MessageRow,
    RowKey,
    batches,
    encode_message,
    encode_row,
)
from mail_assets.tables.search_vectors import cut_message
from mail_assets.text.identifiers import find_identifiers, list_patch_names

#: A batch for one process ends at this number of messages or of bytes.
BATCH_MESSAGES, BATCH_BYTES = 100, 1 << 20


class Reading(NamedTuple):
    """Arguments of the parser that hold for a whole month."""

    month: str
    dialect: str
    forgotten: Forgotten
    charset: str = ""


class Author(NamedTuple):
    """Author, subject, ending and day of a message, from which a month's endings are learnt."""

    name: str
    email: str
    subject: str
    ending: Ending
    day: int  # of UTC, from the year 1

    @property
    def key(self) -> str:
        """The identity of the author."""
        return self.email or self.name

    @property
    def mail(self) -> EndedMail:
        """The facts from which endings are learnt."""
        return EndedMail(self.key, self.subject, self.ending, self.day)


class Facts(NamedTuple):
    """Facts of a message that decide whether it is stored, and under which key."""

    message_id: str
    content_hash: str
    #: Hash of the content without the letters that pipermail may lose; empty in other dialects.
    outline: bytes
    #: None for a known duplicate, which is parsed again if it is to be stored now.
    author: Author | None


class Parsed(NamedTuple):
    """A message after the first pass: facts and a draft of its row, or why it cannot be read."""

    ordinal: int
    facts: Facts | None = None
    #: The date comes from the From_ line or from the month.
    needs_from_line: bool = True
    draft: bytes = b""
    reason: str = ""


class Draft(NamedTuple):
    """A message as input of the second pass.

    It has strings and plain tuples only, because datetimes pickle slowly. `parts` are the segments
    of its own body, by the rules alone; `author` are the words of the author's name; `files` are
    the names of attachments.
    """

    fields: str
    subject: str
    body_text: str
    attached_texts: tuple[tuple[int, int], ...]
    patch_texts: tuple[str, ...]
    flags: tuple[str, ...]
    parts: list[tuple[int, int, str]]
    author: frozenset[str]
    files: tuple[str, ...]
    arrival: tuple[str, str] | None
    received: tuple[str, str] | None
    identity: tuple[bytes | None, ...]


class Found(NamedTuple):
    """A message of an archive: position, digest of its bytes, facts or why it is unreadable."""

    offset: int
    length: int
    suspicious: bool
    digest: bytes
    facts: Facts | None = None
    reason: str = ""


class Archive(NamedTuple):
    """The decompressed bytes of an archive, and the name that errors give it."""

    data: bytes | mmap
    name: str


class MonthReader:
    """Reads the decompressed archive of one month; `found` are its messages in order.

    Without an archive there are no messages. `known` are facts by the digest of a message's bytes.
    The drafts of parsed messages are written to the file `drafts`.
    """

    def __init__(
        self,
        archive: Archive | None,
        reading: Reading,
        known: Mapping[bytes, Facts],
        workers: WorkerPool,
        drafts: IO[bytes],
    ) -> None:
        self._archive, self._reading, self._known = archive, reading, known
        self._workers, self._drafts = workers, drafts
        #: Ordinal -> offset and length of its draft.
        self._places: dict[int, tuple[int, int]] = {}
        self._from_lines: list[bytes] = []
        self.found: list[Found] = []

    def find_dated(self) -> list[bool]:
        """Return for each message whether the date of its From_ line is genuine."""
        made_up = find_made_up(self._from_lines)
        return [line not in made_up for line in self._from_lines]

    @property
    def facts(self) -> list[Facts | None]:
        """Facts of each message, in order."""
        return [one.facts for one in self.found]

    @property
    def parsed(self) -> Collection[int]:
        """Ordinals of the messages that have a draft."""
        return self._places.keys()

    def read(self, report_progress: Callable[[int], None]) -> None:
        """Find all messages, and parse those that are not known.

        Raises:
            ArchiveError: the file is damaged.
            WorkerError: a worker process died.
        """
        self._parse(self._unknown(report_progress))

    def parse(self, ordinals: Collection[int]) -> None:
        """Parse messages even if they are known."""
        if not ordinals:
            return
        wanted = frozenset(ordinals)
        self._parse((n, raw) for n, raw in self._raws() if n in wanted)

    def find_lossy(self, ordinals: Collection[int]) -> frozenset[str]:
        """Return the content hashes of messages that are lossy copies of other given ones."""
        if not ordinals:
            return frozenset()
        wanted = frozenset(ordinals)
        raws = (raw.raw for n, raw in self._raws() if n in wanted)
        return find_lossy_copies(raws, self._reading.dialect)

    def draft(self, ordinal: int) -> bytes:
        """Return the draft of a row."""
        start, length = self._places[ordinal]
        self._drafts.seek(start)
        return self._drafts.read(length)

    def _raws(self) -> Iterator[tuple[int, RawMessage]]:
        if self._archive is None:
            return iter(())
        data, name = self._archive
        return enumerate(split_mbox(data, self._reading.dialect, name=name))

    def _unknown(self, report_progress: Callable[[int], None]) -> Iterator[tuple[int, RawMessage]]:
        for ordinal, raw in self._raws():
            digest, facts = self._recall(raw)
            self.found.append(Found(raw.offset, raw.length, raw.suspicious, digest, facts))
            self._from_lines.append(raw.from_line)
            report_progress(ordinal + 1)
            if facts is None:
                yield ordinal, raw

    def _recall(self, raw: RawMessage) -> tuple[bytes, Facts | None]:
        """Return the digest of a message, and its facts if it is known."""
        digest = digest_message(raw)
        facts = self._known.get(digest)
        if facts is None and self._known:
            dated = digest_message(raw, raw.from_line)
            if facts := self._known.get(dated):
                return dated, facts
        return digest, facts

    def _parse(self, raws: Iterable[tuple[int, RawMessage]]) -> None:
        end = self._drafts.seek(0, 2)
        some = batches(raws, lambda one: one[1].length, BATCH_MESSAGES, BATCH_BYTES)
        for batch, parsed in self._workers.map(parse_batch, self._reading, some):
            for (_, raw), one in zip(batch, parsed, strict=True):
                found = self.found[one.ordinal]
                digest = digest_message(raw, raw.from_line) if one.needs_from_line else found.digest
                self.found[one.ordinal] = found._replace(
                    digest=digest, facts=one.facts, reason=one.reason
                )
                self._places[one.ordinal] = (end, len(one.draft))
                end += self._drafts.write(one.draft)


def digest_message(raw: RawMessage, from_line: bytes = b"") -> bytes:
    """Return the digest of a message's bytes and of the splitter's flags.

    Pass the From_ line only for a message without another date: some servers make up another
    From_ line at each download.
    """
    digest = blake2b(raw.raw, digest_size=32, salt=bytes([raw.truncated, raw.suspicious]))
    digest.update(from_line)
    return digest.digest()


def parse_batch(reading: Reading, batch: Sequence[tuple[int, RawMessage]]) -> list[Parsed]:
    """First pass: parse messages, each with its ordinal in the archive."""
    return [_parse(reading, ordinal, raw) for ordinal, raw in batch]


def _parse(reading: Reading, ordinal: int, raw: RawMessage) -> Parsed:
    try:
        message = parse_message(
            raw, month=reading.month, dialect=reading.dialect, charset=reading.charset
        )
        own = own_body(message.body_text, message.attached_texts)
        name, email, subject = message.from_name, message.from_email, message.subject_base
        parts, ending = segment_with_ending(own, name, email, answers=message.answers)
        author = Author(name, email, subject, ending, _day_of(message))
        facts = Facts(message.message_id, message.content_hash, message.content_outline, author)
        kept = [_own_words(own, part, reading.dialect) for part in parts]
        kept.append(message.body_text[len(own) :])
        identity = identify_text(message, kept, reading.dialect)
        draft = pickle.dumps((*_draft(reading.forgotten.hide(message), parts, identity),))
    except UnreadableMessageError as error:
        return Parsed(ordinal, reason=error.reason)
    except Exception as error:  # one bad message must cost a row, not a month
        return Parsed(ordinal, reason=f"{type(error).__name__}: {error}")
    needs_from_line = message.date_source not in ("date", "received")
    return Parsed(ordinal, facts, needs_from_line, draft)


def _own_words(body: str, part: Segment, dialect: str) -> str:
    text = body[part.start : part.end]
    return drop_notices(text, dialect) if part.kind == "footer" else text


def _day_of(message: Message) -> int:
    """Return the day that the list's own server recorded, else the day of the Date field."""
    arrival = message.arrival
    at = arrival.at if arrival and arrival.source == "received" else message.sent_at
    return at.toordinal()


def _draft(message: Message, parts: Sequence[Segment], identity: TextIdentity) -> Draft:
    return Draft(
        encode_message(message, parts),
        message.subject,
        message.body_text,
        message.attached_texts,
        message.patch_texts,
        message.flags,
        [(part.start, part.end, part.kind) for part in parts],
        name_words(message.from_name, message.from_email),
        tuple(one.name for one in message.attachments),
        message.arrival and (message.arrival.at.isoformat(), message.arrival.source),
        message.received and (message.received.at.isoformat(), message.received.source),
        (*identity,),
    )


class WantedRow(NamedTuple):
    """A row that the month must have; `is_dated`: the date of its From_ line is genuine."""

    key: RowKey
    content_hash: str
    match: EndingMatch
    row_hash: bytes
    is_dated: bool


class RowOrder(NamedTuple):
    """Arguments for making one row."""

    ordinal: int
    variant: int
    row_hash: bytes
    match: EndingMatch
    is_dated: bool
    draft: bytes
    #: First arrival of the same text, as an earlier load recorded it.
    known: FirstArrival | None


class Row(NamedTuple):
    """An encoded row, or the reason why it cannot be made."""

    ordinal: int
    encoded: EncodedRow | None = None
    reason: str = ""


def make_lines(
    reader: MonthReader,
    rows: Mapping[int, WantedRow],
    arrivals: Mapping[tuple[str, str], FirstArrival],
    workers: WorkerPool,
    refused: dict[int, str],
) -> Iterator[EncodedRow]:
    """Yield encoded rows; add the reason to `refused` if one cannot be made.

    `rows` and `refused` are keyed by ordinal, `arrivals` by id and content hash.
    """
    orders = (
        RowOrder(
            *(ordinal, row.key[1], row.row_hash, row.match, row.is_dated, reader.draft(ordinal)),
            arrivals.get((row.key[0], row.content_hash)),
        )
        for ordinal, row in rows.items()
    )
    some = batches(orders, lambda one: len(one.draft), BATCH_MESSAGES, BATCH_BYTES)
    for _, made in workers.map(make_rows, None, some):
        for row in made:
            if row.encoded:
                yield row.encoded
            else:
                refused[row.ordinal] = row.reason


def make_rows(_: None, orders: Sequence[RowOrder]) -> list[Row]:
    """Second pass: make rows from their drafts."""
    return [_make_row(order) for order in orders]


def _make_row(order: RowOrder) -> Row:
    try:
        draft = Draft(*pickle.loads(order.draft))
        body = draft.body_text
        by_rules, parts = _segment(draft, order.match)
        words = readable_text(body, by_rules)
        new = "".join(body[start:end] for start, end in new_text_spans(body, by_rules))
        files = "\n".join(draft.files)
        in_patches = list_patch_names(_patches(draft, parts))
        names = find_identifiers(f"{draft.subject}\n{words}\n{files}", in_patches)
        named = [*dict.fromkeys((*in_patches, *list_patch_names([new]))), *draft.files]
        cut = cut_message(draft.subject, words, names, named)
        place = (order.ordinal, order.variant, order.row_hash)
        arrival = _first_arrival(draft, order)
        row = MessageRow(
            *place, draft.fields, body, draft.flags, parts, names, cut, draft.identity, arrival
        )
        return Row(order.ordinal, encode_row(row))
    except Exception as error:  # one bad message must cost a row, not a month
        return Row(order.ordinal, reason=f"{type(error).__name__}: {error}")


def _first_arrival(draft: Draft, order: RowOrder) -> FirstArrival | None:
    """Return the first arrival, from this archive or from an earlier load.

    Some servers make up another From_ line at each download; the earliest one counts.
    """
    arrival, known = draft.arrival, order.known
    if not order.is_dated:
        arrival = draft.received
        known = None if known and known.source == "from_line" else known
    own = FirstArrival(dt.datetime.fromisoformat(arrival[0]), arrival[1]) if arrival else None
    if own and (known is None or known.source != own.source or own.source == "received"):
        return own
    return min(known, own) if own and known else known


def _segment(draft: Draft, match: EndingMatch) -> tuple[list[Segment], list[Segment]]:
    """Return the segments by the rules alone, and the segments with the learnt ending.

    Words and names come from the first, so that other people's mail cannot remove any of them.
    """
    body, attached = draft.body_text, draft.attached_texts
    own = [Segment(*part) for part in draft.parts]
    by_rules = segment_with_attached(body, attached, own) if attached else own
    if not any(match):
        return by_rules, by_rules
    parts = mark_ending(own_body(body, attached), own, match, draft.author)
    return by_rules, segment_with_attached(body, attached, parts) if attached else parts


def _patches(draft: Draft, parts: Sequence[Segment]) -> Iterator[str]:
    yield from (draft.body_text[p.start : p.end] for p in parts if p.kind == "patch")
    yield from draft.patch_texts
