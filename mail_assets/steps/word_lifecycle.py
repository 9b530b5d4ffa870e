"""Which index of words search asks: the first that was filled, then each newer complete one.

An index of another version of this package is filled beside it by the next backfill, and becomes
live when it has every message. The old one stays until it is retired (index_lifecycle.py).
"""

from collections.abc import Callable

import psycopg

from mail_assets.steps.index_lifecycle import LifecycleError
from mail_assets.steps.vector_index import MailBucket
from mail_assets.steps.word_index import MailWords
from mail_assets.tables.indexes import (
    ask_live_index,
    count_written,
    is_complete,
    live_index,
    switch_live,
)
from mail_assets.vectors.open import open_bucket
from mail_assets.words.index import NAME


def open_words_bucket(url: str) -> MailBucket:
    """Open the place of MAIL_WORDS as a bucket of indexes, to list and delete them."""
    return MailBucket(open_bucket(url), url, "words")


def find_live_words(connection: psycopg.Connection, url: str) -> str:
    """Return the name of the index that search asks; this version's where none was filled yet."""
    return ask_live_words(connection, url)()


def ask_live_words(connection: psycopg.Connection, url: str) -> Callable[[], str]:
    """Send the look-up of that name; return what reads the answer."""
    answer = ask_live_index(connection, url)

    def name() -> str:
        live = answer()
        return live.name if live else NAME

    return name


def promote_words(
    connection: psycopg.Connection, words: MailWords, *, force: bool = False
) -> str | None:
    """Make search ask an index of words; return the name of the one it replaces.

    Raises:
        LifecycleError: it lacks messages, and `force` is not given.
    """
    complete = is_complete(connection, words.manifest)
    if not complete and not force:
        raise LifecycleError(
            f"index {words.name} lacks messages; run `mail-assets backfill`, or use --force"
        )
    report = {"documents": count_written(connection, words.manifest)}
    return switch_live(connection, words.url, words.name, not complete, report)


def follow_version(connection: psycopg.Connection, words: MailWords) -> bool:
    """Make the index of this version live once it is complete; return whether that was done."""
    live = live_index(connection, words.url)
    if live is None or live.name == words.name or not is_complete(connection, words.manifest):
        return False
    promote_words(connection, words)
    return True
