"""The rows of archive_entries: each message found in an archive, its place and its fate.

They belong to the partition of messages. What is known of bytes is known by their digest, as long
as the same versions read them.
"""

import struct
from collections.abc import Sequence
from typing import Literal, NamedTuple

import psycopg

from mail_assets.mail.body.footers import Ending
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement

Outcome = Literal["stored", "duplicate", "quarantined", "removed"]


class ArchiveEntry(NamedTuple):
    """A message found in an archive.

    `archive[offset:offset + length]` of the uncompressed archive are its bytes. Of what was
    quarantined or removed nothing else is known.
    """

    ordinal: int
    offset: int
    length: int
    digest: bytes
    outcome: Outcome
    message_id: str | None = None
    variant: int | None = None
    content_hash: str | None = None
    outline: bytes | None = None
    ending: bytes | None = None


def read_entries(connection: psycopg.Connection, month: ListMonth) -> list[ArchiveEntry]:
    """Return the entries of a month in their order."""
    with connection.cursor(binary=True) as cursor:
        rows = cursor.execute(statement("archive_entries", "read"), month.columns).fetchall()
    return [ArchiveEntry(*row) for row in rows]


def replace_entries(
    connection: psycopg.Connection,
    month: ListMonth,
    former: Sequence[ArchiveEntry],
    entries: Sequence[ArchiveEntry],
) -> None:
    """Make the entries of a month equal to `entries`; only those that differ are written."""
    kept = {*former} & {*entries}
    gone = [entry.ordinal for entry in former if entry not in kept]
    if gone:
        connection.execute(
            statement("archive_entries", "delete"), {**month.columns, "ordinals": gone}
        )
    new = [entry for entry in entries if entry not in kept]
    if not new:
        return
    place = (month.list_name, month.month)
    copy_in = statement("archive_entries", "copy")
    with connection.cursor() as cursor, cursor.copy(copy_in) as copy:
        for entry in new:
            copy.write_row((*place, *entry))


def pack_ending(ending: Ending) -> bytes:
    """Return an ending as bytes: the number of lines of its tail, then all lines, 8 bytes each."""
    numbers = (len(ending.tail), *ending.tail, *ending.own)
    return struct.pack(f"<{len(numbers)}q", *numbers)


def unpack_ending(data: bytes) -> Ending:
    """Return what `pack_ending` has packed."""
    count, *numbers = struct.unpack(f"<{len(data) // 8}q", data)
    return Ending(tuple(numbers[:count]), tuple(numbers[count:]))
