"""The index of words as one LanceDB table: a row for each document, its lexemes as one text.

Any number of processes may put, delete and search at once; a search also reads what is not indexed
yet.

[maintenance] The indexes of the table of words, and how much may wait for them (lance/upkeep.py).
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from lancedb.index import FTS, Bitmap, BTree, LabelList
from lancedb.table import AsyncTable, Table

from mail_assets.lance.connection import LanceConnection, lance_errors
from mail_assets.lance.table import LanceTable, TableHandle, count_groups
from mail_assets.lance.upkeep import Indexes, Limits, TableUpkeep, read_index_states
from mail_assets.lance.upkeep import clean_table as clean_other_table
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import MetadataValue, VectorError, split
from mail_assets.vectors.lance_filters import lance_keys_sql, lance_sql
from mail_assets.words.index import (
    NAME,
    Document,
    MissingWordsError,
    WordMatch,
    WordsError,
    check_word_filter,
)
from mail_assets.words.lance_query import SCHEMA, batch_documents, list_ids, search_table, to_arrow
from mail_assets.words.query import WordQuery

LIMITS = Limits(
    # Documents beside the index are read one by one, 13 microseconds each for every search. To take
    # them in makes all indexes anew, 50 microseconds of the processor a document. While much is
    # added that waits for a share of the table, which makes the work proportional to what was
    # added; otherwise for a day, so that a large table does not wait for a third of its size.
    least=1_000,
    share=1 / 3,
    old=dt.timedelta(days=1),
    # To find months takes 0.15 ms for each fragment that their indexes lack, twice a run. Small
    # ones leave 3 in a second; the indexes of a million take 2 s to make.
    finders_share=0.1,
    finders_old=dt.timedelta(minutes=4),
    # Each commit leaves a fragment. To find a month takes 6 to 10 ms among 1,000 fragments and 12
    # to 29 among 2,500, to add one 10 and 14.
    fragments=1_000,
    fragment_rows=200,
)
#: MiB for the postings of a text index that is being made; then they are written, as a part of the
#: index that each search asks. A million messages make 4 parts: 0.65 GB of memory and 42 s, where
#: one part takes 1.07 GB and 49 s, and a search 8 ms with either; 9 ms with 8 parts, of 128 MiB.
#: LanceDB divides the memory among its workers, half of the cores if nothing is said: with one the
#: parts are the same on every machine.
BUILD_MEMORY, BUILD_WORKERS = 256, 1


def _text_index(*, with_position: bool) -> FTS:
    """Return an index of a text whose tokens stay as they are: they are lexemes, see `tokens`."""
    return FTS(
        with_position=with_position,
        base_tokenizer="simple",
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
        max_token_length=None,
        memory_limit=BUILD_MEMORY,
        num_workers=BUILD_WORKERS,
    )


#: Columns and how they are indexed. A text without an index would be cut by Lance in its own way.
INDEXES: dict[str, FTS | Bitmap | BTree | LabelList] = {
    "lexemes": _text_index(with_position=True),
    "prefixes": _text_index(with_position=False),
    "list": Bitmap(),
    "month": BTree(),
    "sent_at": BTree(),
    "sender": BTree(),
    "message_id": BTree(),
    "flags": LabelList(),
}
TEXTS = ("lexemes", "prefixes")
#: The largest index, and few searches ask for a prefix.
LEFT_TO_THE_END = "prefixes"
MERGED = "flags"


def plan_upkeep(table: Table, label: str) -> TableUpkeep:
    """Return the upkeep of a table; one of another version has the indexes of its columns.

    There is none of `key`, or concurrent writers would duplicate rows.
    """
    return TableUpkeep(
        table,
        Indexes(
            [column for column in INDEXES if column in table.schema.names],
            main="lexemes",
            postponed=[LEFT_TO_THE_END],
            merged=MERGED,
        ),
        LIMITS,
        partial(_create_index, table),
        label,
        WordsError,
    )


def _create_index(table: Table, column: str) -> None:
    table.create_index(column, config=INDEXES[column])


def clean_table(table: Table, label: str) -> None:
    """Delete the versions that no reader can be on, of a table of words or another one.

    Raises:
        WordsError, VectorError: where writers kept interrupting; nothing is lost, run it again.
    """
    if {*TEXTS} <= {*table.schema.names}:
        plan_upkeep(table, label).maintain()
    else:
        clean_other_table(table, label, VectorError)


MAX_DELETED = 10_000


class LanceWordIndex:
    """One Lance table."""

    def __init__(
        self, uri: str, storage_options: Mapping[str, str] | None = None, name: str = NAME
    ) -> None:
        self.name, self.label = name, f"{name} in lance:{uri}"
        with lance_errors(self.label, WordsError):
            connection = LanceConnection(uri, storage_options)
        self._table = LanceTable(
            connection, name, self.label, WordsError, MissingWordsError, plan_upkeep
        )
        self._handle = TableHandle(self._table, self._check_columns)

    def ensure(self, before: Callable[[], object] = lambda: None) -> None:
        """Create the table and its indexes, or verify its columns; see WordIndex.

        Raises:
            WordsError: it has other columns, or LanceDB fails.
        """
        table = self._table.open_or_create(SCHEMA, before)
        if table.schema.names != SCHEMA.names:
            raise WordsError(
                f"{self.label}: has the columns {', '.join(table.schema.names)}, wanted "
                f"{', '.join(SCHEMA.names)}; drop() it and fill it again"
            )
        with self._table.errors():
            plan_upkeep(table, self.label).create_missing_indexes()

    def put(self, documents: Iterable[Document]) -> int:
        """Insert or overwrite; return the number of distinct keys."""
        written: set[str] = set()
        for batch in batch_documents(documents):
            self._table.merge(to_arrow(batch))
            written.update(document.key for document in batch)
        return len(written)

    def insert(self, documents: Iterable[Document]) -> None:
        """Put documents under keys that the index does not have, without looking for them."""
        table = self._table.open_snapshot()
        for batch in batch_documents(documents):
            with self._table.errors():
                table.add(to_arrow(batch))

    def delete(self, keys: Iterable[str], among: Filter | None = None) -> None:
        """Delete by key, among the documents that a filter matches."""
        for some in split(list(dict.fromkeys(keys)), MAX_DELETED):
            self._table.delete(lance_keys_sql(some, among, ("flags",)))

    def keys(self) -> Iterator[str]:
        """Iterate over all keys."""
        return self._table.list_keys()

    def find(self, where: Filter) -> Iterator[str]:
        """Iterate over the keys whose fields match."""
        return (key for key, _ in self.find_values("key", where))

    def find_values(self, field: str, where: Filter) -> Iterator[tuple[str, MetadataValue]]:
        """Iterate over the keys whose fields match, each with its value of a field."""
        check_word_filter(where)
        return self._table.list_values(field, lance_sql(where, ("flags",)))

    def count_groups(self, fields: Sequence[str]) -> Counter[tuple[object, ...]]:
        """Return how many documents have each combination of values of some fields."""
        return self._handle.read(lambda kept: count_groups(kept.table, fields))

    def search(self, query: WordQuery, top_k: int, where: Filter | None = None) -> list[WordMatch]:
        """Return the best by BM25, or the newest where no term ranks."""
        if where is not None:
            check_word_filter(where)
        return self._handle.read(lambda kept: search_table(kept, query, top_k, where))

    def list_ids(self, query: WordQuery, most: int, where: Filter | None = None) -> list[str]:
        """Return the Message-IDs of up to so many documents."""
        if where is not None:
            check_word_filter(where)
        return self._handle.read(lambda kept: list_ids(kept.table, query, where, most))

    def count(self) -> int:
        """Return the number of rows."""
        with self._table.errors():
            return int(self._table.open().count_rows())

    def describe(self) -> dict[str, str | int]:
        """Return the table, its documents, and how many of them are not indexed yet."""
        table = self._table.open()
        with self._table.errors():
            rows = table.count_rows()
            state = read_index_states(table).get("lexemes")
            return {
                "backend": "lance",
                "index": self.name,
                "documents": rows,
                "unindexed_documents": state.unindexed_rows if state else rows,
                "version": table.version,
            }

    def catch_up(self) -> None:
        """Index what is new, in as little time as it takes."""
        self._table.catch_up()

    def maintain(self, *, erase: bool = False) -> None:
        """Index what is new, compact, delete old versions."""
        self._table.maintain(erase=erase)

    def needs_upkeep(self) -> bool:
        """Tell whether much was written since the last upkeep, or in many commits."""
        return self._table.needs_upkeep()

    def drop(self) -> None:
        """Delete the table; nothing happens where there is none."""
        self._table.drop()

    async def _check_columns(self, table: AsyncTable) -> None:
        """Refuse to search a table that another version made."""
        names = (await table.schema()).names
        missing = [name for name in SCHEMA.names if name not in names]
        if missing:
            raise WordsError(
                f"{self.label}: another version of mail_assets filled it, without "
                f"{', '.join(missing)}; run `mail-assets backfill`, which fills {NAME} and makes "
                "it live, or search with --mode semantic and without quotes until then"
            )
