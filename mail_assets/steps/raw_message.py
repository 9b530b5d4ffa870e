"""The bytes of a message as its archive has them."""

import psycopg

from mail_assets.mail.archive.mbox import extract_message, read_range
from mail_assets.month import ListMonth
from mail_assets.store.objects import ObjectStore, StoreError
from mail_assets.tables.mbox_archives import folder_key, local_archive
from mail_assets.tables.partitions import Partition, read_state


def read_raw_message(
    connection: psycopg.Connection, store: ObjectStore, month: ListMonth, offset: int, length: int
) -> bytes:
    """Return the bytes of a message, the From_ line first; offset and length are in bytes.

    Raises:
        StoreError: the archive that the messages of the month were read from is gone.
    """
    key, _ = _archive_of_messages(connection, store, month)
    with local_archive(store, key) as path:
        return read_range(path, offset, length)


def read_parsed_bytes(
    connection: psycopg.Connection, store: ObjectStore, month: ListMonth, offset: int, length: int
) -> bytes:
    """Return header and body of a message as the parser had them: no From_ line, no quoting.

    Raises:
        StoreError: the archive that the messages of the month were read from is gone.
    """
    key, dialect = _archive_of_messages(connection, store, month)
    with local_archive(store, key) as path:
        return extract_message(read_range(path, offset, length), dialect)


def _archive_of_messages(
    connection: psycopg.Connection, store: ObjectStore, month: ListMonth
) -> tuple[str, str]:
    """Return the key of the file that the rows of a month were read from, and its dialect.

    Not that of mbox_archives, which may have been fetched again since: offsets point into the
    file that messages has read, and it is kept for as long.
    """
    state = read_state(connection, Partition("messages", month))
    sha256, dialect = state.inputs.split()[:2] if state else ("", "")
    key = next(store.keys(f"{folder_key(month)}{sha256[:16]}."), None)
    if not sha256 or key is None:
        raise StoreError(
            f"{month}: the archive of its messages is missing from the archive store; "
            "materialize mbox_archives and messages for this month again"
        )
    return key, dialect
