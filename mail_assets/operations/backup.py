"""Back up data that cannot be recomputed (archives, decisions, records), and restore it.

    backup.json     contents of the backup; written last: a folder without it has no backup
    rows-TIME/      tables as CSV, and dumps of databases if requested
    store/          archives, and embeddings if requested, under their keys
    forget.key      the key for digests of forgotten mail, if it is in a file
    written.json    files that backups wrote here; only these are ever deleted

A later backup into the same folder copies only new files, and replaces the former backup in one
step. Loads may run meanwhile: all rows are from one snapshot, and files are copied until every file
that these rows name is there.

A backup is restored into a home without archives; its list of removals alone, into any home. Files
are restored first, then the dumps, with the mail database last, then the rest in one transaction.
If a restore is interrupted, run it again; the database has a record of it until it ends. Mail that
was already forgotten here stays forgotten, even if the backup has it.
"""

import datetime as dt
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import psycopg

from mail_assets.errors import MailAssetsError, name_some
from mail_assets.files import digest_file, make_private_folder, write_private
from mail_assets.postgres.database import begin_session
from mail_assets.postgres.dumps import check_dump, dump_database, find_distinct, restore_database
from mail_assets.postgres.statements import migrate
from mail_assets.store.embeddings import find_fault
from mail_assets.store.objects import ObjectStore
from mail_assets.store.open import FolderStore
from mail_assets.tables.damage import find_missing_tables
from mail_assets.tables.kept_rows import (
    KEPT,
    RESTORING,
    begin_restore,
    begin_snapshot,
    clear_tables,
    end_restore,
    export_rows,
    export_snapshot,
    find_migration,
    has_archives,
    index_again,
    is_replaced,
    list_archive_files,
    list_forgotten,
    mark_replaced,
    merge_forgotten,
    merge_rows,
    take_statistics,
)
from mail_assets.tables.removals import KeySource, lock_for_forgetting, read_digests
from mail_assets.workspace import Workspace

#: Version of the layout of the folder and of the tables in it.
VERSION = 3

#: A JSON list of paths below the folder.
WRITTEN = "written.json"

FORGET_KEY = "forget.key"

#: Files named in an error.
MOST_NAMED = 5


class BackupError(MailAssetsError):
    """The folder cannot take a backup, or the backup is damaged or does not fit this home."""


@dataclass(frozen=True)
class BackupPlan:
    """Contents of a backup in addition to rows and archives.

    `databases` are DSNs by name; "mail" is the mail database. The first schema in the search path
    of each is dumped; equal ones are dumped once. `files` are copied into the folder under their
    names. `live` are folders in use, with which the backup must not overlap.
    """

    databases: Mapping[str, str]
    files: Sequence[Path] = ()
    embeddings: bool = False
    live: Sequence[Path] = ()


@dataclass(frozen=True)
class Backup:
    """Contents of backup.json: `rows` and `dumps` are files of `folder` by table or database.

    `digests` are the digests of these files by name, `stored` those of the files in store/ by key.
    `lost` and `damaged` files of the home are not in the backup.
    """

    folder: str
    made_at: str
    migration: int
    rows: Mapping[str, int]
    dumps: Sequence[str]
    digests: Mapping[str, str]
    files: int
    bytes: int
    lost: Sequence[str]
    stored: Mapping[str, str] = field(default_factory=dict)
    damaged: Sequence[str] = ()
    version: int = VERSION


