"""Take forgotten messages out of the files of embeddings and out of the vector indexes.

Month by month, each under the lock of the run that writes it: a run that has read a month before
may write it behind a forgetting, which cleans it when that run is done.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial

from mail_assets.month import ListMonth
from mail_assets.steps.workspace import Workspace
from mail_assets.store.embeddings import (
    month_prefix,
    read_embeddings,
    read_fingerprint,
    read_hashes,
    write_embeddings,
)
from mail_assets.tables.manifest import Manifest, drop_keys
from mail_assets.tables.partitions import Partition, locked
from mail_assets.tables.removed_messages import (
    read_text_hashes,
    removed_months,
    unwanted_keys,
    unwanted_months,
)
from mail_assets.vectors.index import MissingIndexError, VectorError, VectorIndex

#: Opens an index by the manifest's name for it; ValueError where that cannot be done.
OpenIndex = Callable[[str], VectorIndex]


def clean_files(workspace: Workspace, months: Collection[ListMonth]) -> int:
    """Take out of all files of months, whatever their encoder, the vectors of no text of theirs.

    Parts that a killed run has left count too, and months that an earlier forgetting left undone.
    Return the number of files changed.
    """
    changed = 0
    for month in removed_months(workspace.connection):
        if month not in months and not any(_stale_files(workspace, month)):
            continue
        wait = partial(workspace.log, f"{month}: waiting for the run that encodes it")
        with locked(workspace.connection, Partition("embeddings", month), wait):
            changed += _clean_month(workspace, month)
    return changed


def _stale_files(workspace: Workspace, month: ListMonth) -> Iterator[str]:
    """Yield the keys of files that hold the vector of a text that the month does not have."""
    store, wanted = workspace.store, read_text_hashes(workspace.connection, month)
    for key in [*store.keys(month_prefix(month))]:
        if not wanted.issuperset(read_hashes(store, key)):
            yield key


def _clean_month(workspace: Workspace, month: ListMonth) -> int:
    store, wanted = workspace.store, read_text_hashes(workspace.connection, month)
    changed = 0
    for key in _stale_files(workspace, month):
        vectors = read_embeddings(store, key)
        kept = {text_hash: vectors[text_hash] for text_hash in vectors.keys() & wanted}
        if kept:
            write_embeddings(store, key, kept, read_fingerprint(store, key))
        else:
            store.delete(key)
        changed += 1
    return changed


def clean_indexes(
    workspace: Workspace, months: Collection[ListMonth], open_index: OpenIndex
) -> tuple[int, dict[str, str]]:
    """Delete from every index that the manifest knows; one out of reach does not stop the rest.

    Then the files of these indexes are written without what was deleted, once for all months.
    Return the number of vectors deleted, and why an index could not be reached, by its name.
    """
    connection = workspace.connection
    deleted, failed, cleaned = 0, dict[str, str](), set[str]()
    for month in sorted({*months, *unwanted_months(connection)}):
        wait = partial(workspace.log, f"{month}: waiting for the run that writes its vectors")
        with locked(connection, Partition("vectors", month), wait):
            unwanted = unwanted_keys(connection, month)
            for name in unwanted.keys() - failed.keys():
                try:
                    _delete(open_index(name), unwanted[name])
                except (VectorError, ValueError) as error:
                    failed[name] = str(error)
                    continue
                drop_keys(connection, Manifest("vectors", name), unwanted[name])
                deleted += len(unwanted[name])
                cleaned.add(name)
    for name in sorted(cleaned):
        try:
            _erase(open_index(name))
        except (VectorError, ValueError) as error:
            failed[name] = f"deleted, but not from old files yet: {error}"
    return deleted, failed


def _delete(index: VectorIndex, keys: Iterable[str]) -> None:
    with suppress(MissingIndexError):  # it was dropped, and everything in it with it
        index.delete(keys)


def _erase(index: VectorIndex) -> None:
    with suppress(MissingIndexError):
        index.maintain(erase=True)
