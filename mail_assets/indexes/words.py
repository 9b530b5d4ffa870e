"""The word index of the mail: an entry for each stored message."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

import psycopg

from mail_assets.indexes.mail_index import MailBucket, MailIndex, month_filter
from mail_assets.month import ListMonth
from mail_assets.tables.indexes import NewIndex
from mail_assets.tables.words import read_digests
from mail_assets.vectors.open import open_bucket
from mail_assets.words.index import NAME, Document, WordIndex
from mail_assets.words.open import open_words


@dataclass(frozen=True)
class MailWords(MailIndex[WordIndex]):
    """A word index of the mail: of this version, or of another that is live still."""

    table = "words"
    source = "messages"
    entries = "documents"
    total = "documents"

    version: str = NAME

    @property
    def record(self) -> NewIndex:
        """Its row in `indexes`, whose columns for an encoder name the ranking here."""
        return NewIndex(self.version, "bm25", "exact", self.version.rpartition("-")[2])

    def read_digests(self, connection: psycopg.Connection, month: ListMonth) -> Mapping[str, bytes]:
        """Return the keys that a month should have, and the hashes of the rows of messages."""
        return read_digests(connection, month)

    def find_altered(self, month: ListMonth, entries: Iterable[Document]) -> Set[str]:
        """Return the keys of documents that the index has otherwise, or not at all."""
        return self.index.find_altered(entries, month_filter(month))


def open_mail_words(url: str, name: str = NAME) -> MailWords:
    """Return the index `name` in the place at `url`, MAIL_WORDS; it may not exist yet."""
    return MailWords(open_words(url, name=name), url, name)


def open_words_bucket(url: str) -> MailBucket:
    """Open the place of MAIL_WORDS, to list and delete its indexes."""
    return MailBucket(open_bucket(url), url, "words")