def back_up(workspace: Workspace, folder: Path, plan: BackupPlan) -> Backup:
    """Write a backup into `folder`; a former one stays valid until the new one is complete.

    Each copied file is checked; a damaged one is left out.

    Raises:
        BackupError: the folder is in use, has files that no backup wrote, or has the archives of
            another home, which stay as they are; or the database lacks tables.
        PostgresError: pg_dump failed.
        OSError: the folder cannot be written.
    """
    plan = replace(plan, databases=find_distinct(plan.databases))
    if missing := find_missing_tables(workspace.connection):
        raise BackupError(
            f"the database lacks the tables {', '.join(missing)}: `mail-assets doctor` shows the "
            "command that repairs it"
        )
    target = BackupFolder(folder, plan.live)
    target.refuse_other_home(f"store/{key}" for key in list_archive_files(workspace.connection))
    made_at = dt.datetime.now(dt.UTC)
    rows = folder / f"rows-{made_at:%Y%m%dT%H%M%S%f}"
    row_names = [*(f"{table}.csv" for table in KEPT), *(f"{name}.dump" for name in plan.databases)]
    needed = {f"{rows.name}/{name}" for name in row_names}
    target.intend(needed)
    kept = FolderStore(folder / "store")
    copied = _Copied(workspace.store, kept, _former_digests(folder))
    missed: set[str] = set()
    while True:
        counts, migration, wanted = _write_rows(workspace, rows, plan)
        files = {f"store/{key}" for key in wanted}
        target.intend(files)
        lost = _copy_missing(copied, wanted)
        # a missing file was deleted after the rows were read, or is lost: read the rows again
        if lost <= missed:
            break
        missed = lost
    _copy_settings(workspace, target, plan)
    backup = Backup(
        folder=rows.name,
        made_at=made_at.isoformat(timespec="seconds"),
        migration=migration,
        rows=counts,
        dumps=[*plan.databases],
        digests={name: digest_file(rows / name) for name in sorted(row_names)},
        files=len(copied.digests),
        bytes=sum(kept.size(key) for key in copied.digests),
        lost=sorted(lost),
        stored=dict(sorted(copied.digests.items())),
        damaged=sorted(copied.damaged),
    )
    target.intend(["backup.json"])
    write_private(folder / "backup.json", json.dumps(asdict(backup), indent=2).encode())
    target.remove_others(needed | files)
    return backup


def read_backup(folder: Path) -> Backup:
    """Return the backup in a folder, after checking the digests of its rows and dumps.

    Raises:
        BackupError: there is no backup, it is of another version, or it is damaged.
    """
    path = folder / "backup.json"
    if not path.is_file():
        raise BackupError(
            f"{folder} has no complete backup: there is no {path.name}; name the folder of "
            "`mail-assets backup`, or run that command again"
        )
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if facts["version"] > VERSION:
        raise BackupError(f"{path} was written by a later version: update mail_assets")
    if facts["version"] < VERSION:
        raise BackupError(
            f"{path} was written by a version of mail_assets before 0.2.0, whose tables cannot be "
            "restored: fill this home again with `mail-assets backfill`"
        )
    backup = Backup(**facts)
    for name, digest in backup.digests.items():
        file = folder / backup.folder / name
        if not file.is_file() or digest_file(file) != digest:
            raise BackupError(f"{file} is missing or damaged; take another backup")
    return backup


def check_backup(folder: Path) -> Backup:
    """Return the backup in a folder, after checking the digests of all its files.

    Raises:
        BackupError: as read_backup, or files of the store are missing or damaged.
    """
    backup = read_backup(folder)
    for name in backup.dumps:
        check_dump(folder / backup.folder / f"{name}.dump")
    kept = FolderStore(folder / "store")
    wrong = [key for key, digest in backup.stored.items() if _digest(kept, key) != digest]
    if wrong:
        raise BackupError(
            f"{len(wrong)} of {len(backup.stored)} files of {kept.root} are missing or damaged: "
            f"{name_some(wrong, MOST_NAMED)}; take another backup, or use an older one"
        )
    return backup


def _digest(store: ObjectStore, key: str) -> str | None:
    try:
        with store.fetch(key) as path:
            return digest_file(path)
    except FileNotFoundError:
        return None


def copy_object(source: ObjectStore, target: ObjectStore, key: str) -> None:
    """Copy an object from one store to another.

    Raises:
        FileNotFoundError: the source has no object under the key.
    """
    with source.fetch(key) as path:
        target.put(key, path)


