"""Decide what the rows of a month are, from the messages found in its archive.

Nothing is written here. Whether a message was parsed now or was known before makes no difference
to the result: only what it costs.

[message_fates] Decide what becomes of each message of a month: stored, a duplicate, or removed.

By the facts alone and in the order of the archive, so that it makes no difference which messages
were parsed now and which were known already.

[month_account] Account for every message of a month: what each table says of it.

[row_maker] Make the lines of COPY for the rows that a month lacks.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from mail_assets.mail.body.footers import EndingMatch, RepeatedEndings, learn_endings
from mail_assets.mail.message.forgotten import Digests, Forgotten, make_placeholder
from mail_assets.month import ListMonth
from mail_assets.processes.workers import WorkerPool
from mail_assets.steps.read_month import (
    BATCH_BYTES,
    BATCH_MESSAGES,
    Author,
    Facts,
    Found,
    MonthReader,
    RowOrder,
    make_rows,
)
from mail_assets.tables.mbox_archives import ArchiveEntry, Outcome, pack_ending, unpack_ending
from mail_assets.tables.messages import KnownRow, QuarantineRow, RowKey
from mail_assets.tables.partitions import Counts
from mail_assets.tables.removed_messages import RemovedMessage, key_prefix

MAX_VARIANT = 32_767  # PostgreSQL's smallint
_TOO_MANY = f"more than {MAX_VARIANT + 1} different messages of the month have its Message-ID"


class Fate(NamedTuple):
    """What becomes of a message, and the number of its content under its id, from 0.

    Of a duplicate, that of the content that it repeats. `removal` is the digest of the entry in
    the list of removals that keeps it out, `reason` why a message is quarantined that can be read.
    """

    outcome: Outcome
    variant: int = 0
    removal: bytes | None = None
    reason: str = ""


QUARANTINED = Fate("quarantined")


def decide_fates(
    facts: Iterable[Facts | None], lossy: frozenset[str], forgotten: Forgotten
) -> list[Fate]:
    """Return the fate of each message of a month in order; one without facts is quarantined.

    `lossy` are the content hashes of copies that another message makes superfluous.
    """
    #: Message-ID -> content hash -> variant
    seen: defaultdict[str, dict[str, int]] = defaultdict(dict)
    fates: list[Fate] = []
    for one in facts:
        if one is None:
            fates.append(QUARANTINED)
            continue
        contents = seen[one.message_id]
        if one.content_hash in contents or one.content_hash in lossy:
            fates.append(Fate("duplicate", contents.get(one.content_hash, 0)))
            continue
        variant, removal = len(contents), _removal_of(one, forgotten)
        if variant > MAX_VARIANT and not removal:
            fates.append(QUARANTINED._replace(reason=_TOO_MANY))
            continue
        contents[one.content_hash] = variant
        fates.append(Fate("removed" if removal else "stored", variant, removal))
    return fates


def find_outline_groups(facts: Sequence[Facts | None]) -> list[int]:
    """Return the positions of messages that may be lossy copies of each other.

    Those with the same outline, where it has several contents.
    """
    contents: defaultdict[bytes, set[str]] = defaultdict(set)
    for one in facts:
        if one is not None and one.outline:
            contents[one.outline].add(one.content_hash)
    return [at for at, one in enumerate(facts) if one and len(contents.get(one.outline, ())) > 1]


def _removal_of(facts: Facts, forgotten: Forgotten) -> bytes | None:
    by_id = forgotten.removal_of_id(facts.message_id)
    if by_id or not facts.author:
        return by_id
    return forgotten.removal_of_author(facts.author.name, facts.author.email)


class KnownMonth(NamedTuple):
    """What an earlier load knew: facts by the digest of a message's bytes, and hashes of rows."""

    facts: Mapping[bytes, Facts]
    row_hashes: Mapping[RowKey, bytes]


class WantedRow(NamedTuple):
    """A row that the month must have: how its message ends, and the hash over all of it."""

    key: RowKey
    match: EndingMatch
    row_hash: bytes


class MonthContents(NamedTuple):
    """The messages of an archive in order, what becomes of each, and the rows by ordinal."""

    found: Sequence[Found]
    fates: Sequence[Fate]
    rows: Mapping[int, WantedRow]


