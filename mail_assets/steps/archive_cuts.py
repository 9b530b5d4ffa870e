"""Cut forgotten messages out of an archive file: find their byte ranges, write the rest.

Rows and the store follow in store_archive.py.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from mmap import mmap
from pathlib import Path
from typing import NamedTuple

from mail_assets.mail.archive.compression import archive_suffix, create_archive, unpacked
from mail_assets.mail.archive.mbox import RawMessage, find_dialect, split_archive
from mail_assets.mail.message.forgotten import Forgotten
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message
from mail_assets.month import ListMonth
from mail_assets.steps.outcome import StepError

#: The blank line after a message.
_BLANK = re.compile(rb"\r?\n")


class CutContent(NamedTuple):
    """A message to cut out, and the removal that asks for it; `is_first` of its id's contents."""

    message_id: str
    content_hash: str
    removal: bytes
    is_first: bool


class Cuts(NamedTuple):
    """Byte ranges to cut out of an archive, in order, and the messages in them.

    `left` are the digests of the messages that stay, `ids_left` their ids.
    """

    ranges: list[tuple[int, int]]
    contents: list[CutContent]
    left: list[bytes]
    ids_left: set[str]


def reading_dialect(path: Path, known: str) -> str:
    """Return the dialect of a file: the `known` one of its month, else the one that fits its bytes.

    The dialect of a month whose archive has vanished is unknown.
    """
    if known:
        return known
    with unpacked(path) as data:
        return find_dialect(data) or "plain"


def find_cuts(path: Path, month: ListMonth, dialect: str, forgotten: Forgotten) -> Cuts:
    """Return what to cut out of an archive; duplicates are cut together with what they repeat.

    Raises:
        ArchiveError: the file is damaged.
    """
    cuts = Cuts([], [], [], set())
    contents: defaultdict[str, set[str]] = defaultdict(set)
    for raw in split_archive(path, dialect):
        message = _parse(raw, month, dialect)
        removal = _removal(message, forgotten) if message else None
        if message and message.content_hash not in contents[message.message_id]:
            if removal:
                place = (message.message_id, message.content_hash)
                cuts.contents.append(CutContent(*place, removal, not contents[message.message_id]))
            else:
                cuts.ids_left.add(message.message_id)
            contents[message.message_id].add(message.content_hash)
        if removal:
            cuts.ranges.append((raw.offset, raw.offset + raw.length))
        else:
            cuts.left.append(hashlib.sha256(raw.raw).digest())
    return cuts


def _removal(message: Message, forgotten: Forgotten) -> bytes | None:
    return forgotten.removal_of(message.message_id, message.from_name, message.from_email)


def _kept_ranges(
    data: bytes | mmap, ranges: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield the ranges that stay; a message is cut with the blank line that mbox adds after it."""
    kept = 0
    for start, end in ranges:
        yield kept, start
        blank = _BLANK.match(data, end)
        kept = blank.end() if blank else end
    yield kept, len(data)


def _parse(raw: RawMessage, month: ListMonth, dialect: str) -> Message | None:
    """Return a message, or None if it cannot be read: its author is unknown then."""
    try:
        return parse_message(raw, month=month.month, dialect=dialect)
    except UnreadableMessageError:
        return None


def write_without(path: Path, target: Path, dialect: str, cuts: Cuts) -> Path:
    """Write an archive without its cuts, compressed as it was; return `target`.

    Raises:
        StepError: the other messages would read differently.
    """
    with unpacked(path) as data, create_archive(target, archive_suffix(path)) as file:
        for start, end in _kept_ranges(data, cuts.ranges):
            file.write(data[start:end])
    left = [hashlib.sha256(raw.raw).digest() for raw in split_archive(target, dialect)]
    if left != cuts.left:
        raise StepError(
            f"the archive cannot be cut: without the forgotten messages the others would not read "
            f"as before ({len(left)} of {len(cuts.left)} found)"
        )
    return target
