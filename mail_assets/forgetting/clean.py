"""Take forgotten messages out of the files of embeddings and out of the vector indexes.

Month by month, each under the lock of the run that writes it: a run that has read a month before
may write it behind a forgetting, which cleans it when that run is done.

[forget_words] Take forgotten messages out of the word indexes, and out of their old versions.

The keys leave the manifest last: what was interrupted, or out of reach, is done by the next
forgetting, whatever it is for.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from mail_assets.indexes.embedding_files import find_files, keep_texts, older_than_chunks
from mail_assets.indexes.words import MailWords, open_mail_words
from mail_assets.month import ListMonth
from mail_assets.store.embeddings import month_prefix, read_hashes
from mail_assets.tables.indexes import Manifest, drop_keys, list_word_indexes
from mail_assets.tables.partitions import Partition, locked
from mail_assets.tables.removed_messages import (
    read_text_hashes,
    removed_months,
    stale_documents,
    stale_keys,
    stale_months,
    stale_word_months,
    unwanted_documents,
)
from mail_assets.vectors.index import MissingIndexError, VectorError, VectorIndex
from mail_assets.words.index import MissingWordsError, WordsError
from mail_assets.workspace import Workspace

#: Opens an index by the manifest's name for it; ValueError where that cannot be done.
OpenIndex = Callable[[str], VectorIndex]


def clean_files(workspace: Workspace, months: Collection[ListMonth]) -> int:
    """Take out of all files of months, whatever their encoder, the vectors of no text of theirs.

    Parts that a killed run has left count too, months that an earlier forgetting left undone, and
    those whose mail vanished while another encoder was configured than that of a file. Return the
    number of files changed.
    """
    changed = 0
    outdated = older_than_chunks(workspace, [*find_files(workspace)])
    found = {*removed_months(workspace.connection), *(one.month for one in outdated)}
    for month in sorted(found):
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
    wanted = read_text_hashes(workspace.connection, month)
    stale = [*_stale_files(workspace, month)]
    for key in stale:
        keep_texts(workspace, key, wanted)
    return len(stale)


def clean_indexes(
    workspace: Workspace, months: Collection[ListMonth], open_index: OpenIndex
) -> tuple[int, dict[str, str]]:
    """Delete what no chunk has from every index that the manifest knows.

    That is what was forgotten, and what had vanished from other indexes than runs fill: nothing
    tells whose it was. One out of reach does not stop the rest. Then the files of these indexes are
    written without what was deleted, once for all months. Return the number of vectors deleted, and
    why an index could not be reached, by its name.
    """
    connection = workspace.connection
    deleted, failed, cleaned = 0, dict[str, str](), set[str]()
    for month in sorted({*months, *stale_months(connection)}):
        wait = partial(workspace.log, f"{month}: waiting for the run that writes its vectors")
        with locked(connection, Partition("vectors", month), wait):
            stale = stale_keys(connection, month)
            for name in stale.keys() - failed.keys():
                try:
                    _delete(open_index(name), stale[name])
                except (VectorError, ValueError) as error:
                    failed[name] = str(error)
                    continue
                drop_keys(connection, Manifest("vectors", name), stale[name])
                deleted += len(stale[name])
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


def clean_words(workspace: Workspace) -> tuple[int, dict[str, str]]:
    """Clean every word index that was ever filled; one out of reach does not stop the rest.

    Mail that had vanished from other indexes than runs fill goes too: nothing tells whose it was.
    Return the number of documents deleted, and why an index could not be reached, by its name.
    """
    connection = workspace.connection
    indexes, failed = _open_indexes(workspace)
    deleted = 0
    for month in sorted({*removed_months(connection), *stale_word_months(connection)}):
        wait = partial(workspace.log, f"{month}: waiting for the run that writes its words")
        # a run that had read its messages before they were removed has ended
        with locked(connection, Partition("words", month), wait):
            deleted += _delete_gone(workspace, month, indexes, failed)
    unwanted = unwanted_documents(connection)
    for name, words in indexes.items():
        keys = unwanted.get(name, [])
        try:
            _erase_words(words, keys)
        except (WordsError, ValueError) as error:
            failed[name] = str(error)
            continue
        drop_keys(connection, words.manifest, keys)
        deleted += len(keys)
    return deleted, failed


def _open_indexes(workspace: Workspace) -> tuple[dict[str, MailWords], dict[str, str]]:
    """Return the indexes that can be opened, and why others cannot, by name."""
    indexes, failed = dict[str, MailWords](), dict[str, str]()
    for url, name in list_word_indexes(workspace.connection):
        try:
            indexes[f"{url} {name}"] = open_mail_words(url, name)
        except (WordsError, ValueError) as error:
            failed[f"{url} {name}"] = str(error)
    return indexes, failed


def _delete_gone(
    workspace: Workspace,
    month: ListMonth,
    indexes: Mapping[str, MailWords],
    failed: dict[str, str],
) -> int:
    """Delete the documents of a month that no message has, under the lock of its run.

    It may be back tomorrow, so that its keys leave the manifest at once.
    """
    deleted = 0
    for name, keys in stale_documents(workspace.connection, month).items():
        if name not in indexes:
            continue
        try:
            with suppress(MissingWordsError):
                indexes[name].index.delete(keys)
        except WordsError as error:
            failed[name] = str(error)
            continue
        drop_keys(workspace.connection, indexes[name].manifest, keys)
        deleted += len(keys)
    return deleted


def _erase_words(words: MailWords, keys: Sequence[str]) -> None:
    """Delete documents from an index and its old versions, which may hold others of before."""
    with suppress(MissingWordsError):  # it was dropped, and everything in it with it
        words.index.delete(keys)
        words.index.maintain(erase=True)