def recall_month(entries: Sequence[ArchiveEntry], rows: Mapping[RowKey, KnownRow]) -> KnownMonth:
    """Return what an earlier load has left, if the same versions made it."""
    facts: dict[bytes, Facts] = {}
    for entry in entries:
        if entry.message_id is None or entry.variant is None or entry.content_hash is None:
            continue
        author, row = None, rows.get((entry.message_id, entry.variant))
        if row and entry.ending:
            ending = unpack_ending(entry.ending)
            author = Author(row.from_name, row.from_email, row.subject_base, ending)
        if author or entry.digest not in facts:
            facts[entry.digest] = Facts(
                entry.message_id, entry.content_hash, entry.outline or b"", author
            )
    return KnownMonth(facts, {key: row.row_hash for key, row in rows.items()})


def read_contents(
    reader: MonthReader,
    forgotten: Forgotten,
    made_by: str,
    report_progress: Callable[[int], None],
) -> MonthContents:
    """Read an archive and decide; `made_by` names the versions and settings that make rows.

    Raises:
        ArchiveError: the file is damaged.
        WorkerError: a process that parses has ended.
    """
    reader.read(report_progress)
    lossy = reader.find_lossy(find_outline_groups(reader.facts))
    fates = decide_fates(reader.facts, lossy, forgotten)
    if promoted := _known_as_duplicates(reader.facts, fates):
        reader.parse(promoted)
        fates = decide_fates(reader.facts, lossy, forgotten)
    return MonthContents(reader.found, fates, _wanted_rows(reader.found, fates, made_by))


def find_shared(contents: MonthContents, forgotten: Forgotten) -> set[bytes]:
    """Return the digests of hidden ids that messages of the month have, which are not forgotten."""
    if not forgotten.ids:
        return set()
    digests = {forgotten.digests.of_message(row.key[0]) for row in contents.rows.values()}
    return digests.intersection(forgotten.ids)


def _known_as_duplicates(facts: Sequence[Facts | None], fates: Sequence[Fate]) -> list[int]:
    """Return what was a duplicate once and is none any more: its row was never made."""
    return [
        ordinal
        for ordinal, (one, fate) in enumerate(zip(facts, fates, strict=True))
        if one and not one.author and fate.outcome != "duplicate"
    ]


def _wanted_rows(
    found: Sequence[Found], fates: Sequence[Fate], made_by: str
) -> dict[int, WantedRow]:
    stored = [
        (ordinal, one, one.facts, fate.variant)
        for ordinal, (one, fate) in enumerate(zip(found, fates, strict=True))
        if one.facts and fate.outcome == "stored"
    ]
    authors = (facts.author for _, _, facts, _ in stored if facts.author)
    learnt = learn_endings((one.key, one.subject, one.ending) for one in authors)
    rows: dict[int, WantedRow] = {}
    for ordinal, one, facts, variant in stored:
        match = _match(learnt, facts.author)
        made_from = f"{made_by}|{variant}|{match.footer}|{match.signature}|{match.own_signature}|"
        row_hash = hashlib.sha256(made_from.encode() + one.digest).digest()
        rows[ordinal] = WantedRow((facts.message_id, variant), match, row_hash)
    return rows


def _match(learnt: RepeatedEndings, author: Author | None) -> EndingMatch:
    return learnt.match(author.key, author.ending) if author else EndingMatch()


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

    def new_placeholders(self, forgotten: Forgotten, held: Set[str]) -> dict[str, str]:
        """Return ids that nobody has met since their senders were forgotten, with placeholders."""
        digests = {x: forgotten.digests.of_message(x) for x in self.removed_ids - held}
        return {x: make_placeholder(one) for x, one in digests.items() if one not in forgotten.ids}

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


def make_lines(
    reader: MonthReader,
    rows: Mapping[int, WantedRow],
    workers: WorkerPool,
    refused: dict[int, str],
) -> Iterator[bytes]:
    """Yield the lines of rows, by ordinal; why one cannot be made goes to `refused`."""
    for _, made in workers.map(make_rows, None, _batches(reader, rows)):
        for row in made:
            if row.reason:
                refused[row.ordinal] = row.reason
            else:
                yield row.line


def _batches(reader: MonthReader, rows: Mapping[int, WantedRow]) -> Iterator[list[RowOrder]]:
    batch: list[RowOrder] = []
    size = 0
    for ordinal, row in rows.items():
        draft = reader.draft(ordinal)
        batch.append(RowOrder(ordinal, row.key[1], row.row_hash, row.match, draft))
        size += len(draft)
        if len(batch) == BATCH_MESSAGES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
