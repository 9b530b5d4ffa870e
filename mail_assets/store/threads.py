"""The rows of threads: reading what threads are made from, writing the difference."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import psycopg

from mail_assets.mail.threads import Node, ThreadMessage
from mail_assets.store.statements import statement


class Rebuilt(NamedTuple):
    """Rows written and deleted, and a digest over all rows."""

    written: int
    deleted: int
    digest: str


def read_references(connection: psycopg.Connection) -> Iterator[ThreadMessage]:
    """Yield what each stored message says of its place, in no order."""
    with connection.transaction(), connection.cursor("references") as cursor:
        cursor.execute(statement("threads", "references"))
        for message_id, references, in_reply_to, sent_at in cursor:
            yield ThreadMessage(message_id, tuple(references), tuple(in_reply_to), sent_at)


def replace_threads(connection: psycopg.Connection, nodes: Iterable[Node]) -> Rebuilt:
    """Make the rows equal to `nodes`; call it inside a transaction."""
    digest = hashlib.sha256()
    connection.execute(statement("threads", "stage"))
    with connection.cursor() as cursor, cursor.copy(statement("threads", "copy")) as copy:
        for n in nodes:
            row = (
                *(n.message_id, n.thread_id, n.parent_id, n.parent_message_id),
                *(n.root_id, n.depth, n.position, n.is_ghost),
            )
            digest.update(repr(row).encode())
            copy.write_row(row)
    connection.execute(statement("threads", "analyze_stage"))
    written = connection.execute(statement("threads", "upsert")).rowcount
    deleted = connection.execute(statement("threads", "delete_vanished")).rowcount
    return Rebuilt(written, deleted, digest.hexdigest())


def count_threads(connection: psycopg.Connection) -> int:
    """Return the number of threads."""
    row = connection.execute(statement("threads", "count")).fetchone()
    return int(row[0]) if row else 0
