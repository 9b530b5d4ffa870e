"""The contract of an index of words, which every backend implements.

How many documents have a lexeme is not part of it: LanceDB tells it nowhere, and to count them by a
search takes 145 ms for a common word of 262,000 documents. PostgreSQL's statistics estimate it.

[document] What an index of words holds of a message, and what it returns of one.

[errors] Errors of indexes of words; cheap to import where they are only caught.

[fields] What a search of words can filter by.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from mail_assets.errors import MonthError, UnavailableError
from mail_assets.month import ListMonth
from mail_assets.vectors.filters import FieldType, Filter, check_filter
from mail_assets.vectors.index import MetadataValue
from mail_assets.words.query import WordQuery


class Document(NamedTuple):
    """The lexemes of one copy of a message, in their order, and what a search filters by.

    `key` is unique, and carries list and month as keys of chunks do. A lexeme that counts several
    times, as those of the subject do, stands several times. `sent_at` is in seconds since 1970;
    `flags` are names of what the message has: patch, attachment, reply, first.
    """

    key: str
    month: ListMonth
    message_id: str
    variant: int
    sent_at: int
    sender: str
    flags: tuple[str, ...]
    lexemes: tuple[str, ...]


class WordMatch(NamedTuple):
    """A message that matches, in one copy, and its BM25."""

    key: str
    month: ListMonth
    message_id: str
    variant: int
    score: float


#: Counts what an index keeps of a message, and how. It is in the index's name: another number is
#: another index, filled anew beside the old one. Until it is complete, search asks the old one if
#: that has every column that this version asks; so what means something else gets another name.
WORDS_VERSION = 3
NAME = f"words-{WORDS_VERSION}"


class WordIndex(Protocol):
    """One index of words. Writes are idempotent: the last document put under a key stays."""

    label: str  # for messages, without credentials

    def ensure(self, before: Callable[[], object] = lambda: None) -> None:
        """Create the index, or verify that it fits. `before` is called before it is created."""

    def put(self, documents: Iterable[Document]) -> int:
        """Insert or overwrite; return the number of documents."""

    def insert(self, documents: Iterable[Document]) -> None:
        """Put documents under keys that the index does not have; see VectorIndex.insert."""

    def delete(self, keys: Iterable[str], among: Filter | None = None) -> None:
        """Delete by key; keys that are not there are ignored.

        `among` is a filter that the documents of these keys are known to match.
        """

    def keys(self) -> Iterator[str]:
        """Iterate over all keys, in no order."""

    def find(self, where: Filter) -> Iterator[str]:
        """Iterate over the keys whose fields match, in no order."""

    def find_values(self, field: str, where: Filter) -> Iterator[tuple[str, MetadataValue]]:
        """Iterate over the keys whose fields match, each with its value of a field."""

    def count_groups(self, fields: Sequence[str]) -> Counter[tuple[object, ...]]:
        """Return how many documents have each combination of values of some fields."""

    def search(self, query: WordQuery, top_k: int, where: Filter | None = None) -> list[WordMatch]:
        """Return up to `top_k` messages, best first, equal scores in the order of keys.

        The score is BM25 over all documents of the index, whatever the filter (Robertson, Zaragoza
        2009). Of a query without terms the newest messages come first, and the score is 0. What a
        backend cannot be exact about it finds too much of, never too little: the caller verifies.
        """

    def list_ids(self, query: WordQuery, most: int, where: Filter | None = None) -> list[str]:
        """Return the Message-IDs of up to `most` documents that a query without terms finds.

        In no order, an id as often as it has copies.
        """

    def count(self) -> int:
        """Return the number of documents."""

    def describe(self) -> dict[str, str | int]:
        """Return facts for people: backend, index, documents, what is not indexed yet."""

    def catch_up(self) -> None:
        """Index what is new while an index is being filled; `maintain` does it thoroughly.

        One process at a time.
        """

    def maintain(self, *, erase: bool = False) -> None:
        """Index what is new, compact, delete old versions. Run it in one place at a time.

        `erase` deletes all old versions at once, as forgetting needs.
        """

    def needs_upkeep(self) -> bool:
        """Tell whether so much was written since the last upkeep that searches grow slow."""

    def drop(self) -> None:
        """Delete the index; nothing happens where there is none."""


class WordsError(MonthError, UnavailableError):
    """An index of words refuses or fails: names it, the fault and the remedy."""

    notice = "the index cannot be searched at the moment"


class MissingWordsError(WordsError):
    """The index does not exist."""


class Fields(NamedTuple):
    """The fields of an index and their types, as `check_filter` takes them."""

    name: str
    fields: Mapping[str, FieldType]


#: `month` is a number, 202405; `flags` holds several values, and matches where one of them does.
FIELDS = Fields(
    "words",
    {
        "list": "string",
        "month": "number",
        "sent_at": "number",
        "sender": "string",
        "message_id": "string",
        "flags": "string",
    },
)


def check_word_filter(where: Filter) -> None:
    """Refuse a filter that does not fit an index of words.

    Raises:
        FilterError: where and what is allowed.
    """
    check_filter(where, FIELDS)
