"""Put an archive into the store, without the byte ranges of forgotten messages.

The bytes of all other messages and the compression stay as they were.
"""

import hashlib
import re
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from mmap import mmap
from pathlib import Path
from typing import NamedTuple

import psycopg

from mail_assets.files import digest_file
from mail_assets.mail.archive.compression import archive_suffix, create_archive, unpacked
from mail_assets.mail.archive.mbox import RawMessage, find_dialect, split_archive
from mail_assets.mail.message.forgotten import Forgotten
from mail_assets.mail.message.ids import make_placeholder
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message
from mail_assets.month import ListMonth
from mail_assets.tables.mbox_archives import ArchiveRow, object_key
from mail_assets.tables.removals import (
    CutMessage,
    lock_for_load,
    read_cut,
    record_cut,
)
from mail_assets.tables.removed_messages import find_held, hide_ids, key_prefix
from mail_assets.workspace import StepError, Workspace

#: The blank line after a message.
_BLANK = re.compile(rb"\r?\n")


class CutContent(NamedTuple):
    """A message to cut out, and its removal; `is_first`: the first content under its id."""

    message_id: str
    content_hash: str
    removal: bytes
    is_first: bool


class Cuts(NamedTuple):
    """Ranges to cut, in order, with their messages; digests (`left`) and ids of those that stay."""

    ranges: list[tuple[int, int]]
    contents: list[CutContent]
    left: list[bytes]
    ids_left: set[str]


def reading_dialect(path: Path, known: str) -> str:
    """Return the `known` dialect of a file; detect it if empty (the archive has vanished)."""
    if known:
        return known
    with unpacked(path) as data:
        return find_dialect(data) or "plain"


def find_cuts(path: Path, month: ListMonth, dialect: str, forgotten: Forgotten) -> Cuts:
    """Return the messages to cut out of an archive, including their duplicates.

    Raises:
        ArchiveError: the file is damaged.
    """
    cuts = Cuts([], [], [], set())
    contents: defaultdict[str, set[str]] = defaultdict(set)
    for raw in split_archive(path, dialect):
        message = _parse(raw, month, dialect)
        removal = message and forgotten.removal_of(
            message.message_id, message.from_name, message.from_email
        )
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
    """Return a message, or None if it cannot be read; its author is unknown then."""
    try:
        return parse_message(raw, month=month.month, dialect=dialect)
    except UnreadableMessageError:
        return None


def write_without(path: Path, target: Path, dialect: str, cuts: Cuts) -> Path:
    """Write an archive without its cuts, with the same compression; return `target`.

    Raises:
        StepError: without the cut messages, other messages would change.
    """
    with unpacked(path) as data, create_archive(target, archive_suffix(path)) as file:
        for start, end in _kept_ranges(data, cuts.ranges):
            file.write(data[start:end])
    left = [hashlib.sha256(raw.raw).digest() for raw in split_archive(target, dialect)]
    if left != cuts.left:
        raise StepError(
            f"the archive cannot be cut: without the forgotten messages, other messages would "
            f"change ({len(left)} of {len(cuts.left)} found)"
        )
    return target


def store_archive(
    workspace: Workspace, month: ListMonth, path: Path, archive: ArchiveRow
) -> ArchiveRow:
    """Put an archive into the store without forgotten messages; return its row with the key.

    `sha256`, `bytes` and `found` of the row describe the stored file. `content_sha256` and
    `version` still describe the source's file, so that a fetch recognizes it.

    Raises:
        StepError: without the forgotten messages, other messages would change.
    """
    connection = workspace.connection
    forgotten = read_cut(connection, workspace.forget_key)
    with tempfile.TemporaryDirectory() as folder:
        if forgotten.messages or forgotten.senders:
            cuts = find_cuts(path, month, archive.dialect, forgotten)
            if cuts.ranges:
                path = write_without(path, Path(folder) / "archive", archive.dialect, cuts)
                archive = archive._replace(
                    sha256=digest_file(path), bytes=path.stat().st_size, found=len(cuts.left)
                )
                with connection.transaction():
                    lock_for_load(connection)
                    record_cuts(connection, month, cuts, forgotten)
        key = object_key(month, archive.sha256, archive_suffix(path))
        workspace.store.put(key, path)
    return archive._replace(object_key=key)


def record_cuts(
    connection: psycopg.Connection,
    month: ListMonth,
    cuts: Cuts,
    forgotten: Forgotten,
    known: Collection[str] = (),
) -> set[str]:
    """Record the messages that were cut out; call it in a transaction after lock_for_load.

    Messages with one of the `known` key prefixes are recorded already. The ids are hidden, except
    those that other mail also has. Return the ids that were first seen now, after their senders
    were forgotten.
    """
    ids = {one.message_id for one in cuts.contents}
    held = (ids & cuts.ids_left) | find_held(connection, ids)
    digests = {x: forgotten.digests.of_message(x) for x in ids - held}
    lost = [
        CutMessage(
            one.removal,
            digests.get(one.message_id),
            key_prefix(
                month,
                one.message_id,
                "" if one.is_first and one.message_id in digests else one.content_hash,
            ),
        )
        for one in cuts.contents
    ]
    record_cut(connection, month, [one for one in lost if one.key_prefix not in known])
    new = {
        x: make_placeholder(digest) for x, digest in digests.items() if digest not in forgotten.ids
    }
    if new:
        hide_ids(connection, new)
    return {*new}
