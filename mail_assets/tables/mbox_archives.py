"""The archives of months, the messages found in them, messages that they lost, former archives.

A file is never changed: its name contains its digest. It is deleted when neither the row of the
archive nor the messages that were read from it need it. The entries of an archive belong to the
partition of `messages`. A message whose digest is known is not parsed again while the versions of
the reading code are the same.
"""

import datetime as dt
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import psycopg

from mail_assets.mail.archive.compression import UnpackingError
from mail_assets.mail.body.endings import Ending
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import copy_rows, read_column, statement
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.partitions import Partition, read_state


class ArchiveRow(NamedTuple):
    """The archive of a month; `object_key` is its key in the store, None if the month has none.

    `dialect` is the one set in lists.toml, else `found_dialect`, which was detected. Both are empty
    without an archive. `list_id` is the List-Id of most of its messages, empty if most have none.
    """

    source: str
    object_key: str | None
    sha256: str
    bytes: int
    version: str
    found: int
    content_sha256: str
    dialect: str
    found_dialect: str
    list_id: str = ""


class KnownArchive(NamedTuple):
    """The version fetched last, "" for a month without an archive, and the time of the fetch."""

    version: str
    since: dt.datetime


def read_archive(connection: psycopg.Connection, month: ListMonth) -> ArchiveRow | None:
    """Return the archive of a month, None if it was never fetched."""
    row = connection.execute(statement("mbox_archives", "read"), month.columns).fetchone()
    return ArchiveRow(*row) if row else None


def read_archives(
    connection: psycopg.Connection, lists: Collection[str]
) -> dict[ListMonth, ArchiveRow]:
    """Return the archives of all months of some lists."""
    rows = connection.execute(statement("mbox_archives", "of_lists"), {"lists": [*lists]})
    return {ListMonth(name, month): ArchiveRow(*row) for name, month, *row in rows}


def write_archive(connection: psycopg.Connection, month: ListMonth, archive: ArchiveRow) -> None:
    """Record the archive of a month; write nothing if it is recorded."""
    connection.execute(statement("mbox_archives", "write"), {**month.columns, **archive._asdict()})


def known_archives(
    connection: psycopg.Connection, lists: Collection[str]
) -> dict[ListMonth, KnownArchive]:
    """Return the versions fetched last for all months of some lists."""
    rows = connection.execute(statement("mbox_archives", "known"), {"lists": [*lists]})
    return {ListMonth(name, month): KnownArchive(*known) for name, month, *known in rows}


def archived_months(connection: psycopg.Connection, list_name: str) -> list[ListMonth]:
    """Return the months that have an archive, or mail from a deleted archive, in order."""
    months = read_column(connection, statement("mbox_archives", "months"), {"list": list_name})
    return [ListMonth(list_name, month) for month in months]


def usual_list_ids(connection: psycopg.Connection, month: ListMonth, least: int) -> list[str]:
    """Return the List-Ids that at least `least` other months of the list have, by frequency."""
    values = {**month.columns, "least": least}
    return read_column(connection, statement("mbox_archives", "usual_list_ids"), values)


def prefix_of_messages(connection: psycopg.Connection, month: ListMonth) -> str:
    """Return the key prefix of the file that `messages` was read from; "" without messages."""
    state = read_state(connection, Partition("messages", month))
    sha256 = state.inputs.split()[0] if state else ""
    return f"{folder_key(month)}{sha256[:16]}." if sha256 not in ("", "none") else ""


def object_key(month: ListMonth, sha256: str, suffix: str) -> str:
    """Return the key of an archive in the store."""
    return f"{folder_key(month)}{sha256[:16]}.mbox{suffix}"


def folder_key(month: ListMonth) -> str:
    """Return the prefix of all files of a month's archive."""
    return f"archives/{month.list_name}/{month.month}/"


class KeptArchiveError(UnpackingError):
    """A stored archive cannot be read to its end; the message names the command to fetch it."""

    remedy = "run `mail-assets backfill --rebuild --only mbox_archives` for this month"


@contextmanager
def local_archive(store: ObjectStore, key: str) -> Iterator[Path]:
    """Yield a readable local path of an archive in the store.

    Raises:
        FileNotFoundError: the store has lost it.
        KeptArchiveError: reading it inside the `with` block found damage.
    """
    with ExitStack() as stack:
        try:
            path = stack.enter_context(store.fetch(key))
        except FileNotFoundError as error:
            missing = f"{store.url(key)} is missing from the archive store"
            raise FileNotFoundError(f"{missing}; {KeptArchiveError.remedy}") from error
        try:
            yield path
        except UnpackingError as error:
            if error.remedy != UnpackingError.remedy:
                raise
            raise KeptArchiveError(error.path, error.fault) from error


Outcome = Literal["stored", "duplicate", "quarantined", "removed"]


