"""Decide what the rows of a month are, from the messages found in its archive.

Nothing is written here. Whether a message was parsed now or was known before makes no difference
to the result: only what it costs.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from mail_assets.mail.body.footers import EndingMatch, RepeatedEndings, learn_endings
from mail_assets.mail.message.forgotten import Forgotten
from mail_assets.steps.message_fates import Fate, decide_fates, find_outline_groups
from mail_assets.steps.message_rows import Author, Facts
from mail_assets.steps.month_reader import Found, MonthReader
from mail_assets.tables.archive_entries import ArchiveEntry, unpack_ending
from mail_assets.tables.messages import KnownRow, RowKey


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
