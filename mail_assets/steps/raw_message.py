"""The bytes of a message as its archive has them."""

import psycopg

from mail_assets.mail.archive.mbox import read_range
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
    with local_archive(store, _archive_of_messages(connection, store, month)) as path:
        return read_range(path, offset, length)


def _archive_of_messages(
    connection: psycopg.Connection, store: ObjectStore, month: ListMonth
) -> str:
    """Return the key of the file that the rows of a month were read from.

    Not that of mbox_archives, which may have been fetched again since: offsets point into the
    file that messages has read, and it is kept for as long.
    """
    state = read_state(connection, Partition("messages", month))
    sha256 = state.inputs.split()[0] if state else ""
    key = next(store.keys(f"{folder_key(month)}{sha256[:16]}."), None)
    if not sha256 or key is None:
        raise StoreError(
            f"{month}: the archive of its messages is missing from the archive store; "
            "materialize mbox_archives and messages for this month again"
        )
    return key
