"""The rows that a backup keeps because nothing can make them again, and the record of a restore.

Each table is a CSV file with its columns in the first line; operations/backup.py writes the files.

The table `restoring` exists while a restore runs, and after one that was stopped. For each attempt
it records the backup, what had been forgotten here before, and whether a dump has replaced the
tables. It needs a copy of what was forgotten because the dump replaces those tables too.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import LiteralString

import psycopg
from psycopg import sql

from mail_assets.errors import MailAssetsError
from mail_assets.files import create_private
from mail_assets.postgres.statements import migrate, migrations, read_column, read_value, statement

#: Tables of forgotten mail; a restore adds their rows to the existing ones.
FORGOTTEN = ("forget_keys", "removals", "removed_messages", "cut_messages")

#: Table -> why a backup keeps its rows. The source of an archive may no longer have it.
KEPT = {
    "forget_keys": "the key that the digests of forgotten mail are made with",
    "removals": "decisions of people",
    "removed_messages": "hides the ids of forgotten mail before all months are loaded",
    "cut_messages": "the stored archive no longer has them",
    "removed_upstream": "the source no longer has them",
    "former_archives": "how long a replaced file is kept",
    "mbox_archives": "when and from where the archives came",
    "partitions": "of mbox_archives: the versions that read the archives",
    "promotions": "what was measured when an index became live",
    "thread_aliases": "of ids that have vanished: the thread they led to",
}

#: Table -> the source of its rows. `partitions` and `thread_aliases` are in both.
REMADE = {
    "lists": "lists.toml",
    "messages": "archives",
    "contested_texts": "messages",
    "archive_entries": "archives",
    "quarantine": "archives",
    "chunks": "messages",
    "patches": "messages and archives",
    "patch_series": "patches and messages",
    "patch_states": "the triggers on patch_series, commit_links, messages and commits",
    "patch_outcomes": "messages",
    "patch_keys": "patches",
    "patch_changes": "the triggers on patches and messages",
    "threads": "messages",
    "thread_aliases": "messages",
    "thread_changes": "messages",
    "partitions": "the runs that make the assets again",
    "vectors": "chunks",
    "words": "messages",
    "indexes": "the first run that fills an index",
    "live_indexes": "the first index that is filled, until another is promoted",
    "encoded_texts": "searches",
    "encoder_probes": "the first run that encodes",
    "month_checks": "the checks, which read every month again",
    "senders": "messages",
    "served_searches": "searches",
    "search_audit": "searches",
    "thread_summaries": "messages",
    "commits": "the repositories of lists.toml",
    "commit_links": "commits and patches",
    "commit_link_months": "the run that links commits",
    "commit_link_sources": "the run that links commits",
    "commit_link_changes": "the run that links commits, triggers on messages and contested texts",
    "summary_changes": "the triggers on messages and threads",
    "schema_migrations": "the files of sql/",
}


class KeptRowsError(MailAssetsError):
    """The rows of a backup do not fit this database."""


def export_rows(connection: psycopg.Connection, table: str, path: Path) -> int:
    """Write the kept rows of a table to a file; return their number."""
    path.unlink(missing_ok=True)
    with create_private(path) as file, connection.cursor() as cursor:
        with cursor.copy(statement("kept_rows", table)) as copy:
            for data in copy:
                file.write(data)
        return cursor.rowcount


def merge_rows(connection: psycopg.Connection, table: str, path: Path) -> int:
    """Add the rows of a file to a table, in a transaction; return the number of new rows.

    Raises:
        KeptRowsError: the file has other columns, or its digests were made with another key.
    """
    _stage(connection, table, path)
    return _take_stage(connection, _for_table("merge", table))


def merge_forgotten(connection: psycopg.Connection, folder: Path) -> int:
    """Add what was forgotten elsewhere, from files of a folder; return the number of new entries.

    Rows of `removed_messages` become rows of `cut_messages`, because `removed_messages` is only
    about the archives of this home. Their ids stay hidden. Call it in a transaction.

    Raises:
        KeptRowsError: as in merge_rows.
    """
    merge_rows(connection, "forget_keys", folder / "forget_keys.csv")
    _stage(connection, "removals", folder / "removals.csv")
    connection.execute(statement("kept_rows", "cut_too"))
    added = _take_stage(connection, _for_table("merge", "removals"))
    _stage(connection, "removed_messages", folder / "removed_messages.csv")
    _take_stage(connection, statement("kept_rows", "merge_removed"))
    merge_rows(connection, "cut_messages", folder / "cut_messages.csv")
    return added


def _stage(connection: psycopg.Connection, table: str, path: Path) -> None:
    connection.execute(_for_table("stage", table))
    try:
        with (
            path.open("rb") as file,
            connection.cursor() as cursor,
            cursor.copy(statement("kept_rows", "copy")) as copy,
        ):
            while data := file.read(1 << 16):
                copy.write(data)
    except psycopg.errors.BadCopyFileFormat as error:
        raise KeptRowsError(
            f"{path} does not fit the table {table} of this version: {error.diag.message_primary}; "
            "restore into a home without a database"
        ) from error
    if table == "forget_keys" and read_value(connection, statement("kept_rows", "other_key")):
        raise KeptRowsError(
            "what was forgotten here and in the backup was made with different keys: restore into "
            "a home without a database"
        )


def _take_stage(connection: psycopg.Connection, query: LiteralString | sql.Composed) -> int:
    added = connection.execute(query).rowcount
    connection.execute(statement("kept_rows", "drop_stage"))
    return added


def begin_snapshot(connection: psycopg.Connection) -> None:
    """Make all statements of a new transaction see the tables as they are now."""
    connection.execute(statement("kept_rows", "snapshot"))


def export_snapshot(connection: psycopg.Connection) -> str:
    """Return the name of this transaction's snapshot for another session."""
    return str(read_value(connection, statement("kept_rows", "export_snapshot")))


