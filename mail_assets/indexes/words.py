"""The word index of the mail: its name, its part of a month, and how to open it.

What does not live here: filling it (write_words.py).
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Self

import psycopg

from mail_assets.indexes.month import find_keys, find_unfilled, month_filter
from mail_assets.month import ListMonth
from mail_assets.tables.indexes import IndexMonth, Manifest, NewIndex
from mail_assets.tables.words import read_digests
from mail_assets.words.index import NAME, WordIndex
from mail_assets.words.open import open_words


@dataclass(frozen=True)
class MailWords:
    """A word index, by the URL of the place where it is and its name there.

    Of the months that are `unfilled` it had nothing when the run began.
    """

    index: WordIndex
    url: str
    name: str = NAME
    unfilled: frozenset[ListMonth] = frozenset()

    @property
    def manifest(self) -> Manifest:
        """Where the keys are that it should have."""
        return Manifest("words", f"{self.url} {self.name}")

    @property
    def record(self) -> NewIndex:
        """How the table `indexes` has it; what is of an encoder there is of the ranking here."""
        return NewIndex(self.name, "bm25", "exact", self.name.rpartition("-")[2])

    def part(self, month: ListMonth) -> IndexMonth:
        """Return a month's part of the index, as the manifest knows it."""
        return IndexMonth(self.manifest, month)

    def for_run(self, months: Collection[ListMonth]) -> Self:
        """Return the index with those months of a run that are unfilled, see index_month.py."""
        return replace(self, unfilled=find_unfilled(self.index, months))

    def month_keys(self, month: ListMonth, intended: Collection[str] = ()) -> Counter[str]:
        """Return the keys of a month that the index has, and how often.

        `intended` are those of its manifest.
        """
        if not intended and month in self.unfilled:
            return Counter()
        return Counter(self.index.find(month_filter(month)))

    def find_keys(self, months: Collection[ListMonth]) -> Mapping[ListMonth, Counter[str]]:
        """Return the keys of some months that the index has, as month_keys does for one."""
        return find_keys(self.index, months)

    def read_digests(self, connection: psycopg.Connection, month: ListMonth) -> Mapping[str, bytes]:
        """Return the keys that a month should have, and what their documents are made from."""
        return read_digests(connection, month)


def is_word_index(name: str) -> bool:
    """Return whether an index, of whatever version, is one of words, by its name."""
    return name.startswith("words-")


def open_mail_words(url: str, name: str = NAME) -> MailWords:
    """Open the index that MAIL_WORDS names, of this version or another; it may not exist yet.

    Raises:
        ValueError: the URL is none of a word index.
    """
    return MailWords(open_words(url, name=name), url, name)
