"""Bring a backup into a home that has no archives yet, or what it forgot into any.

Files first, then the rows in one transaction: a restore that is killed is run again. What was
forgotten here before stays forgotten, whatever the backup says.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import psycopg

from mail_assets.postgres.dumps import restore_database
from mail_assets.postgres.migrations import migrate
from mail_assets.postgres.session import begin_session
from mail_assets.steps.back_up import FORGET_KEY, Backup, copy_object, read_backup
from mail_assets.steps.backup_folder import BackupError
from mail_assets.store.folder import FolderStore
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.forget_keys import KeySource, read_digests
from mail_assets.tables.kept_rows import (
    FORGOTTEN,
    KEPT,
    export_rows,
    has_archives,
    index_again,
    merge_forgotten,
    merge_rows,
    table_exists,
    take_statistics,
)
from mail_assets.tables.removals import lock_for_forgetting


def restore_backup(
    databases: Mapping[str, str], store: ObjectStore, key: KeySource, folder: Path
) -> Backup:
    """Bring archives, rows and dumps of a backup into a home, and return what they were.

    `databases` are DSNs by name, the mail database under "mail"; they exist and may be empty. What
    came of mail that was forgotten here before is taken out by forget_again.

    Raises:
        BackupError: there is no whole backup in `folder`, or there are archives here already.
        ForgetKeyError: another key is here than the digests of the backup were made with.
        KeptRowsError: the rows do not fit this version.
        PostgresError: pg_restore failed.
    """
    backup = read_backup(folder)
    rows, dsn = folder / backup.folder, databases["mail"]
    refuse_archives(dsn)
    _restore_key(key, folder)
    kept = FolderStore(folder / "store")
    for name in kept.keys():  # noqa: SIM118 (a store is no mapping)
        if not store.exists(name) or store.size(name) != kept.size(name):
            copy_object(kept, store, name)
    with tempfile.TemporaryDirectory() as before:
        forgotten_here = _export_forgotten(dsn, Path(before))
        for name in backup.dumps:
            restore_database(databases[name], rows / f"{name}.dump")
        with _connect(dsn) as connection:
            # the rows are those of the tables of then
            migrate(connection, until=backup.migration)
            with connection.transaction():
                if "mail" in backup.dumps:
                    index_again(connection)
                else:
                    for table in KEPT:
                        merge_rows(connection, table, rows / f"{table}.csv")
            migrate(connection)
            if forgotten_here:
                _take_over(connection, key, forgotten_here)
            read_digests(connection, key)
            take_statistics(connection)
    return backup


def restore_forgotten(dsn: str, key: KeySource, folder: Path) -> int:
    """Add what a backup has forgotten to the list of removals; return how many entries were new.

    What is here of it is taken out by forget_again.

    Raises:
        BackupError, ForgetKeyError, KeptRowsError: as restore_backup.
    """
    backup = read_backup(folder)
    _restore_key(key, folder)
    with _connect(dsn) as connection:
        migrate(connection)
        return _take_over(connection, key, folder / backup.folder)


def _take_over(connection: psycopg.Connection, key: KeySource, folder: Path) -> int:
    """Add what is in the files of a folder; loads that begin behind it leave that out."""
    with connection.transaction():
        lock_for_forgetting(connection)
        added = merge_forgotten(connection, folder)
        read_digests(connection, key)
    return added


def refuse_archives(dsn: str) -> None:
    """Refuse to restore into a database that is in use.

    Raises:
        BackupError: it knows archives; the message names the remedy.
    """
    with _connect(dsn) as connection:
        if has_archives(connection):
            raise BackupError(
                "there are archives in this database already: restore into an empty one, with "
                "another MAIL_HOME or after `mail-assets down --delete-data`"
            )


def _restore_key(key: KeySource, folder: Path) -> None:
    """Put the key of the backup where this machine looks for it, unless it has one."""
    saved = folder / FORGET_KEY
    if not saved.is_file() or key.given or key.file is None or key.file.exists():
        return
    key.file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(key.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(saved.read_bytes())
        file.flush()
        os.fsync(file.fileno())


def _export_forgotten(dsn: str, folder: Path) -> Path | None:
    """Write what was forgotten here to files of a folder; None where the database is empty."""
    with _connect(dsn) as connection:
        if not table_exists(connection, "removals"):
            return None
        migrate(connection)
        for table in FORGOTTEN:
            export_rows(connection, table, folder / f"{table}.csv")
    return folder


def _connect(dsn: str) -> psycopg.Connection:
    return begin_session(psycopg.connect(dsn, autocommit=True))
