"""The rows of chunks: writing a month, and reading it for the encoder and the vector index."""

import hashlib
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import psycopg
from psycopg.rows import tuple_row

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import copy_rows, read_as, read_value, statement
from mail_assets.tables.partitions import RowChanges
from mail_assets.text.chunking import Chunk


class ChunkRow(NamedTuple):
    """A chunk with its key and its message."""

    key: str
    message_id: str
    variant: int
    text_hash: bytes
    chunk: Chunk


class TextSize(NamedTuple):
    """The hash of a text, and its length in tokens."""

    text_hash: bytes
    tokens: int


class Document(NamedTuple):
    """A text to encode."""

    text_hash: bytes
    subject: str
    text: str


class ChunkFacts(NamedTuple):
    """The metadata of a vector."""

    key: str
    text_hash: bytes
    position: int
    message_id: str
    sender: str
    sent_at: int
    subject: str
    kind: str


def chunk_key(month: ListMonth, message_id: str, variant_hash: str, index: int) -> str:
    """Return the key of a chunk: the same in every run, and different in each partition.

    `variant_hash` is empty for the first content of a Message-ID. The blank before it is in no
    Message-ID, so that no id can be invented that yields the key of another message.
    """
    place = f"{month.key}|{message_id} {variant_hash}".rstrip()
    return f"{hashlib.sha256(place.encode()).hexdigest()[:32]}#{index}"


def replace_chunks(
    connection: psycopg.Connection, month: ListMonth, rows: Iterable[ChunkRow]
) -> RowChanges:
    """Make the chunks of a month equal to `rows`; call it inside a transaction.

    `rows` may read from the same connection while it is iterated.
    """
    digest = hashlib.sha256()

    def columns(row: ChunkRow) -> tuple[object, ...]:
        index, spans, text, tokens = row.chunk
        flat = [offset for span in spans for offset in span]
        digest.update(f"{row.key} {row.text_hash.hex()} {flat}\n".encode())
        place = (row.key, month.list_name, month.month, row.message_id, row.variant)
        return (*place, index, text, flat, tokens, row.text_hash)

    connection.execute(statement("chunks", "stage"))
    copy_rows(connection, statement("chunks", "copy"), map(columns, rows))
    connection.execute(statement("chunks", "analyze_stage"))
    written = connection.execute(statement("chunks", "upsert")).rowcount
    deleted = connection.execute(statement("chunks", "delete_vanished"), month.columns).rowcount
    return RowChanges(written, deleted, digest.hexdigest())


def read_text_sizes(connection: psycopg.Connection, month: ListMonth) -> list[TextSize]:
    """Return each distinct text of a month once, in the order of its hash."""
    return read_as(connection, TextSize, statement("chunks", "text_sizes"), month.columns)


def read_documents(
    connection: psycopg.Connection, month: ListMonth, hashes: Collection[bytes]
) -> Iterator[Document]:
    """Yield the texts of a month that have one of `hashes`, in the order of the hashes.

    The cursor is WITH HOLD: the server keeps the rows in a file, and no transaction stays open.
    """
    parameters = {**month.columns, "hashes": [*hashes]}
    with connection.cursor("documents", row_factory=tuple_row, withhold=True) as cursor:
        cursor.itersize = 1_000
        for row in cursor.execute(statement("chunks", "documents"), parameters):
            yield Document(*row)


def count_unencoded(connection: psycopg.Connection, encoder: str) -> int:
    """Return about how many chunks the encoder (a fingerprint) lacks, counted in each month."""
    return int(read_value(connection, statement("chunks", "left"), {"encoder": encoder}) or 0)


def find_encoded(
    connection: psycopg.Connection, month: ListMonth, hashes: Collection[bytes], encoder: str
) -> dict[ListMonth, set[bytes]]:
    """Return other months with some of the texts `hashes` that an encoder has encoded.

    `encoder` is a fingerprint. Each text is listed under at most one month.
    """
    parameters = {**month.columns, "hashes": [*hashes], "encoder": encoder}
    rows = connection.execute(statement("chunks", "elsewhere"), parameters).fetchall()
    return {ListMonth(name, other): {*texts} for name, other, texts in rows}


def read_facts(connection: psycopg.Connection, month: ListMonth) -> list[ChunkFacts]:
    """Return the metadata of the vectors of a month, by key."""
    return read_as(connection, ChunkFacts, statement("chunks", "for_vectors"), month.columns)
