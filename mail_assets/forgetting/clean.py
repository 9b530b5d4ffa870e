"""Remove forgotten messages from the files of embeddings and from all indexes.

Each month is cleaned under the lock of the run that writes it. A run that has read a month before
its rows were forgotten may still write it; so the month is cleaned after that run has ended.

Keys are deleted from the manifest last. So the next forgetting finishes what was interrupted, or
what could not be reached.
"""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from mail_assets.indexes.words import MailWords, open_mail_words
from mail_assets.month import ListMonth
from mail_assets.store.embeddings import (
    month_prefix,
    read_embeddings,
    read_fingerprint,
    read_hashes,
    write_embeddings,
)
from mail_assets.tables.encoded_texts import read_chunk_times
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

PREFIX = "embeddings/"


class EmbeddingsFile(NamedTuple):
    """A file of embeddings, or a part of a file that a run has not finished."""

    key: str
    month: ListMonth
    fingerprint: str
    is_part: bool
    modified: dt.datetime


def find_files(workspace: Workspace) -> Iterator[EmbeddingsFile]:
    """Yield all files of embeddings in the store; files with unknown names are skipped."""
    for key in workspace.store.keys(PREFIX):
        match key.split("/"):
            case [_, name, month, file] if file.endswith(".parquet"):
                fingerprint, is_part = file.removesuffix(".parquet"), False
            case [_, name, month, folder, _] if folder.endswith(".parts"):
                fingerprint, is_part = folder.removesuffix(".parts"), True
            case _:
                continue
        with suppress(FileNotFoundError):  # a run that ended meanwhile has deleted its parts
            modified = workspace.store.modified(key)
            yield EmbeddingsFile(key, ListMonth(name, month), fingerprint, is_part, modified)


def older_than_chunks(
    workspace: Workspace, files: Iterable[EmbeddingsFile]
) -> list[EmbeddingsFile]:
    """Return the files from before the last change of their chunks: only these have old texts."""
    files = [*files]
    chunked = read_chunk_times(workspace.connection)
    return [one for one in files if one.month not in chunked or one.modified < chunked[one.month]]


def keep_texts(workspace: Workspace, key: str, wanted: Collection[bytes]) -> None:
    """Rewrite a file with the vectors of `wanted` texts only; delete it if none is left."""
    vectors = read_embeddings(workspace.store, key)
    kept = {text_hash: vectors[text_hash] for text_hash in vectors.keys() & wanted}
    if kept:
        fingerprint = read_fingerprint(workspace.store, key)
        write_embeddings(workspace.store, key, kept, fingerprint)
    else:
        workspace.store.delete(key)


#: Opens an index by its name in the manifest; raises ValueError if it cannot.
OpenIndex = Callable[[str], VectorIndex]


def clean_files(workspace: Workspace, months: Collection[ListMonth]) -> int:
    """Remove vectors of deleted texts from the files of months, for all encoders.

    This includes parts that a killed run has left, months that an earlier forgetting did not
    finish, and months whose mail vanished while the file's encoder was not configured. Return the
    number of changed files.
    """
    changed = 0
    outdated = older_than_chunks(workspace, find_files(workspace))
    found = {*removed_months(workspace.connection), *(one.month for one in outdated)}
    for month in sorted(found):
        if month not in months and not any(_stale_files(workspace, month)):
            continue
        wait = partial(workspace.log, f"{month}: waiting for the run that encodes it")
        with locked(workspace.connection, Partition("embeddings", month), wait):
            wanted = read_text_hashes(workspace.connection, month)
            for key in _stale_files(workspace, month):
                keep_texts(workspace, key, wanted)
                changed += 1
    return changed


def _stale_files(workspace: Workspace, month: ListMonth) -> Iterator[str]:
    store, wanted = workspace.store, read_text_hashes(workspace.connection, month)
    for key in [*store.keys(month_prefix(month))]:
        if not wanted.issuperset(read_hashes(store, key)):
            yield key


def clean_vectors(
    workspace: Workspace, months: Collection[ListMonth], open_index: OpenIndex
) -> tuple[int, dict[str, str]]:
    """Delete the vectors without a chunk from every index in the manifest.

    These are vectors of forgotten mail, and of vanished mail in indexes that runs do not fill.
    Vanished mail is included because its author is not known. An index that cannot be reached does
    not stop the others. Then the indexes are rewritten once, without the deleted vectors. Return
    the number of deleted vectors, and index name -> reason for each failure.
    """
    connection = workspace.connection
    deleted, failed, cleaned = 0, dict[str, str](), set[str]()
    for month in sorted({*months, *stale_months(connection)}):
        wait = partial(workspace.log, f"{month}: waiting for the run that writes its vectors")
        with locked(connection, Partition("vectors", month), wait):
            stale = stale_keys(connection, month)
            for name in stale.keys() - failed.keys():
                try:
                    _delete_vectors(open_index(name), stale[name])
                except (VectorError, ValueError) as error:
                    failed[name] = str(error)
                    continue
                drop_keys(connection, Manifest("vectors", name), stale[name])
                deleted += len(stale[name])
                cleaned.add(name)
    for name in sorted(cleaned):
        try:
            with suppress(MissingIndexError):
                open_index(name).maintain(erase=True)
        except (VectorError, ValueError) as error:
            failed[name] = f"deleted, but not from old files yet: {error}"
    return deleted, failed


def _delete_vectors(index: VectorIndex, keys: Iterable[str]) -> None:
    with suppress(MissingIndexError):  # it was dropped with all that it held
        index.delete(keys)


def clean_words(workspace: Workspace) -> tuple[int, dict[str, str]]:
    """Delete the documents of forgotten mail from every word index that was ever filled.

    Vanished mail in indexes that runs do not fill is also deleted, as in clean_vectors. An index
    that cannot be reached does not stop the others. Return the number of deleted documents, and
    index name -> reason for each failure.
    """
    connection = workspace.connection
    indexes, failed = dict[str, MailWords](), dict[str, str]()
    for url, name in list_word_indexes(connection):
        try:
            indexes[f"{url} {name}"] = open_mail_words(url, name)
        except (WordsError, ValueError) as error:
            failed[f"{url} {name}"] = str(error)
    deleted = 0
    for month in sorted({*removed_months(connection), *stale_word_months(connection)}):
        wait = partial(workspace.log, f"{month}: waiting for the run that writes its words")
        # when the lock is free, a run that read the messages before their removal has ended
        with locked(connection, Partition("words", month), wait):
            deleted += _delete_gone(workspace, month, indexes, failed)
    unwanted = unwanted_documents(connection)
    for name, words in indexes.items():
        keys = unwanted.get(name, [])
        try:
            with suppress(MissingWordsError):  # it was dropped with all that it held
                words.index.delete(keys)
                words.index.maintain(erase=True)  # old versions may contain more deleted documents
        except (WordsError, ValueError) as error:
            failed[name] = str(error)
            continue
        drop_keys(connection, words.manifest, keys)
        deleted += len(keys)
    return deleted, failed


def _delete_gone(
    workspace: Workspace,
    month: ListMonth,
    indexes: Mapping[str, MailWords],
    failed: dict[str, str],
) -> int:
    """Delete documents without a message, and their keys at once: the mail may come back."""
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
