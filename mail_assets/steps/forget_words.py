"""Take forgotten messages out of the word indexes, and out of their old versions.

The keys leave the manifest last: what was interrupted, or out of reach, is done by the next
forgetting, whatever it is for.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from mail_assets.month import ListMonth
from mail_assets.steps.word_index import MailWords, open_mail_words
from mail_assets.tables.indexes import list_word_indexes
from mail_assets.tables.manifest import drop_keys
from mail_assets.tables.partitions import Partition, locked
from mail_assets.tables.removed_messages import (
    removed_months,
    stale_documents,
    stale_word_months,
    unwanted_documents,
)
from mail_assets.words.errors import MissingWordsError, WordsError
from mail_assets.workspace import Workspace


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
            _erase(words, keys)
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


def _erase(words: MailWords, keys: Sequence[str]) -> None:
    """Delete documents from an index and its old versions, which may hold others of before."""
    with suppress(MissingWordsError):  # it was dropped, and everything in it with it
        words.index.delete(keys)
        words.index.maintain(erase=True)
