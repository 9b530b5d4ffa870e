"""The word index of the mail: one entry per stored message, and its lexemes."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import psycopg

from mail_assets.indexes.mail_index import MailBucket, MailIndex, month_filter
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.tables.indexes import NewIndex
from mail_assets.tables.removed_messages import key_prefix
from mail_assets.vectors.open import open_bucket
from mail_assets.words.index import NAME, Document, WordIndex
from mail_assets.words.open import open_words

#: Messages whose lexemes are fetched at once; most have 200.
MESSAGES_AT_A_TIME = 1_000


class MessageWords(NamedTuple):
    """The content of a document; lexemes are in the order of their positions.

    `further` are lexemes across which no phrase matches: forms of words, parts of addresses, names.
    `written` are words as written. `sent_at` is in seconds since 1970.
    """

    message_id: str
    variant: int
    sent_at: int
    sender: str
    flags: list[str]
    subject: list[str]
    text: list[str]
    further: list[str]
    written: list[str]


class _Row(NamedTuple):
    message_id: str
    variant: int
    row_hash: bytes


def read_digests(connection: psycopg.Connection, month: ListMonth) -> dict[str, bytes]:
    """Return the keys of a month's documents, sorted, each with the hash of its row."""
    return {key: row.row_hash for key, row in sorted(_read_rows(connection, month).items())}


def read_words(
    connection: psycopg.Connection, month: ListMonth, keys: Collection[str]
) -> Iterator[tuple[str, MessageWords]]:
    """Yield some of a month's documents with their keys, without those of vanished messages."""
    rows = _read_rows(connection, month)
    wanted = iter([(key, rows[key]) for key in keys if key in rows])
    while some := [*islice(wanted, MESSAGES_AT_A_TIME)]:
        places = {(row.message_id, row.variant): key for key, row in some}
        parameters = {
            **month.columns,
            "message_ids": [message_id for message_id, _ in places],
            "variants": [variant for _, variant in places],
        }
        for found in connection.execute(statement("words", "documents"), parameters):
            words = MessageWords(*found)
            yield places[words.message_id, words.variant], words


def _read_rows(connection: psycopg.Connection, month: ListMonth) -> dict[str, _Row]:
    """Return the rows of a month by the keys of their documents."""
    rows = connection.execute(statement("words", "messages"), month.columns).fetchall()
    return {
        key_prefix(month, message_id, content_hash if variant else ""): _Row(
            message_id, variant, row_hash
        )
        for message_id, variant, content_hash, row_hash in rows
    }


@dataclass(frozen=True)
class MailWords(MailIndex[WordIndex]):
    """A word index of the mail: of this version, or of another version that is still live."""

    table = "words"
    source = "messages"
    entries = "documents"
    total = "documents"

    version: str = NAME

    @property
    def record(self) -> NewIndex:
        """Its row in `indexes`; the columns for an encoder describe the ranking."""
        return NewIndex(self.version, "bm25", "exact", self.version.rpartition("-")[2])

    def read_digests(self, connection: psycopg.Connection, month: ListMonth) -> Mapping[str, bytes]:
        """Return the keys that a month should have, and the hashes of the rows of messages."""
        return read_digests(connection, month)

    def find_altered(self, month: ListMonth, entries: Iterable[Document]) -> Set[str]:
        """Return the keys of documents that differ in the index or are missing there."""
        return self.index.find_altered(entries, month_filter(month))


def open_mail_words(url: str, name: str = NAME) -> MailWords:
    """Return the index `name` in the bucket at `url` (MAIL_WORDS); it may not exist yet."""
    return MailWords(open_words(url, name=name), url, name)


def open_words_bucket(url: str) -> MailBucket:
    """Open the bucket of MAIL_WORDS, to list and delete its indexes."""
    return MailBucket(open_bucket(url), url, "words")
