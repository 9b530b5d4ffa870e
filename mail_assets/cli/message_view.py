"""What `mail-assets show` prints of the copies of a message."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import psycopg

from mail_assets.cli.output import printable, printable_line
from mail_assets.settings.environment import Settings
from mail_assets.tables.chunks import read_message_chunks
from mail_assets.tables.messages import utc
from mail_assets.tables.removed_upstream import Vanished

#: A row of messages with its thread: one for each list, month and content.
CopyRow = Mapping[str, Any]


def format_message(row: CopyRow) -> str:
    """Return headers and body of a copy, its place and its thread first."""
    thread = row["thread_id"] and (
        f"{row['thread_id']}, depth {row['depth']}, position {row['position']}"
    )
    fields = {
        "Archive": f"{row['list']} {row['month']}, offset {row['archive_offset']}, "
        f"{row['archive_length']} bytes",
        "Message-ID": row["message_id"],
        "Date": f"{utc(row['sent_at'])} (from {row['date_source']})",
        "From": f"{row['from_name']} <{row['from_email']}>",
        "To": ", ".join(row["recipients"]),
        "Subject": row["subject"],
        "Thread": thread or "none",
        "Parent": row["parent_id"] or "none",
        "Flags": ", ".join(row["flags"]) or "none",
    }
    lines = [f"{name}: {printable_line(value)}".rstrip() for name, value in fields.items()]
    for number, part in enumerate(row["attachments"], 1):
        name = printable_line(part["name"]) or "without a name"
        kind = printable_line(part["type"])
        size, digest = part["size"], part["sha256"]
        lines.append(f"Attachment {number}: {name} ({kind}, {size} bytes, sha256 {digest})")
    return "\n".join([*lines, "", printable(row["body_text"])])


def format_vanished(message_id: str, vanished: Vanished) -> str:
    """Return where a message was, and how long the archive is kept that still has it."""
    until = vanished.kept_until
    kept = f"its former archive is kept until {until:%Y-%m-%d}" if until else "no archive has it"
    return (
        f"message {message_id} of {vanished.month} was removed upstream, "
        f"noticed {vanished.noticed_at:%Y-%m-%d}; {kept}"
    )


def read_chunks(
    connection: psycopg.Connection, copies: Iterable[CopyRow]
) -> Iterator[dict[str, Any]]:
    """Yield the chunks of all copies, with their places and spans."""
    for message_id in sorted({row["message_id"] for row in copies}):
        yield from read_message_chunks(connection, message_id)


def read_vectors(
    settings: Settings, connection: psycopg.Connection, copies: Iterable[CopyRow]
) -> Iterator[dict[str, Any]]:
    """Yield each vector of the copies in the live index: key, metadata and values."""
    from mail_assets.search.open import open_index
    from mail_assets.steps.index_lifecycle import live_encoder

    live = live_encoder(connection, settings.vectors, settings.encoder, settings.precision)
    index = open_index(settings.database, settings.vectors, *live)
    keys = [chunk["key"] for chunk in read_chunks(connection, copies)]
    for key, vector in index.get(keys, data=True).items():
        values = [round(float(value), 6) for value in vector.values]
        yield {"key": key, "metadata": vector.metadata, "values": values}
