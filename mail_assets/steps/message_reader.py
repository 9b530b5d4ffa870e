"""Turn the messages of an archive into rows: each is stored, a duplicate, quarantined with its
reason, or removed because it was forgotten.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mail_assets.mail.archive.mbox import RawMessage, split_archive
from mail_assets.mail.body.attached import segment_with_attached
from mail_assets.mail.body.segments import Segment, new_text_spans
from mail_assets.mail.message.content_hash import find_lossy_copies
from mail_assets.mail.message.forgotten import Forgotten, stand_in
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message
from mail_assets.month import ListMonth
from mail_assets.tables.messages import MessageRow, QuarantineRow
from mail_assets.tables.partitions import Counts
from mail_assets.tables.removed_messages import RemovedMessage, key_prefix
from mail_assets.text.identifiers import find_identifiers


class MessageReader:
    """Reads the archive of one month once, and counts what became of its messages.

    `quarantined`, `removed` and `new_stand_ins` are complete when all rows have been read.
    """

    def __init__(
        self,
        month: ListMonth,
        dialect: str,
        forgotten: Forgotten,
        report_progress: Callable[[int], None],
    ) -> None:
        self._month, self._dialect = month, dialect
        self._forgotten, self._report_progress = forgotten, report_progress
        #: Message-ID -> the contents seen under it, in the order of the archive.
        self._seen: defaultdict[str, list[str]] = defaultdict(list)
        self._found = self._bytes = self._stored = self._duplicates = self._suspicious = 0
        self._undated = self._variants = 0
        self.quarantined: list[QuarantineRow] = []
        #: Content hashes of copies that another message of the archive makes superfluous.
        self._lossy: frozenset[str] = frozenset()
        self.removed: list[RemovedMessage] = []
        #: Ids that nobody has met since their senders were forgotten, with their stand-ins.
        self.new_stand_ins: dict[str, str] = {}

    def read(self, path: Path) -> Iterator[MessageRow]:
        """Yield a row for each message that is no duplicate, readable, and not forgotten.

        Raises:
            ArchiveError: the file is damaged.
        """
        if self._dialect == "pipermail":
            raws = (message.raw for message in split_archive(path, self._dialect))
            self._lossy = find_lossy_copies(raws, self._dialect)
        for ordinal, raw in enumerate(split_archive(path, self._dialect)):
            self._found += 1
            self._bytes += raw.length
            self._suspicious += raw.suspicious
            self._report_progress(self._found)
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
        if message.content_hash in contents or message.content_hash in self._lossy:
            self._duplicates += 1
            return None
        contents.append(message.content_hash)
        variant = len(contents) - 1
        if (removal := self._forgotten.removal_of(message)) is not None:
            self._remove(message, variant, ordinal, removal)
            return None
        message = self._forgotten.hide(message)
        parts = segment_with_attached(message.body_text, message.attached_texts)
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

    def _remove(self, message: Message, variant: int, ordinal: int, removal: bytes) -> None:
        digest = self._forgotten.digests.of_message(message.message_id)
        if not variant and digest not in self._forgotten.ids:
            self.new_stand_ins[message.message_id] = stand_in(digest)
        variant_hash = message.content_hash if variant else ""
        prefix = key_prefix(self._month, message.message_id, variant_hash)
        self.removed.append(RemovedMessage(ordinal, removal, None if variant else digest, prefix))

    def quarantine_stored(self, rows: Sequence[QuarantineRow]) -> None:
        """Count rows as quarantined that PostgreSQL would not store."""
        self._stored -= len(rows)
        self.quarantined += rows

    def counts(self) -> Counts:
        """Return the figures; found = stored + duplicates + quarantined + removed, always."""
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
        }


def _patches(message: Message, parts: list[Segment]) -> list[str]:
    """Return the text of all patches, inline and attached."""
    inline = [message.body_text[p.start : p.end] for p in parts if p.kind == "patch"]
    return [*inline, *message.patch_texts]
