"""Decide the outcome of each message of a month, and the rows that the month needs.

Nothing is written here. The decisions depend only on the facts and their order in the archive. So
it makes no difference which messages were parsed in this run and which were known before.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from mail_assets.mail.body.endings import EndingMatch, learn_endings
from mail_assets.mail.message.forgotten import Digests, Forgotten
from mail_assets.mail.message.ids import make_placeholder
from mail_assets.month import ListMonth
from mail_assets.steps.read_month import Author, Facts, Found, MonthReader, WantedRow
from mail_assets.tables.mbox_archives import ArchiveEntry, Outcome, pack_ending, unpack_ending
from mail_assets.tables.messages import KnownRow, QuarantineRow, RowKey
from mail_assets.tables.partitions import Counts
from mail_assets.tables.removed_messages import RemovedMessage, key_prefix

MAX_VARIANT = 32_767  # PostgreSQL's smallint
_TOO_MANY = f"more than {MAX_VARIANT + 1} different messages of the month have its Message-ID"


class MessageOutcome(NamedTuple):
    """Decision about a message: stored, duplicate, removed or quarantined.

    `variant` numbers the contents under its id, from 0; a duplicate has the number of the content
    that it repeats. `removal` is the digest of the entry of the list of removals that excludes it.
    `reason` says why a readable message is quarantined.
    """

    kind: Outcome
    variant: int = 0
    removal: bytes | None = None
    reason: str = ""


QUARANTINED = MessageOutcome("quarantined")


def decide_outcomes(
    facts: Iterable[Facts | None], lossy: frozenset[str], forgotten: Forgotten
) -> list[MessageOutcome]:
    """Return the outcome of each message of a month in order; one without facts is quarantined.

    `lossy` are the content hashes of lossy copies of other messages.
    """
    #: Message-ID -> content hash -> variant
    seen: defaultdict[str, dict[str, int]] = defaultdict(dict)
    outcomes: list[MessageOutcome] = []
    for one in facts:
        if one is None:
            outcomes.append(QUARANTINED)
            continue
        contents = seen[one.message_id]
        if one.content_hash in contents or one.content_hash in lossy:
            outcomes.append(MessageOutcome("duplicate", contents.get(one.content_hash, 0)))
            continue
        variant, removal = len(contents), _removal_of(one, forgotten)
        if variant > MAX_VARIANT and not removal:
            outcomes.append(QUARANTINED._replace(reason=_TOO_MANY))
            continue
        contents[one.content_hash] = variant
        outcomes.append(MessageOutcome("removed" if removal else "stored", variant, removal))
    return outcomes


def find_outline_groups(facts: Sequence[Facts | None]) -> list[int]:
    """Return the positions of possible lossy copies: equal outlines, different contents."""
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
    """Results of an earlier load: facts by the digest of a message, and row hashes by key."""

    facts: Mapping[bytes, Facts]
    row_hashes: Mapping[RowKey, bytes]


class MonthContents(NamedTuple):
    """The messages of an archive in order, their outcomes, and the wanted rows by ordinal."""

    found: Sequence[Found]
    outcomes: Sequence[MessageOutcome]
    rows: Mapping[int, WantedRow]


def recall_month(entries: Sequence[ArchiveEntry], rows: Mapping[RowKey, KnownRow]) -> KnownMonth:
    """Return the results of an earlier load with the same versions."""
    facts: dict[bytes, Facts] = {}
    for entry in entries:
        if entry.message_id is None or entry.variant is None or entry.content_hash is None:
            continue
        author, row = None, rows.get((entry.message_id, entry.variant))
        if row and entry.ending:
            ending, day = unpack_ending(entry.ending)
            author = Author(row.from_name, row.from_email, row.subject_base, ending, day)
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
    """Read an archive and decide; `made_by` identifies the versions and settings.

    Raises:
        ArchiveError: the file is damaged.
        WorkerError: a worker process died.
    """
    reader.read(report_progress)
    lossy = reader.find_lossy(find_outline_groups(reader.facts))
    outcomes = decide_outcomes(reader.facts, lossy, forgotten)
    if promoted := _known_as_duplicates(reader.facts, outcomes):
        reader.parse(promoted)
        outcomes = decide_outcomes(reader.facts, lossy, forgotten)
    rows = _wanted_rows(reader.found, outcomes, made_by, reader.find_dated())
    return MonthContents(reader.found, outcomes, rows)


def find_shared(contents: MonthContents, forgotten: Forgotten) -> set[bytes]:
    """Return the digests of hidden ids that stored messages of the month also have."""
    if not forgotten.ids:
        return set()
    digests = {forgotten.digests.of_message(row.key[0]) for row in contents.rows.values()}
    return digests.intersection(forgotten.ids)


def _known_as_duplicates(
    facts: Sequence[Facts | None], outcomes: Sequence[MessageOutcome]
) -> list[int]:
    """Return the ordinals of former duplicates, for which no row was ever made."""
    return [
        ordinal
        for ordinal, (one, outcome) in enumerate(zip(facts, outcomes, strict=True))
        if one and not one.author and outcome.kind != "duplicate"
    ]


def _wanted_rows(
    found: Sequence[Found], outcomes: Sequence[MessageOutcome], made_by: str, dated: Sequence[bool]
) -> dict[int, WantedRow]:
    stored = [
        (ordinal, one, one.facts, outcome.variant)
        for ordinal, (one, outcome) in enumerate(zip(found, outcomes, strict=True))
        if one.facts and outcome.kind == "stored"
    ]
    authors = (facts.author for _, _, facts, _ in stored if facts.author)
    learnt = learn_endings(one.mail for one in authors)
    rows: dict[int, WantedRow] = {}
    for ordinal, one, facts, variant in stored:
        author = facts.author
        match = learnt.match(author.key, author.ending) if author else EndingMatch()
        made_from = f"{made_by}|{variant}|{match.footer}|{match.signature}|{match.own_signature}|"
        made_from += "" if dated[ordinal] else "made up"
        row_hash = hashlib.sha256(made_from.encode() + one.digest).digest()
        key = (facts.message_id, variant)
        rows[ordinal] = WantedRow(key, facts.content_hash, match, row_hash, dated[ordinal])
    return rows


class MonthAccount:
    """Figures and records of a month's messages; `refused`: ordinal -> why it was not stored."""

    def __init__(self, month: ListMonth, contents: MonthContents, refused: Mapping[int, str]):
        self._month = month
        self._found, self._outcomes = contents.found, contents.outcomes
        self._reasons = {n: one.reason for n, one in enumerate(contents.found) if not one.facts}
        self._reasons |= {
            n: outcome.reason for n, outcome in enumerate(contents.outcomes) if outcome.reason
        }
        self._reasons.update(refused)
        self._rows = {n: row for n, row in contents.rows.items() if n not in refused}
        removed = [n for n, outcome in enumerate(contents.outcomes) if outcome.kind == "removed"]
        #: Neither their ids nor their duplicates may be recorded.
        self._removed = {self._key(n): n for n in removed}

    @property
    def rows(self) -> Mapping[int, WantedRow]:
        """Stored rows, by ordinal."""
        return self._rows

    @property
    def digest(self) -> str:
        """Digest over the rows; independent of their order."""
        hashes = sorted(row.row_hash for row in self._rows.values())
        return hashlib.sha256(b"".join(hashes)).hexdigest()

    def entries(self) -> list[ArchiveEntry]:
        """Return the outcome of each message, and the facts that the next load reuses."""
        pairs = zip(self._found, self._outcomes, strict=True)
        return [self._entry(n, one, outcome) for n, (one, outcome) in enumerate(pairs)]

    def quarantined(self) -> list[QuarantineRow]:
        """Return the messages that could not be read or stored, with the reasons."""
        return [
            QuarantineRow(n, self._found[n].offset, self._found[n].length, reason)
            for n, reason in sorted(self._reasons.items())
        ]

    @property
    def removed_ids(self) -> set[str]:
        """Ids of the removed messages."""
        return {message_id for message_id, _ in self._removed}

    def removed(self, digests: Digests, held: Set[str]) -> Iterator[RemovedMessage]:
        """Yield the removed messages; `held` are ids that a stored message also has."""
        for (message_id, variant), n in self._removed.items():
            facts, removal = self._found[n].facts, self._outcomes[n].removal
            if facts and removal:
                variant_hash = facts.content_hash if variant else ""
                prefix = key_prefix(self._month, message_id, variant_hash)
                digest = None if message_id in held else digests.of_message(message_id)
                yield RemovedMessage(n, removal, digest, prefix)

    def new_placeholders(self, forgotten: Forgotten, held: Set[str]) -> dict[str, str]:
        """Return ids first seen after their senders were forgotten, with placeholders."""
        digests = {x: forgotten.digests.of_message(x) for x in self.removed_ids - held}
        return {x: make_placeholder(one) for x, one in digests.items() if one not in forgotten.ids}

    def counts(self) -> Counts:
        """Return the figures; found = stored + duplicates + quarantined + removed, always."""
        return {
            "found": len(self._found),
            "stored": len(self._rows),
            "duplicates": sum(outcome.kind == "duplicate" for outcome in self._outcomes),
            "quarantined": len(self._reasons),
            "removed": len(self._removed),
            "variants": sum(row.key[1] > 0 for row in self._rows.values()),
            "suspicious": sum(one.suspicious for one in self._found),
            "bytes": sum(one.length for one in self._found),
        }

    def _key(self, ordinal: int) -> RowKey:
        facts = self._found[ordinal].facts
        return (facts.message_id if facts else "", self._outcomes[ordinal].variant)

    def _entry(self, ordinal: int, one: Found, outcome: MessageOutcome) -> ArchiveEntry:
        facts = one.facts
        kind = "quarantined" if ordinal in self._reasons else outcome.kind
        entry = ArchiveEntry(ordinal, one.offset, one.length, one.digest, kind)
        if facts is None or ordinal in self._reasons or self._key(ordinal) in self._removed:
            return entry
        ending = (
            facts.author and kind == "stored" and pack_ending(facts.author.ending, facts.author.day)
        )
        return entry._replace(
            message_id=facts.message_id,
            variant=outcome.variant,
            content_hash=facts.content_hash,
            outline=facts.outline or None,
            ending=ending or None,
        )
