"""The rows of patches: reading the messages with patches, and writing a month."""

import datetime as dt
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import tuple_row
from psycopg.types.json import Jsonb

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.message.forgotten import NOBODY
from mail_assets.mail.patches.patch import MailedPatch
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import copy_rows, read_value, statement
from mail_assets.tables.partitions import RowChanges

#: Bodies fetched at once: up to 1 MB each, most have 10 KB.
MESSAGES_AT_A_TIME = 100


class PatchSource(NamedTuple):
    """A message that may have patches; offset and length of its bytes if a patch is attached."""

    message_id: str
    variant: int
    subject: str
    from_name: str
    from_email: str
    sent_at: dt.datetime
    in_reply_to: tuple[str, ...]
    body_text: str
    segments: list[Segment]
    offset: int | None
    length: int | None


class StoredPatch(NamedTuple):
    """A row of patches: the patch, and the copy of its message."""

    month: ListMonth
    variant: int
    patch: MailedPatch


def read_sources(connection: psycopg.Connection, month: ListMonth) -> Iterator[PatchSource]:
    """Yield the messages of a month that may have patches, inside a transaction.

    The cursor is on the server, so that a month of large messages need not fit into memory.
    """
    with connection.cursor("patch_messages", row_factory=tuple_row) as cursor:
        cursor.itersize = MESSAGES_AT_A_TIME
        for row in cursor.execute(statement("patches", "messages"), month.columns):
            source = PatchSource(*row)
            segments = [Segment(*part) for part in source.segments]
            answers = tuple(source.in_reply_to)
            yield source._replace(in_reply_to=answers, segments=segments)


def replace_patches(
    connection: psycopg.Connection, month: ListMonth, rows: Iterable[StoredPatch]
) -> RowChanges:
    """Make the patches of a month equal to `rows`; call it inside a transaction.

    `rows` may read from the same connection while it is iterated.
    """
    connection.execute(statement("patches", "stage"))
    copy_rows(connection, statement("patches", "copy"), map(_columns, rows))
    connection.execute(statement("patches", "analyze_stage"))
    gone = int(read_value(connection, statement("patches", "count_gone"), month.columns) or 0)
    connection.execute(statement("patches", "delete_other"), month.columns)
    written = connection.execute(statement("patches", "insert_new")).rowcount
    digest = str(read_value(connection, statement("patches", "digest"), month.columns))
    return RowChanges(written, gone, digest)


def _columns(row: StoredPatch) -> tuple[Any, ...]:
    month, variant, one = row
    return (
        *(month.list_name, month.month, one.message_id, variant, one.place),
        *(one.kind, one.source, one.file_name, one.subject, one.title, one.title_key),
        *([*one.tags], one.version, one.part, one.parts),
        *(one.author_name, one.author_email, one.sent_at, one.patch_id),
        Jsonb([asdict(file) for file in one.files]),
        *(one.file_count, one.added, one.removed, [*one.line_digests]),
        *(one.base_commit, [*one.named_commits], one.change_id),
        Jsonb([[link.version, link.message_id] for link in one.links]),
        *([*one.changelog], one.malformed, [*one.flags]),
    )


def hide_in_patches(
    connection: psycopg.Connection, message_ids: Collection[str], addresses: Collection[str]
) -> None:
    """In a transaction, remove links to messages and names of authors (lower-case `addresses`)."""
    places = connection.execute(
        statement("patches", "hide_links"), {"message_ids": [*message_ids]}
    ).fetchall()
    places += connection.execute(
        statement("patches", "hide_authors"),
        {"addresses": [*addresses], "nobody": NOBODY.email},
    ).fetchall()
    if places:
        lists, months = map(list, zip(*places, strict=True))
        connection.execute(statement("patches", "settle"), {"lists": lists, "months": months})
