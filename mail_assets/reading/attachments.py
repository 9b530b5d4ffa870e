"""Read the bytes and the attachments of a message from its archive."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import psycopg

from mail_assets.errors import UnavailableError
from mail_assets.mail.archive.mbox import extract_message, read_range
from mail_assets.mail.message.body import read_attached_file
from mail_assets.month import ListMonth
from mail_assets.store.objects import ObjectStore, StoreError
from mail_assets.tables.mbox_archives import folder_key, local_archive
from mail_assets.tables.partitions import Partition, read_state


def read_raw_message(
    connection: psycopg.Connection, store: ObjectStore, month: ListMonth, offset: int, length: int
) -> bytes:
    """Return the bytes of a message with its From_ line; offset and length are in bytes.

    Raises:
        StoreError: the archive that the messages of the month were read from is gone.
    """
    key, _ = archive_of_messages(connection, store, month)
    with local_archive(store, key) as path:
        return read_range(path, offset, length)


def read_parsed_bytes(
    connection: psycopg.Connection, store: ObjectStore, month: ListMonth, offset: int, length: int
) -> bytes:
    """Return header and body of a message for the parser, without From_ line and mbox quoting.

    Raises:
        StoreError: the archive that the messages of the month were read from is gone.
    """
    key, dialect = archive_of_messages(connection, store, month)
    with local_archive(store, key) as path:
        return extract_message(read_range(path, offset, length), dialect)


def archive_of_messages(
    connection: psycopg.Connection, store: ObjectStore, month: ListMonth
) -> tuple[str, str]:
    """Return the key and the dialect of the file from which the rows of a month were read.

    mbox_archives may have fetched a newer file. Offsets point into the file that `messages` has
    read; it is kept as long as the rows need it.

    Raises:
        StoreError: the file is gone.
    """
    state = read_state(connection, Partition("messages", month))
    sha256, dialect = state.inputs.split()[:2] if state else ("", "")
    key = next(store.keys(f"{folder_key(month)}{sha256[:16]}."), None)
    if not sha256 or key is None:
        raise StoreError(
            f"{month}: the archive of its messages is missing from the archive store; "
            f"run {_rebuild(month)}"
        )
    return key, dialect


class AttachmentError(UnavailableError):
    """An attachment does not exist or cannot be read."""

    notice = "the archive of this message cannot be read at the moment"


class AttachmentContent(NamedTuple):
    """A decoded attachment. The sender chose name and type; folders are removed from the name."""

    name: str
    type: str
    data: bytes


def read_attachment(
    connection: psycopg.Connection,
    store: ObjectStore,
    copies: Iterable[Mapping[str, Any]],
    number: int,
) -> AttachmentContent:
    """Return the attachment with a number, from 1, of the first copy that has it.

    `copies` are the rows of a message from show_message().

    Raises:
        AttachmentError: no copy has such an attachment, or its bytes differ from its row.
        StoreError: the archive that the messages of the month were read from is gone.
    """
    copies = list(copies)
    copy = next((row for row in copies if 1 <= number <= len(row["attachments"])), None)
    if copy is None:
        raise AttachmentError(_name_what_exists(copies, number))
    about = copy["attachments"][number - 1]
    month = ListMonth(copy["list"], copy["month"])
    raw = read_parsed_bytes(
        connection, store, month, copy["archive_offset"], copy["archive_length"]
    )
    data = read_attached_file(raw, number)
    if data is None or hashlib.sha256(data).hexdigest() != about["sha256"]:
        raise AttachmentError(
            f"message {copy['message_id']}: attachment {number} differs from its row in {month}; "
            f"run {_rebuild(month)}"
        )
    return AttachmentContent(about["name"], about["type"], data)


def _rebuild(month: ListMonth) -> str:
    span = f"--from {month.month} --to {month.month}"
    return f"mail-assets backfill --list {month.list_name} {span} --rebuild"


def _name_what_exists(copies: Iterable[Mapping[str, Any]], number: int) -> str:
    first = max(copies, key=lambda row: len(row["attachments"]))
    names = [part["name"] or part["type"] for part in first["attachments"]]
    listed = ", ".join(f"{at} ({name})" for at, name in enumerate(names, 1))
    found = f"it has {listed}" if listed else "it has none"
    return f"message {first['message_id']} has no attachment {number}: {found}"
