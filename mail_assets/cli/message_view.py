"""What `mail-assets show` prints of a message: text, raw bytes, chunks, vectors."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import psycopg

from mail_assets.mail.archive.mbox import read_range
from mail_assets.mail.message.forgotten import message_digest
from mail_assets.mail.message.ids import find_ids
from mail_assets.month import ListMonth
from mail_assets.settings.environment import Settings
from mail_assets.store.objects import ObjectStore, StoreError
from mail_assets.store.open import open_store
from mail_assets.tables.chunks import read_message_chunks
from mail_assets.tables.mbox_archives import folder_key, local_archive
from mail_assets.tables.messages import show_message, utc
from mail_assets.tables.partitions import Partition, read_state
from mail_assets.tables.removals import read_forgotten

#: A row of messages with its thread: one for each list, month and content.
CopyRow = Mapping[str, Any]


def typed_id(text: str) -> str:
    """Return the id that somebody typed, as it is stored; brackets may stand around.

    An id beyond what is stored is looked up by its hash, as replies to it are.
    """
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes of the command line that are no UTF-8
        return ""
    inner = text.strip().removeprefix("<").removesuffix(">")
    return next(iter(find_ids(f"<{inner}>")), inner)


def find_copies(connection: psycopg.Connection, message_id: str) -> list[CopyRow]:
    """Return every copy of a message, by list, month and variant."""
    return [*show_message(connection, typed_id(message_id))]


def was_forgotten(connection: psycopg.Connection, message_id: str) -> bool:
    """Say whether a message is not shown because it was forgotten."""
    return message_digest(typed_id(message_id)) in read_forgotten(connection).ids


def show_text(copies: Iterable[CopyRow]) -> Iterator[str]:
    """Yield the headers and the body of each copy."""
    for row in copies:
        thread = row["thread_id"] and (
            f"{row['thread_id']}, depth {row['depth']}, position {row['position']}"
        )
        yield "\n".join(
            (
                f"Archive: {row['list']} {row['month']}, offset {row['archive_offset']}, "
                f"{row['archive_length']} bytes",
                f"Message-ID: {row['message_id']}",
                f"Date: {utc(row['sent_at'])} (from {row['date_source']})",
                f"From: {row['from_name']} <{row['from_email']}>",
                f"To: {', '.join(row['recipients'])}",
                f"Subject: {row['subject']}",
                f"Thread: {thread or 'none'}",
                f"Parent: {row['parent_id'] or 'none'}",
                f"Flags: {', '.join(row['flags']) or 'none'}",
                *(f"Attachment: {a['name']} ({a['type']}, {a['size']} bytes)"
                  for a in row["attachments"]),
                "",
                row["body_text"],
            )
        )  # fmt: skip


def show_raw(
    settings: Settings, connection: psycopg.Connection, copies: Iterable[CopyRow]
) -> Iterator[bytes]:
    """Yield the bytes of each copy as they stand in its archive, the From_ line first."""
    store = open_store(settings.store)
    for row in copies:
        key = _archive_of_messages(connection, store, ListMonth(row["list"], row["month"]))
        with local_archive(store, key) as path:
            yield read_range(path, row["archive_offset"], row["archive_length"])


def show_chunks(
    connection: psycopg.Connection, copies: Iterable[CopyRow]
) -> Iterator[dict[str, Any]]:
    """Yield the chunks of all copies, with their places and spans."""
    for message_id in sorted({row["message_id"] for row in copies}):
        yield from read_message_chunks(connection, message_id)


def show_vectors(
    settings: Settings, connection: psycopg.Connection, copies: Iterable[CopyRow]
) -> Iterator[dict[str, Any]]:
    """Yield each vector that the live index has, with what it carries."""
    from mail_assets.search.open import open_index
    from mail_assets.steps.index_lifecycle import live_encoder

    live = live_encoder(connection, settings.vectors, settings.encoder, settings.precision)
    index = open_index(settings.database, settings.vectors, *live)
    keys = [chunk["key"] for chunk in show_chunks(connection, copies)]
    for key, vector in index.get(keys, data=True).items():
        values = [round(float(value), 6) for value in vector.values]
        yield {"key": key, "metadata": vector.metadata, "values": values}


def _archive_of_messages(
    connection: psycopg.Connection, store: ObjectStore, month: ListMonth
) -> str:
    """Return the key of the file that the rows of a month were read from.

    Not that of mbox_archives, which may have been fetched anew since: offsets point into the
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
