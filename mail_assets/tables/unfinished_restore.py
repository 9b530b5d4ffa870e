"""The table `restoring`: there while a restore is under way, and after one that was stopped.

It has which backups were begun with, what had been forgotten here before each attempt, because the
dump of another database replaces the tables that say so, and whether it has replaced them.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from psycopg import sql

from mail_assets.postgres.migrations import migrate, migrations
from mail_assets.postgres.statements import statement
from mail_assets.tables.kept_rows import FORGOTTEN, export_rows, find_migration, table_exists

RESTORING = "restoring"


def begin_restore(connection: psycopg.Connection, backup: str) -> None:
    """Record that a backup is restored from now on, and what was forgotten here until now."""
    if table_exists(connection, "removals") and not table_exists(connection, RESTORING):
        migrate(connection)
    with connection.transaction(), TemporaryDirectory() as folder:
        connection.execute(statement("unfinished_restore", "create"))
        forgotten = _read_forgotten(connection, Path(folder))
        parameters = {"backup": backup, "forgotten": forgotten}
        connection.execute(statement("unfinished_restore", "begin"), parameters)


def _read_forgotten(connection: psycopg.Connection, folder: Path) -> list[bytes] | None:
    """Return the files of what is forgotten here, as of FORGOTTEN.

    None where there are no tables, or those of another version: a restore of its dump was stopped,
    and what was here before is recorded already.
    """
    if not table_exists(connection, "removals") or find_migration(connection) != len(migrations()):
        return None
    for table in FORGOTTEN:
        export_rows(connection, table, folder / table)
    return [(folder / table).read_bytes() for table in FORGOTTEN]


def mark_replaced(backup: str) -> str:
    """Return a statement for the transaction that replaces the tables by those of a dump."""
    text = sql.SQL(statement("unfinished_restore", "mark_replaced"))
    return text.format(backup=sql.Literal(backup)).as_string()


def is_replaced(connection: psycopg.Connection, backup: str) -> bool:
    """Return whether the tables are those of a backup's dump, whose restore has not ended."""
    if not table_exists(connection, RESTORING):
        return False
    asked = statement("unfinished_restore", "replaced")
    row = connection.execute(asked, {"backup": backup}).fetchone()
    return bool(row and row[0])


def list_forgotten(connection: psycopg.Connection) -> Iterator[Path]:
    """Yield folders with the files of what was forgotten here before, each until the next."""
    rows = connection.execute(statement("unfinished_restore", "forgotten")).fetchall()
    for (files,) in rows:
        with TemporaryDirectory() as folder:
            for table, content in zip(FORGOTTEN, files, strict=True):
                (Path(folder) / f"{table}.csv").write_bytes(content)
            yield Path(folder)


def end_restore(connection: psycopg.Connection) -> None:
    """Forget that a restore was under way."""
    connection.execute(statement("unfinished_restore", "end"))
