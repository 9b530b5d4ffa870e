"""The rows of removals: what must stay out, as keyed digests (see mail/message/forgotten.py)."""

import datetime as dt
from collections.abc import Callable, Collection
from typing import Any, Literal, NamedTuple

import psycopg

from mail_assets.mail.message.forgotten import NOBODY, Forgotten, stand_in
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.tables.forget_keys import (
    KeySource,
    has_old_digests,
    read_digests,
    settle_digests,
)

#: Stands behind the inputs of a month that must be loaded again: removals were taken back.
LOAD_AGAIN = ", with other removals since"

#: Stands there where a message was forgotten: the next load may learn other footers from the rest.
LESS = ", less what was forgotten since"


class Removal(NamedTuple):
    """An entry: what stays out, why, who removed it and when, and how many copies were left out."""

    digest: bytes
    kind: Literal["message", "sender"]
    reason: str
    removed_by: str
    removed_at: dt.datetime
    copies: int


def lock_for_load(connection: psycopg.Connection) -> None:
    """Keep removals from being added until the transaction ends, as other loads may too."""
    connection.execute(statement("removals", "lock_for_load"))


def lock_for_forgetting(
    connection: psycopg.Connection, report_wait: Callable[[], None] | None = None
) -> None:
    """Wait for the loads that run, and keep others out until the transaction ends.

    `report_wait` is called where there are such loads.
    """
    row = connection.execute(statement("removals", "try_lock_for_forgetting")).fetchone()
    if row and row[0]:
        return
    if report_wait:
        report_wait()
    connection.execute(statement("removals", "lock_for_forgetting"))


def key_old_digests(connection: psycopg.Connection, source: KeySource) -> None:
    """Give digests of a version that had no key one; call it outside a transaction.

    Raises:
        ForgetKeyError: this machine must not choose the key.
    """
    if has_old_digests(connection):
        with connection.transaction():
            lock_for_forgetting(connection)
            settle_digests(connection, source)


def read_forgotten(connection: psycopg.Connection, source: KeySource) -> Forgotten:
    """Return what must stay out.

    Raises:
        ForgetKeyError: this machine has not the key of its digests.
    """
    digests = read_digests(connection, source)
    if digests is None:
        return Forgotten()
    rows = connection.execute(statement("removals", "forgotten")).fetchall()
    ids = connection.execute(statement("removals", "forgotten_ids")).fetchall()
    return Forgotten(
        frozenset(digest for message, digest in rows if message),
        frozenset(digest for message, digest in rows if not message),
        frozenset(digest for (digest,) in ids),
        digests,
    )


def find_stand_in(connection: psycopg.Connection, source: KeySource, message_id: str) -> str | None:
    """Return what stands for a forgotten message in threads, None where it is not forgotten.

    Raises:
        ForgetKeyError: this machine has not the key of the digests.
    """
    forgotten = read_forgotten(connection, source)
    if not forgotten.hides_id(message_id):
        return None
    return stand_in(forgotten.digests.of_message(message_id))


def list_removals(connection: psycopg.Connection) -> list[Removal]:
    """Return the list of removals, the oldest first."""
    return [Removal(*row) for row in connection.execute(statement("removals", "list")).fetchall()]


class NewRemoval(NamedTuple):
    """An entry to be made; with `cut` archives are stored without it too."""

    digest: bytes
    kind: str
    reason: str
    removed_by: str
    cut: bool = False


def add_removal(connection: psycopg.Connection, removal: NewRemoval) -> None:
    """Add an entry; one that is there already stays as it is, but for `cut`."""
    connection.execute(statement("removals", "add"), removal._asdict())


def withdraw_removals(
    connection: psycopg.Connection, digests: Collection[bytes]
) -> tuple[int, list[ListMonth]]:
    """Delete entries; return how many, and the months that must be loaded again."""
    parameters = {"digests": [*digests]}
    ids = connection.execute(statement("removals", "hidden_digests"), parameters).fetchall()
    months = _mark_for_reload(connection, digests, {*digests, *(x for (x,) in ids)})
    months += connection.execute(statement("cut_messages", "fetch_again"), parameters).fetchall()
    connection.execute(statement("cut_messages", "delete"), parameters)
    connection.execute(statement("removals", "reveal_ids"), parameters)
    count = connection.execute(statement("removals", "delete"), parameters).rowcount
    return count, sorted({ListMonth(*row) for row in months})


def show_ids(connection: psycopg.Connection, digests: Collection[bytes]) -> None:
    """Hide ids no longer, in a transaction: a stored message has them too.

    The months that name them by a stand-in are loaded again.
    """
    parameters = {"digests": [*digests]}
    removed = connection.execute(statement("removals", "show_removed"), parameters).rowcount
    cut = connection.execute(statement("removals", "show_cut"), parameters).rowcount
    if removed or cut:
        _mark_for_reload(connection, (), digests)


def _mark_for_reload(
    connection: psycopg.Connection, removals: Collection[bytes], hidden: Collection[bytes]
) -> list[tuple[Any, ...]]:
    """Have the months loaded again that left something out for removals, or name hidden ids.

    Return their lists and months.
    """
    marked = {
        "digests": [*removals],
        "stand_ins": sorted(map(stand_in, hidden)),
        "nobody": NOBODY.email,
        "load_again": LOAD_AGAIN,
    }
    months = connection.execute(statement("removals", "mark_for_reload"), marked).fetchall()
    connection.execute(statement("removals", "mark_rows"), marked)
    return months
