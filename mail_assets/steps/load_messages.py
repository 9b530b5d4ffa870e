"""Parse the archive of one month into rows: every message is stored, a duplicate, quarantined
with its reason, or left out because it was forgotten.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from mail_assets.mail.archive.mbox import RawMessage, split_archive
from mail_assets.mail.body.segments import SEGMENTER_VERSION, Segment, new_text_spans, segment_body
from mail_assets.mail.message.content_hash import find_lossy_copies
from mail_assets.mail.message.forgotten import Forgotten, message_digest, stand_in
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import PARSER_VERSION, UnreadableMessageError, parse_message
from mail_assets.month import ListMonth
from mail_assets.steps.outcome import Outcome, StepError, rate
from mail_assets.steps.workspace import Log, Workspace
from mail_assets.tables.mbox_archives import local_archive, read_archive
from mail_assets.tables.messages import (
    MessageRow,
    QuarantineRow,
    replace_messages,
    replace_quarantine,
)
from mail_assets.tables.partitions import Counts, Partition, State, locked, read_state, write_state
from mail_assets.tables.removals import (
    Removed,
    clear_removed,
    hide_ids,
    key_prefix,
    lock_for_load,
    read_forgotten,
    record_removed,
)
from mail_assets.text.identifiers import find_identifiers

ASSET = "messages"

#: Of the whole room; raise it when rows would come out differently from the same bytes.
VERSION = f"parser {PARSER_VERSION}, segmenter {SEGMENTER_VERSION}, rows 3"

#: Seconds between two lines of progress.
PROGRESS = 15.0


def load_messages(workspace: Workspace, month: ListMonth, dialect: str, language: str) -> Outcome:
    """Make the rows of one month equal to what its archive says.

    One transaction: a run killed at any point leaves the month as it was.

    Raises:
        StepError: mbox_archives was never materialized for this month.
        ArchiveError: the stored file is damaged.
    """
    connection, partition = workspace.connection, Partition(ASSET, month)
    with locked(connection, partition):
        archive = read_archive(connection, month)
        if archive is None:
            raise StepError(f"{month}: no archive yet; materialize mbox_archives first")
        inputs = f"{archive.sha256 or 'none'} {dialect} {language} {VERSION}"
        state = read_state(connection, partition)
        if state and state.inputs == inputs:
            return Outcome({**state.counts, "written": 0, "deleted": 0}, state.digest, False)
        progress = _Progress(month, archive.found, workspace.log)
        with connection.transaction():
            lock_for_load(connection)
            reader = _Reader(month, dialect, read_forgotten(connection), progress)
            if archive.object_key is None:
                rows: Iterator[MessageRow] = iter(())
                loaded = replace_messages(connection, month, rows, language, VERSION)
            else:
                with local_archive(workspace.store, archive.object_key) as path:
                    if dialect == "pipermail":
                        reader.lossy = find_lossy_copies(
                            (m.raw for m in split_archive(path, dialect)), dialect
                        )
                    rows = reader.stored(split_archive(path, dialect))
                    loaded = replace_messages(connection, month, rows, language, VERSION)
            replace_quarantine(connection, month, VERSION, reader.quarantined)
            clear_removed(connection, month)
            record_removed(connection, month, reader.removed)
            if reader.new_stand_ins:
                hide_ids(connection, reader.new_stand_ins)
            counts = reader.counts()
            counts |= {"written": loaded.written, "deleted": loaded.deleted}
            write_state(connection, partition, State(inputs, loaded.digest, counts))
    return Outcome(counts, loaded.digest, bool(loaded.written or loaded.deleted))


class _Reader:
    """Turns raw messages into rows and keeps the account: found, stored, duplicates, ..."""

    def __init__(
        self, month: ListMonth, dialect: str, forgotten: Forgotten, progress: "_Progress"
    ) -> None:
        self._month, self._dialect = month, dialect
        self._forgotten, self._progress = forgotten, progress
        #: Message-ID -> the contents seen under it, in the order of the archive.
        self._seen: defaultdict[str, list[str]] = defaultdict(list)
        self._found = self._bytes = self._stored = self._duplicates = self._suspicious = 0
        self._undated = self._variants = 0
        self.quarantined: list[QuarantineRow] = []
        #: Content hashes of copies that another message of the archive makes superfluous.
        self.lossy: frozenset[str] = frozenset()
        self.removed: list[Removed] = []
        #: Ids that nobody has met since their senders were forgotten, with their stand-ins.
        self.new_stand_ins: dict[str, str] = {}

    def stored(self, raws: Iterator[RawMessage]) -> Iterator[MessageRow]:
        """Yield a row for each message that is no duplicate, readable, and not forgotten."""
        for ordinal, raw in enumerate(raws):
            self._found += 1
            self._bytes += raw.length
            self._suspicious += raw.suspicious
            self._progress.report(self._found)
            try:
                row = self._row(raw, ordinal)
            except UnreadableMessageError as error:
                self.quarantined.append(QuarantineRow(ordinal, raw.offset, raw.length, str(error)))
                continue
            if row is None:
                continue
            self._stored += 1
            self._variants += row.variant > 0
            self._undated += row.message.date_source != "date"
            yield row

    def _row(self, raw: RawMessage, ordinal: int) -> MessageRow | None:
        message = parse_message(raw, month=self._month.month, dialect=self._dialect)
        contents = self._seen[message.message_id]
        if message.content_hash in contents or message.content_hash in self.lossy:
            self._duplicates += 1
            return None
        contents.append(message.content_hash)
        variant = len(contents) - 1
        if (removal := self._forgotten.removal_of(message)) is not None:
            self._leave_out(message, variant, ordinal, removal)
            return None
        message = replace(
            message,
            references=self._forgotten.hide(message.references),
            in_reply_to=self._forgotten.hide(message.in_reply_to),
        )
        parts = segment_body(message.body_text)
        new = "".join(message.body_text[s:e] for s, e in new_text_spans(message.body_text, parts))
        return MessageRow(
            message,
            variant,
            ordinal,
            raw.offset,
            raw.length,
            parts,
            find_identifiers(f"{message.subject}\n{new}", _patches(message, parts)),
            new,
        )

    def _leave_out(self, message: Message, variant: int, ordinal: int, removal: bytes) -> None:
        digest = message_digest(message.message_id)
        if not variant and digest not in self._forgotten.ids:
            self.new_stand_ins[message.message_id] = stand_in(digest)
        variant_hash = message.content_hash if variant else ""
        prefix = key_prefix(self._month, message.message_id, variant_hash)
        self.removed.append(Removed(ordinal, removal, None if variant else digest, prefix))

    def counts(self) -> Counts:
        """Return the account; found = stored + duplicates + quarantined + removed, always."""
        seconds = self._progress.seconds
        return {
            "found": self._found,
            "stored": self._stored,
            "duplicates": self._duplicates,
            "quarantined": len(self.quarantined),
            "removed": len(self.removed),
            "variants": self._variants,
            "undated": self._undated,
            "suspicious": self._suspicious,
            "bytes": self._bytes,
            "seconds": round(seconds, 3),
            "messages_per_second": rate(self._found, seconds),
        }


class _Progress:
    """Says from time to time how far a month is."""

    def __init__(self, month: ListMonth, expected: int, log: Log) -> None:
        self._month, self._expected, self._log = month, expected, log
        self._began = self._said = time.monotonic()

    @property
    def seconds(self) -> float:
        """The seconds since the month was begun."""
        return time.monotonic() - self._began

    def report(self, found: int) -> None:
        """Say how far it is, unless that was said a moment ago."""
        now = time.monotonic()
        if now - self._said < PROGRESS:
            return
        self._said = now
        speed = found / (now - self._began)
        left = (self._expected - found) / speed
        self._log(
            f"{self._month}: {found} of {self._expected} messages, {speed:.0f}/s, {left:.0f} s left"
        )


def _patches(message: Message, parts: list[Segment]) -> list[str]:
    """Return the text of all patches, inline and attached."""
    inline = [message.body_text[p.start : p.end] for p in parts if p.kind == "patch"]
    return inline + [a.text for a in message.attachments if a.is_patch]