def find_migration(connection: psycopg.Connection) -> int:
    """Return the number of the last applied migration, 0 for the schema alone."""
    return int(read_value(connection, statement("kept_rows", "migration")))


def table_exists(connection: psycopg.Connection, table: str) -> bool:
    """Return whether the database has a table, which may be empty."""
    return bool(read_value(connection, statement("kept_rows", "table_exists"), {"table": table}))


def has_archives(connection: psycopg.Connection) -> bool:
    """Return whether any month of mbox_archives was ever made."""
    return table_exists(connection, "mbox_archives") and bool(
        read_value(connection, statement("kept_rows", "has_archives"))
    )


def take_statistics(connection: psycopg.Connection) -> None:
    """Collect statistics of all tables for the planner."""
    connection.execute(statement("kept_rows", "analyze"))


def list_archive_files(connection: psycopg.Connection) -> list[str]:
    """Return the keys of archives and kept former archives, in order."""
    return read_column(connection, statement("kept_rows", "archive_files"))


def clear_tables() -> str:
    """Return a statement that drops everything that the schema and its migrations created.

    If views of other programs depend on our tables, it fails and names them.
    """
    tables = sql.Literal([*(KEPT | REMADE)])
    return sql.SQL(statement("kept_rows", "clear")).format(tables=tables).as_string()


def index_again(connection: psycopg.Connection) -> None:
    """Mark every month to be indexed again: a dump does not contain the indexes."""
    for name in ("index_again", "forget_index_states"):
        connection.execute(statement("kept_rows", name))


def _for_table(name: str, table: str) -> sql.Composed:
    return sql.SQL(statement("kept_rows", name)).format(table=sql.Identifier(table))


RESTORING = "restoring"


def begin_restore(connection: psycopg.Connection, backup: str) -> None:
    """Record the beginning of a restore and what was forgotten here before."""
    if table_exists(connection, "removals") and not table_exists(connection, RESTORING):
        migrate(connection)
    with connection.transaction(), TemporaryDirectory() as folder:
        connection.execute(statement("kept_rows", "create_restoring"))
        forgotten = _read_forgotten(connection, Path(folder))
        parameters = {"backup": backup, "forgotten": forgotten}
        connection.execute(statement("kept_rows", "begin_restore"), parameters)


def _read_forgotten(connection: psycopg.Connection, folder: Path) -> list[bytes] | None:
    """Return the files of FORGOTTEN; None without tables or with those of another version.

    Tables of another version come from a restore that was stopped. It has already recorded what
    was here before.
    """
    if (
        not table_exists(connection, "removals")
        or find_migration(connection) != migrations()[-1].number
    ):
        return None
    for table in FORGOTTEN:
        export_rows(connection, table, folder / table)
    return [(folder / table).read_bytes() for table in FORGOTTEN]


def mark_replaced(backup: str) -> str:
    """Return a statement that records that a dump has replaced the tables."""
    text = sql.SQL(statement("kept_rows", "mark_replaced"))
    return text.format(backup=sql.Literal(backup)).as_string()


def is_replaced(connection: psycopg.Connection, backup: str) -> bool:
    """Return whether a backup's dump has replaced the tables and its restore has not ended."""
    if not table_exists(connection, RESTORING):
        return False
    asked = statement("kept_rows", "is_replaced")
    return bool(read_value(connection, asked, {"backup": backup}))


def list_forgotten(connection: psycopg.Connection) -> Iterator[Path]:
    """Yield folders with the recorded files of FORGOTTEN; each is deleted before the next."""
    rows = connection.execute(statement("kept_rows", "forgotten_before")).fetchall()
    for (files,) in rows:
        with TemporaryDirectory() as folder:
            for table, content in zip(FORGOTTEN, files, strict=True):
                (Path(folder) / f"{table}.csv").write_bytes(content)
            yield Path(folder)


def end_restore(connection: psycopg.Connection) -> None:
    """Drop the record of the restore."""
    connection.execute(statement("kept_rows", "end_restore"))
