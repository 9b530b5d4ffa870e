"""The contract of a word index, which every backend implements, and its queries.

It has no method for the number of documents with a lexeme: LanceDB does not report it, and counting
by a search is slow for common words. The statistics of PostgreSQL estimate it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple, Protocol

from mail_assets.errors import MonthError, UnavailableError
from mail_assets.month import ListMonth
from mail_assets.vectors.filters import FieldType, Filter, check_filter
from mail_assets.vectors.index import MetadataValue

#: Shares are multiples of this; a backend rounds other values.
SHARE_STEP = 0.25
#: Characters of a prefix that every backend compares.
EXACT_PREFIX = 8


class Term(NamedTuple):
    """A lexeme that ranks; `share`, a multiple of SHARE_STEP, is its relative weight."""

    lexeme: str
    share: float = 1.0


class Phrase(NamedTuple):
    """Lexemes that follow each other; stop words between them are ignored."""

    lexemes: tuple[str, ...]


class Prefix(NamedTuple):
    """Any lexeme, or word as written, that begins with this text."""

    text: str


#: A lexeme, or what several lexemes can match.
Clause = str | Phrase | Prefix


class WordQuery(NamedTuple):
    """Terms that rank messages, and clauses that a hit must or must not have.

    A hit has at least one of `terms`, if there are any, at least one clause of each element of
    `required`, and no clause of `excluded`. A backend may ignore the characters of a prefix after
    the first EXACT_PREFIX and find too much, so excluded prefixes are not longer. Only the first
    100 terms count; give the rare ones first.

    Without terms the newest messages come first, or the oldest if `oldest_from` is given: the time,
    in seconds since 1970, of the first messages. It only makes the search faster; messages may be
    older.
    """

    terms: tuple[Term, ...]
    required: tuple[tuple[Clause, ...], ...] = ()
    excluded: tuple[Clause, ...] = ()
    oldest_from: float | None = None


#: Version of the columns of an index, and part of its name. A new version is a new index, filled
#: next to the old one. Until it is complete, search uses the old one if that has every column that
#: this version reads. So a column whose meaning changes gets a new name.
WORDS_VERSION = 5
NAME = f"words-{WORDS_VERSION}"


class Document(NamedTuple):
    """The lexemes of one copy of a message, in their order, and the fields of filters.

    `written` are words as written; only prefixes search them, in addition to the lexemes. `key` is
    unique and includes list and month, like keys of chunks. A lexeme that counts several times,
    such as those of the subject, is repeated. `sent_at` is in seconds since 1970. `flags` are
    properties of the message: patch, attachment, reply, first.
    """

    key: str
    month: ListMonth
    message_id: str
    variant: int
    sent_at: int
    sender: str
    flags: tuple[str, ...]
    lexemes: tuple[str, ...]
    written: tuple[str, ...] = ()


class WordMatch(NamedTuple):
    """One copy of a message that matches, and its BM25 score."""

    key: str
    month: ListMonth
    message_id: str
    variant: int
    score: float


class WordsError(MonthError, UnavailableError):
    """A word index refuses or fails; names the index, the fault and the remedy."""

    notice = "the index cannot be searched at the moment"


class MissingWordsError(WordsError):
    """The index does not exist."""


class WordIndex(Protocol):
    """One word index. Writes are idempotent: the last document put under a key stays."""

    label: str  # names it in messages, without credentials

    def ensure(self, before: Callable[[], object] = lambda: None) -> None:
        """Create the index, or verify that it fits; call `before` before it is created."""

    def put(self, documents: Iterable[Document]) -> int:
        """Insert or overwrite; return the number of documents."""

    def insert(self, documents: Iterable[Document]) -> None:
        """Put documents whose keys the index does not have; see VectorIndex.insert."""

    def delete(self, keys: Iterable[str], among: Filter | None = None) -> None:
        """Delete by key; unknown keys are ignored. All documents match the filter `among`."""

    def keys(self) -> Iterator[str]:
        """Iterate over all keys, in no order."""

    def find_altered(self, documents: Iterable[Document], among: Filter) -> Set[str]:
        """Return the keys that are missing or have other content; all documents match `among`."""

    def find(self, where: Filter) -> Iterator[str]:
        """Iterate over the keys whose fields match, in no order."""

    def find_values(self, field: str, where: Filter) -> Iterator[tuple[str, MetadataValue]]:
        """Iterate over the keys whose fields match, each with its value of a field."""

    def count_groups(self, fields: Sequence[str]) -> Counter[tuple[object, ...]]:
        """Count the documents by the values of some fields."""

    def search(self, query: WordQuery, top_k: int, where: Filter | None = None) -> list[WordMatch]:
        """Return up to `top_k` messages, best first, equal scores in the order of keys.

        The score is BM25 over all documents of the index, independent of the filter (Robertson,
        Zaragoza 2009). For a query without terms the newest or oldest messages come first, and the
        score is 0. A backend that cannot be exact finds too much, never too little: the caller
        verifies the matches.
        """

    def list_ids(self, query: WordQuery, most: int, where: Filter | None = None) -> list[str]:
        """Return the Message-IDs of up to `most` documents that a query without terms finds.

        They are in no order. A message with several copies is returned several times.
        """

    def count(self) -> int:
        """Return the number of documents."""

    def probe(self) -> None:
        """Check the files as far as possible, and run each kind of query.

        Raises:
            WordsError: a part of it is damaged or does not answer.
        """

    def describe(self) -> dict[str, str | int]:
        """Return facts for people: backend, index, documents, unindexed documents."""

    def catch_up(self) -> None:
        """Index new documents while an index is being filled; one process at a time."""

    def maintain(self, *, erase: bool = False) -> None:
        """Index new documents, compact, delete old versions; one process at a time.

        `erase` deletes all old versions immediately, as forgetting needs.
        """

    def needs_upkeep(self) -> bool:
        """Return whether so much was written since the last upkeep that searches grow slow."""

    def drop(self) -> None:
        """Delete the index, if it exists."""


class Fields(NamedTuple):
    """The fields of an index and their types, for `check_filter`."""

    name: str
    fields: Mapping[str, FieldType]


#: `month` is a number, 202405. `flags` has several values and matches if one of them does.
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
    """Refuse a filter that does not fit a word index.

    Raises:
        FilterError: names the place and what is allowed.
    """
    check_filter(where, FIELDS)
