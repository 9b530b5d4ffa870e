"""The archives as fetched: rows of mbox_archives, and how their files are named.

A file is never rewritten in place: its name carries its digest, and it is deleted only when
neither the archive's row nor the messages read from it need it any more.
"""

import datetime as dt
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.partitions import Partition, read_state


class ArchiveRow(NamedTuple):
    """One archive; `object_key` is its key in the store, None for a month without one.

    `dialect` is how it is read: as lists.toml says, else `found_dialect`, how its bytes look.
    Both are empty where there is no archive, and for one that a former version fetched. `list_id`
    is the List-Id of most of its messages, empty where most name none.
    """

    source: str
    object_key: str | None
    sha256: str
    bytes: int
    version: str
    found: int
    content_sha256: str
    dialect: str
    found_dialect: str
    list_id: str = ""


class KnownArchive(NamedTuple):
    """The version that was fetched last, "" for a month without an archive, and when it was new."""

    version: str
    since: dt.datetime


def read_archive(connection: psycopg.Connection, month: ListMonth) -> ArchiveRow | None:
    """Return the archive of a month, None when it was never fetched."""
    row = connection.execute(statement("mbox_archives", "read"), month.columns).fetchone()
    return ArchiveRow(*row) if row else None


def read_archives(
    connection: psycopg.Connection, lists: Collection[str]
) -> dict[ListMonth, ArchiveRow]:
    """Return the archives of all months of some lists."""
    rows = connection.execute(statement("mbox_archives", "of_lists"), {"lists": [*lists]})
    return {ListMonth(name, month): ArchiveRow(*row) for name, month, *row in rows}


def write_archive(connection: psycopg.Connection, month: ListMonth, archive: ArchiveRow) -> None:
    """Record the archive of a month."""
    connection.execute(statement("mbox_archives", "write"), {**month.columns, **archive._asdict()})


def known_archives(
    connection: psycopg.Connection, lists: Collection[str]
) -> dict[ListMonth, KnownArchive]:
    """Return what was fetched last of all months of some lists."""
    rows = connection.execute(statement("mbox_archives", "known"), {"lists": [*lists]})
    return {ListMonth(name, month): KnownArchive(*known) for name, month, *known in rows}


def archived_months(connection: psycopg.Connection, list_name: str) -> list[ListMonth]:
    """Return the months that have an archive, or what was made of one that is gone, in order."""
    rows = connection.execute(statement("mbox_archives", "months"), {"list": list_name}).fetchall()
    return [ListMonth(list_name, month) for (month,) in rows]


def usual_list_ids(connection: psycopg.Connection, month: ListMonth, least: int) -> list[str]:
    """Return each List-Id that `least` other months of the list have, the most frequent first."""
    values = {**month.columns, "least": least}
    rows = connection.execute(statement("mbox_archives", "usual_list_ids"), values).fetchall()
    return [list_id for (list_id,) in rows]


def prefix_of_messages(connection: psycopg.Connection, month: ListMonth) -> str:
    """Return what the key of the file begins with that the rows of `messages` were read from.

    Not that of mbox_archives, which may have been fetched again since. "" where there are none.
    """
    state = read_state(connection, Partition("messages", month))
    sha256 = state.inputs.split()[0] if state else ""
    return f"{folder_key(month)}{sha256[:16]}." if sha256 not in ("", "none") else ""


def object_key(month: ListMonth, sha256: str, suffix: str) -> str:
    """Return the key of an archive in the store."""
    return f"{folder_key(month)}{sha256[:16]}.mbox{suffix}"


def folder_key(month: ListMonth) -> str:
    """Return the prefix of all files of a month's archive."""
    return f"archives/{month.list_name}/{month.month}/"


@contextmanager
def local_archive(store: ObjectStore, key: str) -> Iterator[Path]:
    """Yield a readable local path of an archive in the store.

    Raises:
        FileNotFoundError: the store has lost it; materialize mbox_archives again.
    """
    with ExitStack() as stack:
        try:
            path = stack.enter_context(store.fetch(key))
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{store.url(key)} is missing from the archive store; materialize mbox_archives "
                "for this month again to fetch it"
            ) from error
        yield path