class BackupFolder:
    """A folder for backups, and the list of files that backups wrote there.

    A file is listed before it is written, until it is deleted, so that the next backup knows the
    files of a killed one. Other files stay as they are. Files are named by their paths below the
    folder, such as `store/archives/...`.
    """

    def __init__(self, path: Path, apart_from: Sequence[Path] = ()) -> None:
        """Open or create a folder.

        Raises:
            BackupError: it overlaps with one of `apart_from`, or has files but no backup.
        """
        _refuse_overlap(path, apart_from)
        make_private_folder(path)
        self.path = path
        self._files = FolderStore(path)
        # hidden files: leftovers of a killed writer of the list, or of file systems (.snapshot)
        shown = {one.name for one in path.iterdir() if not one.name.startswith(".")}
        if shown and WRITTEN not in shown:
            raise BackupError(
                f"{path} has files, but no {WRITTEN} of a former backup: choose a folder that is "
                "new or empty"
            )
        self._known = self._read()

    def refuse_other_home(self, archives: Iterable[str]) -> None:
        """Check that archives in the folder, if any, include one of this home.

        An archive is named by its content and kept for years. If this home has none of them, it is
        another home, and its backup would delete them all.

        Raises:
            BackupError: no archive in the folder is in this home.
        """
        former = {name for name in self._known if name.startswith("store/archives/")}
        if former and former.isdisjoint(archives):
            raise BackupError(
                f"{self.path} has the backup of another home: none of its {len(former)} archives "
                "is here; look at MAIL_HOME and MAIL_PG_DSN, or choose another folder"
            )

    def intend(self, names: Iterable[str]) -> None:
        """List files that are about to be written.

        Raises:
            BackupError: a file exists that no backup wrote; it stays as it is.
        """
        fresh = {*names} - self._known
        for name in sorted(fresh):
            if os.path.lexists(self.path / name):
                raise BackupError(
                    f"{self.path / name} was not written by a backup: move it away, or choose "
                    "another folder"
                )
        if fresh:
            self._known |= fresh
            self._write(self._read() | fresh)

    def remove_others(self, wanted: Iterable[str]) -> None:
        """Delete files that backups wrote into subfolders, except the wanted ones."""
        others = {name for name in self._known if "/" in name}.difference(wanted)
        for name in others:
            self._files.delete(name)
            _remove_empty(self.path / name, self.path)
        self._known -= others
        self._write(self._read() - others)

    def _read(self) -> set[str]:
        # read each time, because another backup into the folder may have extended the list
        path = self.path / WRITTEN
        return {*json.loads(path.read_text(encoding="utf-8"))} if path.exists() else set()

    def _write(self, names: set[str]) -> None:
        self._files.put_bytes(WRITTEN, json.dumps(sorted(names), indent=0).encode())


def _refuse_overlap(folder: Path, others: Iterable[Path]) -> None:
    here = folder.resolve()
    for other in others:
        there = other.resolve()
        if here.is_relative_to(there) or there.is_relative_to(here):
            raise BackupError(
                f"{folder} overlaps with {other}, which is to be backed up: choose another folder"
            )


def _remove_empty(file: Path, root: Path) -> None:
    for folder in file.parents:
        if folder == root or not folder.is_dir() or any(folder.iterdir()):
            return
        folder.rmdir()


def _write_rows(
    workspace: Workspace, rows: Path, plan: BackupPlan
) -> tuple[dict[str, int], int, list[str]]:
    """Write the tables from one snapshot; return their sizes, the migration, and files to copy."""
    connection = workspace.connection
    make_private_folder(rows)
    with connection.transaction():
        begin_snapshot(connection)
        counts = {table: export_rows(connection, table, rows / f"{table}.csv") for table in KEPT}
        snapshot = export_snapshot(connection)
        for name, dsn in plan.databases.items():
            workspace.log(f"dumping the database {name}")
            moment = snapshot if name == "mail" else ""
            dump_database(dsn, rows / f"{name}.dump", moment, [RESTORING])
        migration, wanted = find_migration(connection), list_archive_files(connection)
    if plan.embeddings:
        wanted += workspace.store.keys("embeddings/")
    return counts, migration, wanted


@dataclass
class _Copied:
    """Files of a backup, copied now or before, with their digests."""

    store: ObjectStore
    kept: ObjectStore
    former: Mapping[str, str]
    digests: dict[str, str] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)


def _former_digests(folder: Path) -> Mapping[str, str]:
    try:
        return read_backup(folder).stored
    except BackupError:
        return {}