class ArchiveEntry(NamedTuple):
    """A message found in an archive.

    Its bytes are `archive[offset:offset + length]` of the uncompressed archive. The later fields
    are None for a quarantined or removed message.
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
        rows = cursor.execute(statement("mbox_archives", "read_entries"), month.columns).fetchall()
    return [ArchiveEntry(*row) for row in rows]


def drop_altered_entries(connection: psycopg.Connection, month: ListMonth) -> None:
    """Delete the entries of a month whose checksum does not match their columns."""
    connection.execute(statement("mbox_archives", "drop_altered_entries"), month.columns)


def replace_entries(
    connection: psycopg.Connection,
    month: ListMonth,
    former: Sequence[ArchiveEntry],
    entries: Sequence[ArchiveEntry],
) -> None:
    """Make the entries of a month equal to `entries`; write only those that differ."""
    kept = {*former} & {*entries}
    gone = [entry.ordinal for entry in former if entry not in kept]
    if gone:
        values = {**month.columns, "ordinals": gone}
        connection.execute(statement("mbox_archives", "delete_entries"), values)
    place = (month.list_name, month.month)
    new = ((*place, *entry) for entry in entries if entry not in kept)
    copy_rows(connection, statement("mbox_archives", "copy_entries"), new)


def pack_ending(ending: Ending, day: int) -> bytes:
    """Return an ending as 8-byte integers: its day, the length of its tail, and all lines."""
    numbers = (day, len(ending.tail), *ending.tail, *ending.own)
    return struct.pack(f"<{len(numbers)}q", *numbers)


def unpack_ending(data: bytes) -> tuple[Ending, int]:
    """Return the ending that `pack_ending` has packed, and its day."""
    day, count, *numbers = struct.unpack(f"<{len(data) // 8}q", data)
    return Ending(tuple(numbers[:count]), tuple(numbers[count:])), day


class Vanished(NamedTuple):
    """A message that its archive no longer has; `kept_until` is None if no former one is kept."""

    month: ListMonth
    noticed_at: dt.datetime
    kept_until: dt.datetime | None


def record_vanished(
    connection: psycopg.Connection,
    month: ListMonth,
    messages: Mapping[str, str],
    former_key: str,
) -> None:
    """Record messages (digest -> Message-ID) that only a former archive contains."""
    rows = [
        {**month.columns, "digest": digest, "message_id": message_id, "former_key": former_key}
        for digest, message_id in messages.items()
    ]
    with connection.cursor() as cursor:
        cursor.executemany(statement("mbox_archives", "record_lost"), rows)


def drop_returned(
    connection: psycopg.Connection, month: ListMonth, present: Collection[str]
) -> None:
    """Drop the records of lost messages that the archive contains again."""
    lost = read_column(connection, statement("mbox_archives", "lost_digests"), month.columns)
    if returned := [digest for digest in lost if digest in present]:
        values = {**month.columns, "digests": returned}
        connection.execute(statement("mbox_archives", "drop_returned"), values)


def find_vanished(connection: psycopg.Connection, message_id: str) -> list[Vanished]:
    """Return the months whose archives have lost a message."""
    values = {"message_id": message_id}
    rows = connection.execute(statement("mbox_archives", "losses_of_message"), values).fetchall()
    return [Vanished(ListMonth(name, month), *times) for name, month, *times in rows]


def delete_vanished(
    connection: psycopg.Connection, message_ids: Iterable[str]
) -> list[tuple[ListMonth, str]]:
    """Drop the records of lost messages that are forgotten; return their months and ids."""
    values = {"message_ids": [*message_ids]}
    rows = connection.execute(statement("mbox_archives", "delete_lost"), values).fetchall()
    return [(ListMonth(name, month), message_id) for name, month, message_id in rows]


def former_archives(
    connection: psycopg.Connection, removals: Collection[bytes], of_senders: bool
) -> dict[str, ListMonth]:
    """Return key -> month of the former archives that may contain mail of some removals.

    With `of_senders` these are the former archives of all months with a loss, because the senders
    of lost mail are not known.
    """
    values = {"removals": [*removals], "of_senders": of_senders}
    rows = connection.execute(statement("mbox_archives", "former_of_lost"), values).fetchall()
    return {key: ListMonth(name, month) for key, name, month in rows}


def keep_former(connection: psycopg.Connection, month: ListMonth, key: str, days: int) -> None:
    """Record that the file of an archive was replaced and is kept for `days` days."""
    values = {**month.columns, "object_key": key, "days": days}
    connection.execute(statement("mbox_archives", "keep_former"), values)


def kept_former(connection: psycopg.Connection, month: ListMonth) -> set[str]:
    """Return the keys of a month's former archives that are still kept."""
    return {*read_column(connection, statement("mbox_archives", "kept_former"), month.columns)}


def find_former(connection: psycopg.Connection, keys: Collection[str]) -> list[str]:
    """Return the keys of former archives among `keys` that are no month's current archive."""
    values = {"keys": [*keys]}
    return read_column(connection, statement("mbox_archives", "former_among"), values)


def expired_archives(connection: psycopg.Connection) -> dict[str, ListMonth]:
    """Return key -> month of the former archives that need not be kept any longer."""
    rows = connection.execute(statement("mbox_archives", "expired_former")).fetchall()
    return {key: ListMonth(name, month) for key, name, month in rows}


def replace_former(connection: psycopg.Connection, key: str, new_key: str) -> None:
    """Record that a former archive was stored again under another key."""
    values = {"object_key": key, "new_key": new_key}
    with connection.transaction():
        connection.execute(statement("mbox_archives", "replace_former"), values)
        connection.execute(statement("mbox_archives", "replace_former_key"), values)
        drop_former(connection, key)


def drop_former(connection: psycopg.Connection, key: str) -> None:
    """Drop the row of a former archive whose file is gone."""
    connection.execute(statement("mbox_archives", "drop_former"), {"object_key": key})
