"""What was forgotten: the list of removals, and the messages that each month leaves out.

Everything stands here as digests; see mail/message/forgotten.py. What does not live here: what
else a message leaves behind, in files and indexes (steps/forget_messages.py).
"""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, NamedTuple

import psycopg

from mail_assets.mail.message.forgotten import Forgotten, stand_in
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.tables.chunks import chunk_key

#: The statements that hide an id, in their order: threads are needed until others lead on.
HIDE_STATEMENTS = (
    *("threads_lock", "hide", "note_threads", "lead_on", "lead_elsewhere"),
    *("forget_aliases", "forget_threads", "forget_changes"),
)


class Removal(NamedTuple):
    """One entry of the list: what stays out, why, who said so and when; copies left out."""

    digest: bytes
    kind: Literal["message", "sender"]
    reason: str
    removed_by: str
    removed_at: dt.datetime
    copies: int


class Removed(NamedTuple):
    """A message that an archive holds and its month leaves out, for a removal.

    `message_digest` is None for a second content under an id that stays.
    """

    ordinal: int
    removal: bytes
    message_digest: bytes | None
    key_prefix: str


class Copy(NamedTuple):
    """A row of messages that is to go."""

    month: ListMonth
    message_id: str
    variant: int
    content_hash: str
    ordinal: int
    from_email: str

    @property
    def key_prefix(self) -> str:
        """What the keys of its chunks begin with."""
        variant_hash = self.content_hash if self.variant else ""
        return key_prefix(self.month, self.message_id, variant_hash)


def key_prefix(month: ListMonth, message_id: str, variant_hash: str) -> str:
    """Return what the keys of a message's chunks begin with, up to the "#"."""
    return chunk_key(month, message_id, variant_hash, 0).partition("#")[0]


def lock_for_load(connection: psycopg.Connection) -> None:
    """Keep removals from being added until the transaction ends, as other loads may too."""
    connection.execute(statement("removals", "load_lock"))


def lock_for_forgetting(connection: psycopg.Connection) -> None:
    """Wait for the loads that run, and keep others out until the transaction ends."""
    connection.execute(statement("removals", "forget_lock"))


def read_forgotten(connection: psycopg.Connection) -> Forgotten:
    """Return what must stay out."""
    rows = connection.execute(statement("removals", "forgotten")).fetchall()
    ids = connection.execute(statement("removals", "forgotten_ids")).fetchall()
    return Forgotten(
        frozenset(digest for message, digest in rows if message),
        frozenset(digest for message, digest in rows if not message),
        frozenset(digest for (digest,) in ids),
    )


def list_removals(connection: psycopg.Connection) -> list[Removal]:
    """Return the list of removals, the oldest first."""
    return [Removal(*row) for row in connection.execute(statement("removals", "list")).fetchall()]


def add_removal(
    connection: psycopg.Connection, digest: bytes, kind: str, reason: str, removed_by: str
) -> None:
    """Add an entry to the list; one that stands there stays as it is."""
    connection.execute(
        statement("removals", "add"),
        {"digest": digest, "kind": kind, "reason": reason, "removed_by": removed_by},
    )


def take_back(
    connection: psycopg.Connection, digests: Collection[bytes]
) -> tuple[int, list[ListMonth]]:
    """Delete entries; return how many, and the months that are to be loaded again for them."""
    parameters = {"digests": [*digests]}
    ids = connection.execute(statement("removals", "stand_ins"), parameters).fetchall()
    stand_ins = sorted({stand_in(digest) for digest in (*digests, *(x for (x,) in ids))})
    months = connection.execute(
        statement("removals", "load_again"), {**parameters, "stand_ins": stand_ins}
    ).fetchall()
    connection.execute(statement("removals", "show_ids"), parameters)
    count = connection.execute(statement("removals", "take_back"), parameters).rowcount
    return count, sorted(ListMonth(*row) for row in months)


def find_copies(
    connection: psycopg.Connection, message_ids: Collection[str], senders: Collection[str]
) -> list[Copy]:
    """Return the rows of some messages, and of all mail of some senders, in lower case."""
    rows = connection.execute(
        statement("removals", "copies"), {"message_ids": [*message_ids], "senders": [*senders]}
    ).fetchall()
    return [Copy(ListMonth(list_name, month), *rest) for list_name, month, *rest in rows]


def delete_copies(connection: psycopg.Connection, copies: Collection[Copy]) -> int:
    """Delete rows of messages, and their chunks; return the number of chunks."""
    connection.execute(
        statement("removals", "delete_messages"),
        {
            "lists": [copy.month.list_name for copy in copies],
            "months": [copy.month.month for copy in copies],
            "message_ids": [copy.message_id for copy in copies],
            "variants": [copy.variant for copy in copies],
        },
    )
    return connection.execute(
        statement("removals", "delete_chunks"),
        {
            "key_prefixes": [copy.key_prefix for copy in copies],
            "message_ids": [copy.message_id for copy in copies],
        },
    ).rowcount


def record_removed(
    connection: psycopg.Connection, month: ListMonth, removed: Iterable[Removed]
) -> None:
    """Record messages that a month leaves out."""
    with connection.cursor() as cursor:
        cursor.executemany(
            statement("removals", "remove"),
            [{**month.columns, **row._asdict()} for row in removed],
        )


def clear_removed(connection: psycopg.Connection, month: ListMonth) -> None:
    """Forget what a month left out: it is about to be loaded anew."""
    connection.execute(statement("removals", "clear_removed"), month.columns)


def hide_ids(connection: psycopg.Connection, stand_ins: Mapping[str, str]) -> None:
    """Put stand-ins for forgotten ids into the mail of others, and take them from the threads.

    The threads that they stood in are noted to be built anew. Inside a transaction.
    """
    parameters = {"message_ids": [*stand_ins], "stand_ins": [*stand_ins.values()]}
    for name in HIDE_STATEMENTS:
        connection.execute(statement("removals", name), parameters)


def recount(connection: psycopg.Connection, month: ListMonth) -> None:
    """Make the figures of a month those of what it holds now."""
    connection.execute(statement("removals", "recount"), month.columns)


def removed_months(connection: psycopg.Connection) -> list[ListMonth]:
    """Return the months that leave something out."""
    rows = connection.execute(statement("removals", "months")).fetchall()
    return [ListMonth(*row) for row in rows]


def unwanted_keys(connection: psycopg.Connection) -> dict[str, list[str]]:
    """Return the keys of removed messages in the manifest, by its name for an index."""
    return dict(connection.execute(statement("removals", "unwanted")).fetchall())


def read_text_hashes(connection: psycopg.Connection, month: ListMonth) -> set[bytes]:
    """Return the hashes of all texts of a month."""
    parameters = month.columns
    rows = connection.execute(statement("removals", "text_hashes"), parameters).fetchall()
    return {text_hash for (text_hash,) in rows}
