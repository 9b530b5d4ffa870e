"""Cut forgotten messages out of stored archives, and load their months again.

This happens only where a removal asks for it.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from mail_assets.files import digest_file
from mail_assets.mail.archive.compression import ArchiveError
from mail_assets.month import ListMonth
from mail_assets.steps.archive_cuts import reading_dialect
from mail_assets.steps.load_messages import load_messages
from mail_assets.steps.outcome import ListDefaults, StepError
from mail_assets.steps.store_archive import store_archive
from mail_assets.store.objects import StoreError
from mail_assets.tables.mbox_archives import (
    ArchiveRow,
    drop_former,
    folder_key,
    kept_former,
    local_archive,
    read_archive,
    replace_former,
    write_archive,
)
from mail_assets.tables.partitions import Partition, locked, read_state
from mail_assets.tables.removals import months_holding
from mail_assets.workspace import Workspace


def cut_archives(
    workspace: Workspace, months: Sequence[ListMonth], defaults: Mapping[str, ListDefaults]
) -> tuple[int, dict[str, str]]:
    """Store the archives of months again without what is forgotten, and load the months again.

    `defaults` are by list. Return how many archives were stored again, and why others were not, by
    the keys of their months.
    """
    cut, failed = 0, dict[str, str]()
    for month in months:
        try:
            cut += _cut_month(workspace, month, defaults)
        except (StepError, FileNotFoundError) as error:
            failed[month.key] = str(error)
        except (ArchiveError, StoreError) as error:
            failed[month.key] = f"{month}: {error}"
    return cut, failed


def find_archives_holding(
    workspace: Workspace, removals: Collection[bytes], former: Collection[str] = ()
) -> list[str]:
    """Return the URLs of archive files that still hold mail of some removals.

    `former` are the keys of former archives that held it.
    """
    store, months = workspace.store, months_holding(workspace.connection, removals)
    current = [key for month in months for key in store.keys(folder_key(month))]
    left = [key for key in sorted(former) if store.exists(key)]
    return [store.url(key) for key in dict.fromkeys([*current, *left])]


def _cut_month(
    workspace: Workspace, month: ListMonth, defaults: Mapping[str, ListDefaults]
) -> bool:
    connection, store = workspace.connection, workspace.store
    is_loaded = read_state(connection, Partition("messages", month)) is not None
    if is_loaded and month.list_name not in defaults:
        raise StepError(
            f"{month}: the list is not in lists.toml, whose language loading it needs: put "
            f"[{month.list_name}] with its source back"
        )
    partition = Partition("mbox_archives", month)
    wait = partial(workspace.log, f"{month}: waiting for the run that fetches it")
    with locked(connection, partition, wait):
        archive = stored = read_archive(connection, month)
        if archive is None or stored is None:
            return False
        if archive.object_key:  # else it has vanished, and is a former archive
            with local_archive(store, archive.object_key) as path:
                stored = store_archive(workspace, month, path, archive)
            if stored != archive:
                write_archive(connection, month, stored)
    if is_loaded:
        load_messages(workspace, month, defaults[month.list_name])
    with locked(connection, partition, wait):
        former = [_cut_former(workspace, month, x, archive) for x in kept_former(connection, month)]
        current = read_archive(connection, month)
        kept = kept_former(connection, month)
        for key in [*store.keys(folder_key(month))]:
            if current and key not in (current.object_key, stored.object_key, *kept):
                store.delete(key)
                drop_former(connection, key)
    return stored != archive or any(former)


def _cut_former(workspace: Workspace, month: ListMonth, key: str, archive: ArchiveRow) -> bool:
    """Store a former archive without forgotten mail; return whether it held any."""
    if not workspace.store.exists(key):
        return False
    with local_archive(workspace.store, key) as path:
        dialect = reading_dialect(path, archive.dialect)
        former = archive._replace(sha256=digest_file(path), dialect=dialect)
        stored = store_archive(workspace, month, path, former)
    if stored.object_key in (None, key):
        return False
    replace_former(workspace.connection, key, stored.object_key)
    return True
