"""The index of words as one LanceDB table: a row for each document, its lexemes as one text.

Any number of processes may put, delete and search at once; a search also reads what is not indexed
yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lancedb.table import AsyncTable

from mail_assets.lance.connection import LanceConnection, lance_errors
from mail_assets.lance.table import LanceTable, TableHandle, count_groups
from mail_assets.lance.upkeep import read_index_states
from mail_assets.vectors.filters import Filter, lance_keys_sql, lance_sql
from mail_assets.vectors.index import split
from mail_assets.vectors.vector import MetadataValue
from mail_assets.words.document import Document, WordMatch
from mail_assets.words.errors import MissingWordsError, WordsError
from mail_assets.words.fields import check_word_filter
from mail_assets.words.index import NAME
from mail_assets.words.lance.maintenance import plan_upkeep
from mail_assets.words.lance.rows import SCHEMA, batch_documents, to_arrow
from mail_assets.words.lance.search import list_ids, search_table
from mail_assets.words.query import WordQuery

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
