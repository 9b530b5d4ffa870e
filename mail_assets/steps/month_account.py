"""Account for every message of a month: what each table says of it."""

import hashlib
from collections.abc import Iterator, Mapping, Set

from mail_assets.mail.message.forgotten import Digests, Forgotten, stand_in
from mail_assets.month import ListMonth
from mail_assets.steps.message_fates import Fate
from mail_assets.steps.month_contents import MonthContents, WantedRow
from mail_assets.steps.month_reader import Found
from mail_assets.tables.archive_entries import ArchiveEntry, pack_ending
from mail_assets.tables.messages import QuarantineRow, RowKey
from mail_assets.tables.partitions import Counts
from mail_assets.tables.removed_messages import RemovedMessage, key_prefix


class MonthAccount:
    """The contents of a month, less the rows that could not be stored: ordinal -> reason."""

    def __init__(self, month: ListMonth, contents: MonthContents, refused: Mapping[int, str]):
        self._month = month
        self._found, self._fates = contents.found, contents.fates
        self._reasons = {n: one.reason for n, one in enumerate(contents.found) if not one.facts}
        self._reasons |= {n: fate.reason for n, fate in enumerate(contents.fates) if fate.reason}
        self._reasons.update(refused)
        self._rows = {n: row for n, row in contents.rows.items() if n not in refused}
        removed = [n for n, fate in enumerate(contents.fates) if fate.outcome == "removed"]
        #: Nothing may be kept of their ids, of duplicates neither.
        self._removed = {self._key(n): n for n in removed}

    @property
    def rows(self) -> Mapping[int, WantedRow]:
        """The rows that are stored, by ordinal."""
        return self._rows

    @property
    def digest(self) -> str:
        """A digest over the rows, wherever in the archive they stand."""
        hashes = sorted(row.row_hash for row in self._rows.values())
        return hashlib.sha256(b"".join(hashes)).hexdigest()

    def entries(self) -> list[ArchiveEntry]:
        """Return what became of each message, and what is known of it."""
        pairs = zip(self._found, self._fates, strict=True)
        return [self._entry(n, one, fate) for n, (one, fate) in enumerate(pairs)]

    def quarantined(self) -> list[QuarantineRow]:
        """Return the messages that could not be read or stored, with the reasons."""
        return [
            QuarantineRow(n, self._found[n].offset, self._found[n].length, reason)
            for n, reason in sorted(self._reasons.items())
        ]

    @property
    def removed_ids(self) -> set[str]:
        """The ids of the messages that are kept out."""
        return {message_id for message_id, _ in self._removed}

    def removed(self, digests: Digests, held: Set[str]) -> Iterator[RemovedMessage]:
        """Yield the messages that are kept out; `held` are ids that a stored message has too."""
        for (message_id, variant), n in self._removed.items():
            facts, removal = self._found[n].facts, self._fates[n].removal
            if facts and removal:
                variant_hash = facts.content_hash if variant else ""
                prefix = key_prefix(self._month, message_id, variant_hash)
                digest = None if message_id in held else digests.of_message(message_id)
                yield RemovedMessage(n, removal, digest, prefix)

    def new_stand_ins(self, forgotten: Forgotten, held: Set[str]) -> dict[str, str]:
        """Return ids that nobody has met since their senders were forgotten, with stand-ins."""
        digests = {x: forgotten.digests.of_message(x) for x in self.removed_ids - held}
        return {x: stand_in(one) for x, one in digests.items() if one not in forgotten.ids}

    def counts(self) -> Counts:
        """Return the figures; found = stored + duplicates + quarantined + removed, always."""
        return {
            "found": len(self._found),
            "stored": len(self._rows),
            "duplicates": sum(fate.outcome == "duplicate" for fate in self._fates),
            "quarantined": len(self._reasons),
            "removed": len(self._removed),
            "variants": sum(row.key[1] > 0 for row in self._rows.values()),
            "suspicious": sum(one.suspicious for one in self._found),
            "bytes": sum(one.length for one in self._found),
        }

    def _key(self, ordinal: int) -> RowKey:
        facts = self._found[ordinal].facts
        return (facts.message_id if facts else "", self._fates[ordinal].variant)

    def _entry(self, ordinal: int, one: Found, fate: Fate) -> ArchiveEntry:
        facts = one.facts
        outcome = "quarantined" if ordinal in self._reasons else fate.outcome
        entry = ArchiveEntry(ordinal, one.offset, one.length, one.digest, outcome)
        if facts is None or ordinal in self._reasons or self._key(ordinal) in self._removed:
            return entry
        ending = facts.author and outcome == "stored" and pack_ending(facts.author.ending)
        return entry._replace(
            message_id=facts.message_id,
            variant=fate.variant,
            content_hash=facts.content_hash,
            outline=facts.outline or None,
            ending=ending or None,
        )
