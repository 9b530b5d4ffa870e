"""The index of words as one LanceDB table: a row for each document, its lexemes as one text.

Any number of processes may put, delete and search at once; a search also reads what is not indexed
yet. On S3-like storage the commits need conditional writes (If-None-Match); AWS, MinIO and R2 have
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from lancedb.table import AsyncTable, Table

from mail_assets.vectors.batches import split
from mail_assets.vectors.filter_sql import lance_literal, lance_sql
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.lance.conflicts import delete_rows, merge_rows, write_beside_upkeep
from mail_assets.vectors.lance.connection import LanceConnection
from mail_assets.vectors.lance.errors import lance_errors
from mail_assets.vectors.lance.groups import count_groups
from mail_assets.vectors.lance.handle import TableHandle
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
            self._connection = LanceConnection(uri, storage_options)
        self._handle = TableHandle(self._open_readable, self.label, WordsError)

    def ensure(self, before: Callable[[], object] = lambda: None) -> None:
        """Create the table and its indexes, or verify its columns; see WordIndex.

        Raises:
            WordsError: it has other columns, or LanceDB fails.
        """
        try:
            table = self._table()
        except MissingWordsError:
            before()
            with lance_errors(self.label, WordsError):
                table = self._connection.blocking.create_table(
                    self.name, schema=SCHEMA, exist_ok=True
                )
        if table.schema.names != SCHEMA.names:
            raise WordsError(
                f"{self.label}: has the columns {', '.join(table.schema.names)}, wanted "
                f"{', '.join(SCHEMA.names)}; drop() it and fill it again"
            )
        with lance_errors(self.label, WordsError):
            plan_upkeep(table, self.label).create_missing_indexes()

    def put(self, documents: Iterable[Document]) -> int:
        """Insert or overwrite; return the number of distinct keys."""
        written: set[str] = set()
        for batch in batch_documents(documents):
            self._write(partial(merge_rows, to_arrow(batch)))
            written.update(document.key for document in batch)
        return len(written)

    def insert(self, documents: Iterable[Document]) -> None:
        """Put documents under keys that the index does not have, without looking for them."""
        table = self._snapshot()
        for batch in batch_documents(documents):
            with lance_errors(self.label, WordsError):
                table.add(to_arrow(batch))

    def delete(self, keys: Iterable[str], among: Filter | None = None) -> None:
        """Delete by key, among the documents that a filter matches."""
        within = "" if among is None else f"({lance_sql(among, ('flags',))}) AND "
        for some in split(list(dict.fromkeys(keys)), MAX_DELETED):
            where = f"{within}key IN ({', '.join(map(lance_literal, some))})"
            self._write(partial(delete_rows, where))

    def keys(self) -> Iterator[str]:
        """Iterate over all keys."""
        return self._list_keys(None)

    def find(self, where: Filter) -> Iterator[str]:
        """Iterate over the keys whose fields match."""
        check_word_filter(where)
        return self._list_keys(lance_sql(where, ("flags",)))

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
        with lance_errors(self.label, WordsError):
            return int(self._table().count_rows())

    def describe(self) -> dict[str, str | int]:
        """Return the table, its documents, and how many of them are not indexed yet."""
        table = self._table()
        with lance_errors(self.label, WordsError):
            texts = [index for index in table.list_indices() if index.columns == ["lexemes"]]
            return {
                "backend": "lance",
                "index": self.name,
                "documents": table.count_rows(),
                "unindexed_documents": texts[0].num_unindexed_rows or 0,
                "version": table.version,
            }

    def catch_up(self) -> None:
        """Index what is new, in as little time as it takes.

        Raises:
            WordsError: where writers kept interrupting; nothing is lost, run it again.
        """
        table = self._table()
        with lance_errors(self.label, WordsError):
            plan_upkeep(table, self.label).catch_up()

    def maintain(self, *, erase: bool = False) -> None:
        """Index what is new, compact, delete old versions.

        Raises:
            WordsError: where writers kept interrupting; nothing is lost, run it again.
        """
        plan_upkeep(self._table(), self.label).maintain(erase=erase)

    def needs_upkeep(self) -> bool:
        """Tell whether much was written since the last upkeep, or in many commits."""
        table = self._snapshot()
        with lance_errors(self.label, WordsError):
            return plan_upkeep(table, self.label).find_due() is not None

    def drop(self) -> None:
        """Delete the table; nothing happens where there is none."""
        with suppress(MissingWordsError):
            self._table()
            with lance_errors(self.label, WordsError):
                self._connection.blocking.drop_table(self.name)

    async def _open_readable(self) -> AsyncTable:
        """Open the table to search it.

        Raises:
            WordsError: another version made it.
        """
        with self._naming_missing():
            table = await self._connection.open_table(self.name)
        names = (await table.schema()).names
        missing = [name for name in SCHEMA.names if name not in names]
        if missing:
            raise WordsError(
                f"{self.label}: another version of mail_assets filled it, without "
                f"{', '.join(missing)}; run `mail-assets backfill`, which fills {NAME} and makes "
                "it live, or search with --mode semantic and without quotes until then"
            )
        return table

    def _write(self, write: Callable[[Table], object]) -> None:
        write_beside_upkeep(write, self._table, self.label, WordsError)

    def _list_keys(self, where: str | None) -> Iterator[str]:
        with lance_errors(self.label, WordsError):
            search = self._snapshot().search().select(["key"]).limit(None)
            for batch in (search if where is None else search.where(where)).to_batches():
                yield from batch.column("key").to_pylist()

    def _table(self) -> Table:
        with self._naming_missing():
            return self._connection.blocking.open_table(self.name)

    def _snapshot(self) -> Table:
        with self._naming_missing():
            return self._connection.open_snapshot(self.name)

    @contextmanager
    def _naming_missing(self) -> Iterator[None]:
        try:
            with lance_errors(self.label, WordsError):
                yield
        except WordsError as error:
            if "was not found" in str(error):
                raise MissingWordsError(
                    f"{self.label}: does not exist; `mail-assets backfill` creates it, or "
                    "correct the URL"
                ) from error
            raise