def _copy_missing(copied: _Copied, wanted: Iterable[str]) -> set[str]:
    """Copy the files that are not in the backup; return those that are not in the store either."""
    store, kept, missing = copied.store, copied.kept, set[str]()
    copied.digests.clear()
    for key in wanted:
        digest: str | None = None
        if _is_kept(store, kept, key):
            digest = copied.former.get(key) or _digest(kept, key)
        else:
            try:
                copy_object(store, kept, key)
            except FileNotFoundError:
                missing.add(key)
                continue
            digest = _digest(kept, key)
        if digest is None or _is_damaged(kept, key, digest):
            kept.delete(key)
            copied.damaged.add(key)
        else:
            copied.digests[key] = digest
    return missing


def _is_damaged(kept: ObjectStore, key: str, digest: str) -> bool:
    name, parent = PurePosixPath(key).name, PurePosixPath(key).parent.name
    if key.startswith("archives/"):
        return not digest.startswith(name.partition(".")[0])
    fingerprint = parent if parent.endswith(".parts") else name
    return bool(find_fault(kept, key, fingerprint.rpartition(".")[0]))


def _is_kept(store: ObjectStore, kept: ObjectStore, key: str) -> bool:
    """Return whether the backup has the current version of a file.

    The name of an archive identifies its content. A file of embeddings is replaced under the same
    name.
    """
    if not kept.exists(key):
        return False
    return key.startswith("archives/") or (
        store.exists(key)
        and kept.size(key) == store.size(key)
        and kept.modified(key) > store.modified(key)
    )


def _copy_settings(workspace: Workspace, target: BackupFolder, plan: BackupPlan) -> None:
    files = {path.name: path for path in plan.files}
    key = workspace.forget_key.file
    if not workspace.forget_key.given and key is not None and key.exists():
        files[FORGET_KEY] = key
    for name, path in files.items():
        copy = target.path / name
        if copy.exists() and copy.samefile(path):  # the home uses the backup's own file
            continue
        target.intend([name])
        write_private(copy, path.read_bytes())


def restore_backup(
    databases: Mapping[str, str], store: ObjectStore, key: KeySource, folder: Path
) -> Backup:
    """Restore archives, rows and dumps of a backup, and return the backup.

    `databases` are DSNs by name, with the mail database under "mail"; they exist and may be empty.
    Run forget_again afterwards; it removes mail that was forgotten here before.

    Raises:
        BackupError: there is no complete backup in `folder`, a file of it is missing or damaged, or
            the home has archives that are not from an interrupted restore of this backup. Nothing
            was changed then.
        ForgetKeyError: the digests of the backup were made with another key than this machine's.
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
    """Add a backup's list of removals to this home's; return the number of new entries.

    Run forget_again afterwards; it removes that mail.

    Raises:
        BackupError, ForgetKeyError, KeptRowsError: as restore_backup.
    """
    backup = read_backup(folder)
    _restore_key(key, folder)
    with _connect(dsn) as connection:
        migrate(connection)
        return _take_over(connection, key, folder / backup.folder)


def _take_over(connection: psycopg.Connection, key: KeySource, folder: Path) -> int:
    """Add the removals in a folder; later loads leave that mail out."""
    with connection.transaction():
        lock_for_forgetting(connection)
        added = merge_forgotten(connection, folder)
        read_digests(connection, key)
    return added


def _refuse_archives(dsn: str, backup: Backup) -> None:
    with _connect(dsn) as connection:
        if has_archives(connection) and not is_replaced(connection, backup.folder):
            raise BackupError(
                "this database has archives already: restore into an empty one, with another "
                "MAIL_HOME or after `mail-assets down --delete-data`"
            )


def _merge(connection: psycopg.Connection, backup: Backup, rows: Path) -> None:
    # the files have the columns of the schema that the backup was made with
    migrate(connection, until=backup.migration)
    for table in KEPT:
        merge_rows(connection, table, rows / f"{table}.csv")
    migrate(connection)


def _restore_key(key: KeySource, folder: Path) -> None:
    """Install the backup's key on this machine, unless it has one."""
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
