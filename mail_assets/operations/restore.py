"""Restore a backup into a home without archives, or only its list of removals into any home.

Files come first, then the dumps, with the mail database last, then the rest in one transaction. A
restore that is stopped is run again: the database records it until it ends. Mail that was forgotten
here before stays forgotten, whatever the backup says.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import psycopg

from mail_assets.files import make_private_folder
from mail_assets.operations.backup import (
    FORGET_KEY,
    Backup,
    BackupError,
    check_backup,
    copy_object,
    read_backup,
)
from mail_assets.postgres.database import begin_session
from mail_assets.postgres.dumps import restore_database
from mail_assets.postgres.statements import migrate
from mail_assets.store.objects import ObjectStore
from mail_assets.store.open import FolderStore
from mail_assets.tables.kept_rows import (
    KEPT,
    begin_restore,
    clear_tables,
    end_restore,
    has_archives,
    index_again,
    is_replaced,
    list_forgotten,
    mark_replaced,
    merge_forgotten,
    merge_rows,
    take_statistics,
)
from mail_assets.tables.removals import KeySource, lock_for_forgetting, read_digests


def restore_backup(
    databases: Mapping[str, str], store: ObjectStore, key: KeySource, folder: Path
) -> Backup:
    """Restore archives, rows and dumps of a backup, and return the backup.

    `databases` are DSNs by name, the mail database under "mail"; they exist and may be empty. Run
    forget_again afterwards, which takes out mail that was forgotten here before.

    Raises:
        BackupError: there is no whole backup in `folder`, a file of it is missing or damaged, or
            the home has archives that a stopped restore of this backup did not bring. Nothing was
            changed then.
        ForgetKeyError: the digests of the backup were made with another key than this machine has.
        KeptRowsError: the rows do not fit this version.
        PostgresError: pg_restore failed.
    """
    backup = check_backup(folder)
    rows, dsn = folder / backup.folder, databases["mail"]
    _refuse_archives(dsn, backup)
    _restore_key(key, folder)
    kept = FolderStore(folder / "store")
    for name in backup.stored:
        if not store.exists(name) or store.size(name) != kept.size(name):
            copy_object(kept, store, name)
    with _connect(dsn) as connection:
        begin_restore(connection, backup.folder)
    for name in sorted(backup.dumps, key=lambda name: name == "mail"):
        before = f"{clear_tables()};\n{mark_replaced(backup.folder)}" if name == "mail" else ""
        restore_database(databases[name], rows / f"{name}.dump", before)
    with _connect(dsn) as connection:
        with connection.transaction():
            if "mail" in backup.dumps:
                migrate(connection)
                index_again(connection)
            else:
                _merge(connection, backup, rows)
            for forgotten_here in list_forgotten(connection):
                _take_over(connection, key, forgotten_here)
            read_digests(connection, key)
            end_restore(connection)
        take_statistics(connection)
    return backup


def restore_forgotten(dsn: str, key: KeySource, folder: Path) -> int:
    """Add a backup's list of removals to that of this home; return how many entries were new.

    Run forget_again afterwards, which takes that mail out.

    Raises:
        BackupError, ForgetKeyError, KeptRowsError: as restore_backup.
    """
    backup = read_backup(folder)
    _restore_key(key, folder)
    with _connect(dsn) as connection:
        migrate(connection)
        return _take_over(connection, key, folder / backup.folder)


def _take_over(connection: psycopg.Connection, key: KeySource, folder: Path) -> int:
    """Add the removals in a folder; loads that begin later leave that mail out."""
    with connection.transaction():
        lock_for_forgetting(connection)
        added = merge_forgotten(connection, folder)
        read_digests(connection, key)
    return added


def _refuse_archives(dsn: str, backup: Backup) -> None:
    with _connect(dsn) as connection:
        if has_archives(connection) and not is_replaced(connection, backup.folder):
            raise BackupError(
                "there are archives in this database already: restore into an empty one, with "
                "another MAIL_HOME or after `mail-assets down --delete-data`"
            )


def _merge(connection: psycopg.Connection, backup: Backup, rows: Path) -> None:
    # the files have the columns of the schema that the backup was made with
    migrate(connection, until=backup.migration)
    for table in KEPT:
        merge_rows(connection, table, rows / f"{table}.csv")
    migrate(connection)


def _restore_key(key: KeySource, folder: Path) -> None:
    """Put the backup's key where this machine looks for it, unless it has one."""
    saved = folder / FORGET_KEY
    if not saved.is_file() or key.given or key.file is None or key.file.exists():
        return
    make_private_folder(key.file.parent)
    handle = os.open(key.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(saved.read_bytes())
        file.flush()
        os.fsync(file.fileno())


def _connect(dsn: str) -> psycopg.Connection:
    return begin_session(psycopg.connect(dsn, autocommit=True))
