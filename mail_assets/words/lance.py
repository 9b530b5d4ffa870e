"""The word index as one LanceDB table: one row per document, with its lexemes as one text.

Any number of processes may put, delete and search at the same time. A search also reads documents
that are not indexed yet.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
from lancedb.index import FTS, Bitmap, BTree, LabelList
from lancedb.table import AsyncTable, Table

from mail_assets.lance.connection import LanceConnection, lance_errors
from mail_assets.lance.table import (
    PRIMARY_KEY,
    READ_SINGLY,
    LanceTable,
    TableHandle,
    TableIndex,
    count_groups,
)
from mail_assets.lance.upkeep import Indexes, Limits, TableUpkeep, read_index_states
from mail_assets.lance.upkeep import clean_table as clean_other_table
from mail_assets.month import month_number
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import MetadataValue, VectorError, split
from mail_assets.vectors.lance_filters import lance_keys_sql, lance_sql
from mail_assets.words.index import (
    NAME,
    Document,
    MissingWordsError,
    Phrase,
    Prefix,
    Term,
    WordMatch,
    WordQuery,
    WordsError,
    check_word_filter,
)
from mail_assets.words.lance_query import encode_lexemes, encode_prefixes, list_ids, search_table

LIMITS = Limits(
    # A search reads unindexed documents one by one, 13 us each. Indexing them rebuilds all indexes:
    # 50 us of processor time for each document of the table. While much is added, a third of the
    # table may wait, so that the work is proportional to the new documents. Few documents wait at
    # most a day.
    least=1_000,
    share=1 / 3,
    old=dt.timedelta(days=1),
    # Finding months takes 0.15 ms for each fragment that their indexes lack, twice a run. Small
    # runs leave 3 fragments a second; building the indexes of a million documents takes 2 s.
    finders_share=0.1,
    finders_old=dt.timedelta(minutes=4),
    # Each commit leaves a fragment. Finding a month takes 6 to 10 ms among 1,000 fragments, 12 to
    # 29 ms among 2,500.
    fragments=1_000,
    fragment_rows=200,
)
#: MiB for the postings of a text index while it is built. Full memory is written as one part of the
#: index, and every search reads each part. A million messages make 4 parts with 0.65 GB of memory;
#: one part needs 1.07 GB. LanceDB divides the memory among its workers, by default half of the
#: cores; with one worker the parts are the same on every machine.
BUILD_MEMORY, BUILD_WORKERS = 256, 1

# One commit: a month of a large list.
MAX_BATCH = 20_000
MAX_LEXEMES = 10_000_000
MAX_DELETED = 10_000

SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False, metadata=PRIMARY_KEY),
        pa.field("list", pa.string()),
        pa.field("month", pa.float64()),
        pa.field("sent_at", pa.float64()),
        pa.field("sender", pa.string()),
        pa.field("message_id", pa.string()),
        pa.field("flags", pa.list_(pa.string())),
        # The fields of a match as JSON: reading one column takes a sixth of the time of five.
        pa.field("match", pa.string(), metadata=READ_SINGLY),
        pa.field("lexemes", pa.string()),
        pa.field("prefixes", pa.string()),
    ]
)


def _text_index(*, with_position: bool) -> FTS:
    # The tokens are already lexemes.
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


#: Indexes by column. Lance would split a text without an index in its own way.
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

#: One condition for the index of each column.
PROBED: tuple[Filter, ...] = (
    *({name: {"$eq": "probe"}} for name in ("list", "sender", "message_id", "flags")),
    *({name: {"$lt": 1}} for name in ("month", "sent_at")),
)
POSTPONED = "prefixes"  # the largest index, and few searches ask for a prefix
MERGED = "flags"


class LanceWordIndex(TableIndex):
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
        """Create the table and its indexes, or verify its columns."""
        table = self._table.open_or_create(SCHEMA, before)
        if table.schema.names != SCHEMA.names:
            raise WordsError(
                f"{self.label}: has the columns {', '.join(table.schema.names)}, wanted "
                f"{', '.join(SCHEMA.names)}; drop() it and fill it again"
            )
        with self._table.errors():
            plan_upkeep(table, self.label).create_missing_indexes()
        self._table.seal()

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

    def find_altered(self, documents: Iterable[Document], among: Filter) -> set[str]:
        """Return the keys of documents that the index lacks or has with another content."""
        altered: set[str] = set()
        for batch in batch_documents(documents):
            wanted = {row["key"]: row for row in to_arrow(batch).to_pylist()}
            found = self._table.read_rows(lance_keys_sql([*wanted], among, ("flags",)))
            altered.update(key for key, row in wanted.items() if found.get(key) != row)
        return altered

    def find(self, where: Filter) -> Iterator[str]:
        """Iterate over the keys whose fields match."""
        return (key for key, _ in self.find_values("key", where))

    def find_values(self, field: str, where: Filter) -> Iterator[tuple[str, MetadataValue]]:
        """Iterate over the keys whose fields match, each with its value of a field."""
        check_word_filter(where)
        return self._table.list_values(field, lance_sql(where, ("flags",)))

    def count_groups(self, fields: Sequence[str]) -> Counter[tuple[object, ...]]:
        """Count the documents by the values of some fields."""
        return self._handle.read(lambda kept: count_groups(kept.table, fields))

    def search(self, query: WordQuery, top_k: int, where: Filter | None = None) -> list[WordMatch]:
        """Return the best by BM25, or the newest if no term ranks."""
        if where is not None:
            check_word_filter(where)
        return self._handle.read(lambda kept: search_table(kept, query, top_k, where))

    def list_ids(self, query: WordQuery, most: int, where: Filter | None = None) -> list[str]:
        """Return the Message-IDs of up to `most` documents."""
        if where is not None:
            check_word_filter(where)
        return self._handle.read(lambda kept: list_ids(kept.table, query, where, most))

    def count(self) -> int:
        """Return the number of rows."""
        with self._table.errors():
            return int(self._table.open().count_rows())

    def describe(self) -> dict[str, str | int]:
        """Return backend, index, documents, unindexed documents and version."""
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

    def probe(self) -> None:
        """Check the files, and query each index of the table."""
        self._table.check_files(digests=True)
        self._table.check_indexes()
        term = "probe"
        for query in (
            WordQuery((Term(term),)),
            WordQuery((), ((Phrase((term, term)),),)),
            WordQuery((), ((Prefix(term),),)),
        ):
            self.search(query, 1)
        for condition in PROBED:
            self.search(WordQuery(()), 1, condition)

    async def _check_columns(self, table: AsyncTable) -> None:
        names = (await table.schema()).names
        missing = [name for name in SCHEMA.names if name not in names]
        if missing:
            raise WordsError(
                f"{self.label}: another version of mail_assets filled it, without "
                f"{', '.join(missing)}; run `mail-assets backfill`, which fills {NAME} and makes "
                "it live, or search with --mode semantic and without quotes until then"
            )


def plan_upkeep(table: Table, label: str) -> TableUpkeep:
    """Return the upkeep of a table by its columns, also of another version; `key` has no index."""
    return TableUpkeep(
        table,
        Indexes(
            [column for column in INDEXES if column in table.schema.names],
            main="lexemes",
            postponed=[POSTPONED],
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
    """Delete the versions that no reader needs, of a table of words or of vectors.

    Raises:
        WordsError, VectorError: writers kept interrupting; nothing is lost, run it again.
    """
    if {*TEXTS} <= {*table.schema.names}:
        plan_upkeep(table, label).maintain()
    else:
        clean_other_table(table, label, VectorError)


def batch_documents(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Yield batches that fit into memory, without a key twice in one; the last stays."""
    batch: dict[str, Document] = {}
    size = 0
    for document in documents:
        if batch and (len(batch) == MAX_BATCH or size + len(document.lexemes) > MAX_LEXEMES):
            yield list(batch.values())
            batch, size = {}, 0
        batch[document.key] = document
        size += len(document.lexemes)
    if batch:
        yield list(batch.values())


def to_arrow(batch: Sequence[Document]) -> pa.Table:
    """Return documents as rows."""
    rows = [
        (
            document.key,
            document.month.list_name,
            float(month_number(document.month.month)),
            float(document.sent_at),
            document.sender,
            document.message_id,
            list(document.flags),
            _match_json(document),
            encode_lexemes(document.lexemes),
            encode_prefixes((*document.lexemes, *document.written)),
        )
        for document in batch
    ]
    columns = zip(*rows, strict=True)
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def _match_json(document: Document) -> str:
    month = document.month
    return json.dumps(
        [document.key, month.list_name, month.month, document.message_id, document.variant],
        ensure_ascii=False,
    )
