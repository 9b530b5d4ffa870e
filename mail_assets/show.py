"""What `mail-assets show` prints of a message: text, raw bytes, chunks, vectors."""

import json
from collections.abc import Iterator

import psycopg

from mail_assets.mail.mbox import read_raw
from mail_assets.settings import Settings
from mail_assets.steps.vectors import index_spec
from mail_assets.store.archives import local_archive, read_archive
from mail_assets.store.chunks import read_message_chunks
from mail_assets.store.database import MAIL, embedded_dsn
from mail_assets.store.messages import show_message, utc
from mail_assets.store.objects import open_store
from mail_assets.vectors.bucket import open_bucket


def show_text(settings: Settings, connection: psycopg.Connection, message_id: str) -> Iterator[str]:
    """Yield the headers and the body of each copy."""
    for row in show_message(connection, message_id):
        yield "\n".join(
            (
                f"Archive: {row['list']} {row['month']}, offset {row['archive_offset']}, "
                f"{row['archive_length']} bytes",
                f"Message-ID: {row['message_id']}",
                f"Date: {utc(row['sent_at'])} (from {row['date_source']})",
                f"From: {row['from_name']} <{row['from_email']}>",
                f"To: {', '.join(row['recipients'])}",
                f"Subject: {row['subject']}",
                f"Thread: {row['thread_id']}, depth {row['depth']}, position {row['position']}",
                f"Parent: {row['parent_id'] or 'none'}",
                f"Flags: {', '.join(row['flags']) or 'none'}",
                *(f"Attachment: {a['name']} ({a['type']}, {a['size']} bytes)"
                  for a in row["attachments"]),
                "",
                row["body_text"],
            )
        )  # fmt: skip


def show_raw(
    settings: Settings, connection: psycopg.Connection, message_id: str
) -> Iterator[bytes]:
    """Yield the bytes of each copy as they stand in its archive, the From_ line first."""
    store = open_store(settings.store)
    for row in show_message(connection, message_id):
        archive = read_archive(connection, row["list"], row["month"])
        if archive and archive.object:
            with local_archive(store, archive.object) as path:
                yield read_raw(path, row["archive_offset"], row["archive_length"])


def show_chunks(
    settings: Settings, connection: psycopg.Connection, message_id: str
) -> Iterator[str]:
    """Yield each chunk as a line of JSON."""
    for chunk in read_message_chunks(connection, message_id):
        yield json.dumps(chunk, ensure_ascii=False)


def show_vectors(
    settings: Settings, connection: psycopg.Connection, message_id: str
) -> Iterator[str]:
    """Yield each vector that the bucket has, with what it carries, as a line of JSON."""
    pgvector = settings.vectors.startswith("pgvector:")
    dsn = (settings.pg_dsn or embedded_dsn(settings.home, MAIL)) if pgvector else None
    bucket = open_bucket(settings.vectors, dsn=dsn)
    index = bucket.index(index_spec(settings.encoder, settings.precision))
    keys = [chunk["key"] for chunk in read_message_chunks(connection, message_id)]
    for key, vector in index.get(keys, data=True).items():
        values = [round(float(value), 6) for value in vector.values]
        yield json.dumps({"key": key, "metadata": vector.metadata, "values": values})
