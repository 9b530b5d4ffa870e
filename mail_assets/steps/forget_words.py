"""Take forgotten messages out of the word indexes, and out of their old versions.

The keys leave the manifest last: what was interrupted, or out of reach, is done by the next
forgetting, whatever it is for.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from mail_assets.steps.word_index import MailWords, open_mail_words
from mail_assets.steps.workspace import Workspace
from mail_assets.tables.indexes import list_word_indexes
from mail_assets.tables.manifest import drop_keys
from mail_assets.tables.partitions import Partition, locked
from mail_assets.tables.removed_messages import removed_months, unwanted_documents
from mail_assets.words.errors import MissingWordsError, WordsError


def clean_words(workspace: Workspace) -> tuple[int, dict[str, str]]:
    """Clean every word index that was ever filled; one out of reach does not stop the rest.

    Return the number of documents deleted, and why an index could not be reached, by its name.
    """
    connection = workspace.connection
    for month in removed_months(connection):
        wait = partial(workspace.log, f"{month}: waiting for the run that writes its words")
        with locked(connection, Partition("words", month), wait):
            pass  # a run that had read its messages before they were removed has ended
    unwanted = unwanted_documents(connection)
    deleted, failed = 0, dict[str, str]()
    for url, name in list_word_indexes(connection):
        keys = unwanted.get(f"{url} {name}", [])
        try:
            words = open_mail_words(url, name)
            _erase(words, keys)
        except (WordsError, ValueError) as error:
            failed[f"{url} {name}"] = str(error)
            continue
        drop_keys(connection, words.manifest, keys)
        deleted += len(keys)
    return deleted, failed


def _erase(words: MailWords, keys: Sequence[str]) -> None:
    """Delete documents from an index and its old versions, which may hold others of before."""
    with suppress(MissingWordsError):  # it was dropped, and everything in it with it
        words.index.delete(keys)
        words.index.maintain(erase=True)
