"""The file format of embeddings: Parquet, written in small row groups and checked when read.

A file has the columns `text_hash` (sha256 of what the encoder saw) and `vector`, sorted by hash,
so that the same vectors make the same file; the encoder's fingerprint is in its metadata. A row
group knows its first and last hash, so that files of any size are merged in little memory.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mail_assets.store.objects import ObjectStore

#: Rows to a row group: 1.5 MB of 384 numbers.
GROUP = 1_000


class EmbeddingsFileError(RuntimeError):
    """A file of embeddings cannot be read: names the file and the remedy."""


class EmbeddingsFile(NamedTuple):
    """A file that can be opened locally, and its URL in the store."""

    path: Path
    url: str


class RowGroup(NamedTuple):
    """A row group of a file by its first hash; `number` counts from 0."""

    first: bytes
    file: EmbeddingsFile
    number: int


@contextmanager
def fetched_file(store: ObjectStore, key: str) -> Iterator[EmbeddingsFile]:
    """Give a file of the store to open locally, for the length of a `with` block."""
    with store.fetch(key) as path:
        yield EmbeddingsFile(path, store.url(key))


@contextmanager
def opened_file(file: EmbeddingsFile) -> Iterator[pq.ParquetFile]:
    """Open a file to read from it.

    Raises:
        EmbeddingsFileError: Arrow finds it damaged, here or inside the `with` block.
        FileNotFoundError: it has just been deleted.
    """
    try:
        # pre_buffer would hold all columns of all row groups
        with pq.ParquetFile(
            file.path, pre_buffer=False, page_checksum_verification=True
        ) as parquet:
            yield parquet
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise EmbeddingsFileError(
            f"{file.url} is damaged ({error}); delete it and materialize embeddings again"
        ) from error


def row_groups(file: EmbeddingsFile) -> Iterator[RowGroup]:
    """Yield the row groups of a file, in order."""
    with opened_file(file) as parquet:
        for number in range(parquet.num_row_groups):
            yield RowGroup(
                parquet.metadata.row_group(number).column(0).statistics.min, file, number
            )


def read_row_group(group: RowGroup) -> pa.Table:
    """Return the rows of a row group."""
    with opened_file(group.file) as parquet:
        return parquet.read_row_group(group.number)


def vector_dimension(schema: pa.Schema) -> int:
    """Return how many numbers each vector of a file has."""
    return int(schema.field("vector").type.list_size)


def table_hashes(table: pa.Table) -> list[bytes]:
    """Return the hashes of a table, in its order."""
    found: list[bytes] = table.column("text_hash").to_pylist()
    return found


def table_rows(table: pa.Table) -> Iterator[tuple[bytes, npt.NDArray[np.float32]]]:
    """Return the hashes of a table with their vectors, in its order."""
    hashes = table_hashes(table)
    vectors = table.column("vector").combine_chunks()
    return zip(hashes, vectors.flatten().to_numpy().reshape(len(hashes), -1), strict=True)


def write_tables(store: ObjectStore, key: str, tables: Iterable[pa.Table], fingerprint: str) -> int:
    """Write sorted tables, one after the other, as one file; return its size in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.parquet"
        _write(path, iter(tables), fingerprint)
        size = path.stat().st_size
        store.put(key, path)
    return size


def _write(path: Path, tables: Iterator[pa.Table], fingerprint: str) -> None:
    first = next(tables)
    schema = first.schema.with_metadata({"fingerprint": fingerprint})
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=False, write_page_checksum=True
    ) as writer:
        for table in chain([first], tables):
            writer.write_table(table.replace_schema_metadata(schema.metadata), GROUP)
