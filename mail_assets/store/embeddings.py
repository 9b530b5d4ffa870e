"""Read and write files of embeddings: one Parquet file per month of a list and encoder.

While a month is encoded, its vectors are in parts, files of the same format; the final file is
merged from the parts and replaces them. Each file is stored atomically, so readers never see an
incomplete one.

A file has the columns `text_hash` (sha256 of the encoder's input) and `vector`, sorted by hash, so
that the same vectors give the same file. Its metadata has the encoder's fingerprint and a digest
over all rows, so that damage can be detected from the file alone. The statistics of a row group
have its first and last hash, so that files of any size can be merged in little memory.
"""

import hashlib
import tempfile
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mail_assets.errors import DamagedDataError, MonthError
from mail_assets.month import ListMonth
from mail_assets.store.objects import ObjectStore

# rows per row group: 1.5 MB with 384 dimensions
GROUP = 1_000

# Metadata key of the SHA-256 over a file's rows (bytes of hashes and float32 vectors).
ROWS_DIGEST = "rows_sha256"


class EmbeddingsFileError(MonthError, DamagedDataError):
    """A file of embeddings cannot be read; the message names the file and the remedy."""


class EmbeddingsFile(NamedTuple):
    """A file that can be opened locally, and its URL in the store."""

    path: Path
    url: str


class RowGroup(NamedTuple):
    """A row group of a file, ordered by its first hash; `number` counts from 0."""

    first: bytes
    file: EmbeddingsFile
    number: int


@contextmanager
def _fetched_file(store: ObjectStore, key: str) -> Iterator[EmbeddingsFile]:
    with store.fetch(key) as path:
        yield EmbeddingsFile(path, store.url(key))


@contextmanager
def _opened_file(file: EmbeddingsFile) -> Iterator[pq.ParquetFile]:
    """Open a file for reading.

    Raises:
        EmbeddingsFileError: the file is damaged; raised here or inside the `with` block.
        FileNotFoundError: the file was just deleted.
    """
    try:
        # pre_buffer would load all columns of all row groups
        with pq.ParquetFile(
            file.path, pre_buffer=False, page_checksum_verification=True
        ) as parquet:
            yield parquet
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise EmbeddingsFileError(
            f"{file.url} is damaged ({error}); run `mail-assets backfill --rebuild --only "
            "embeddings` for this month"
        ) from error


def _row_groups(file: EmbeddingsFile) -> Iterator[RowGroup]:
    with _opened_file(file) as parquet:
        for number in range(parquet.num_row_groups):
            yield RowGroup(
                parquet.metadata.row_group(number).column(0).statistics.min, file, number
            )


def _read_row_group(group: RowGroup) -> pa.Table:
    with _opened_file(group.file) as parquet:
        return parquet.read_row_group(group.number)


def vector_dimension(schema: pa.Schema) -> int:
    """Return the dimension of the vectors of a file."""
    return int(schema.field("vector").type.list_size)


def _table_hashes(table: pa.Table) -> list[bytes]:
    found: list[bytes] = table.column("text_hash").to_pylist()
    return found


def _table_rows(table: pa.Table) -> Iterator[tuple[bytes, npt.NDArray[np.float32]]]:
    hashes = _table_hashes(table)
    vectors = table.column("vector").combine_chunks()
    return zip(hashes, vectors.flatten().to_numpy().reshape(len(hashes), -1), strict=True)


def _write_tables(
    store: ObjectStore, key: str, tables: Iterable[pa.Table], fingerprint: str
) -> int:
    """Write sorted tables as one file; return its size in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.parquet"
        _write(path, iter(tables), fingerprint)
        size = path.stat().st_size
        store.put(key, path)
    return size


def _write(path: Path, tables: Iterator[pa.Table], fingerprint: str) -> None:
    first = next(tables)
    schema = first.schema.with_metadata({"fingerprint": fingerprint})
    digest = hashlib.sha256()
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=False, write_page_checksum=True
    ) as writer:
        for table in chain([first], tables):
            writer.write_table(table.replace_schema_metadata(schema.metadata), GROUP)
            _add_rows(digest, table)
        writer.add_key_value_metadata({ROWS_DIGEST: digest.hexdigest()})


def _add_rows(digest: "hashlib._Hash", table: pa.Table) -> None:
    for text_hash, vector in _table_rows(table):
        digest.update(text_hash)
        digest.update(vector.tobytes())


def find_fault(store: ObjectStore, key: str, fingerprint: str) -> str:
    """Read a whole file; return its fault, "" if it is intact and of the encoder.

    Raises:
        FileNotFoundError: there is no such file.
    """
    digest = hashlib.sha256()
    try:
        with _fetched_file(store, key) as file, _opened_file(file) as parquet:
            facts: dict[bytes, bytes] = parquet.metadata.metadata or {}
            for number in range(parquet.num_row_groups):
                _add_rows(digest, parquet.read_row_group(number))
    except EmbeddingsFileError:
        return "is damaged"
    except (KeyError, ValueError, AttributeError):  # other columns, or of other types
        return "is not a file of embeddings"
    if facts.get(b"fingerprint") != fingerprint.encode():
        return "was made by another encoder"
    if facts.get(ROWS_DIGEST.encode()) != digest.hexdigest().encode():
        return "has altered rows"
    return ""


#: Embeddings by the hash of their text.
Embeddings = dict[bytes, npt.NDArray[np.float32]]


class Contents(NamedTuple):
    """Hashes of a file, ascending, and the dimension of its vectors."""

    hashes: Sequence[bytes] = ()
    dimension: int = 0


def file_key(month: ListMonth, fingerprint: str) -> str:
    """Return the key of a month's file."""
    return f"{month_prefix(month)}{fingerprint}.parquet"


def month_prefix(month: ListMonth) -> str:
    """Return the prefix of all files of a month, for all encoders."""
    return f"embeddings/{month.list_name}/{month.month}/"


def parts_prefix(month: ListMonth, fingerprint: str) -> str:
    """Return the prefix of the parts of a month that is being encoded."""
    return f"{month_prefix(month)}{fingerprint}.parts/"


def part_key(prefix: str, first: bytes) -> str:
    """Return the key of a part; its first hash makes it unique."""
    return f"{prefix}{first.hex()[:16]}.parquet"


def read_embeddings(
    store: ObjectStore, key: str, wanted: Iterable[bytes] | None = None
) -> Embeddings:
    """Return all vectors of a file, or those of the `wanted` hashes; none if it is missing.

    Raises:
        EmbeddingsFileError: the file is damaged.
    """
    if not store.exists(key):
        return {}
    with _fetched_file(store, key) as file, _opened_file(file) as parquet:
        table = parquet.read()
    keep = None if wanted is None else set(wanted)
    return {
        text_hash: vector
        for text_hash, vector in _table_rows(table)
        if keep is None or text_hash in keep
    }


def read_contents(store: ObjectStore, key: str) -> Contents:
    """Return hashes and dimension of a file; none if it is missing or was just deleted.

    Raises:
        EmbeddingsFileError: the file is damaged.
    """
    try:
        with _fetched_file(store, key) as file, _opened_file(file) as parquet:
            hashes = _table_hashes(parquet.read(columns=["text_hash"]))
            return Contents(hashes, vector_dimension(parquet.schema_arrow))
    except FileNotFoundError:
        return Contents()


def read_hashes(store: ObjectStore, key: str) -> Sequence[bytes]:
    """Return the hashes of a file, ascending; none if it is missing.

    Raises:
        EmbeddingsFileError: the file is damaged.
    """
    return read_contents(store, key).hashes


def write_embeddings(
    store: ObjectStore, key: str, vectors: Mapping[bytes, object], fingerprint: str
) -> int:
    """Write a file with the encoder's fingerprint in its metadata; return its size in bytes."""
    hashes = sorted(vectors)
    matrix = np.asarray([vectors[h] for h in hashes], dtype=np.float32)
    # "element" is the name that Arrow reads back, so that a merged file has the same schema
    kind = pa.list_(pa.field("element", pa.float32()), matrix.shape[1])
    rows = {
        "text_hash": pa.array(hashes, pa.binary(32)),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), type=kind),
    }
    return _write_tables(store, key, [pa.table(rows)], fingerprint)


def read_fingerprint(store: ObjectStore, key: str) -> str:
    """Return the encoder's fingerprint from a file's metadata."""
    with store.fetch(key) as path:
        metadata = pq.read_schema(path).metadata or {}
    return str(metadata.get(b"fingerprint", b"").decode())


def merge_embeddings(
    store: ObjectStore, sources: Sequence[str], wanted: Sequence[bytes], key: str, fingerprint: str
) -> int:
    """Write a file with the vectors of the `wanted` hashes from other files; return its size.

    There is at least one hash, and they ascend. A source may be the file that is replaced. Memory
    holds the wanted rows of the row groups that overlap at one hash: at most one per source, and
    usually fewer, because parts are ranges.

    Raises:
        EmbeddingsFileError: a source is damaged.
        KeyError: a hash is in none of the files.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(_fetched_file(store, source)) for source in sources]
        return _write_tables(store, key, _merged(files, wanted), fingerprint)


def copy_embeddings(
    store: ObjectStore, source: str, wanted: Collection[bytes], prefix: str, dimension: int
) -> set[bytes]:
    """Copy the `wanted` vectors of a file, if any, into a part; return their hashes.

    Nothing is copied from a file with vectors of another dimension.

    Raises:
        EmbeddingsFileError: the file is damaged.
    """
    if not store.exists(source):
        return set()
    copied: set[bytes] = set()
    with _fetched_file(store, source) as file:
        tables = _chosen(file, wanted, dimension, copied)
        first = next(tables, None)
        if first is not None:
            fingerprint = first.schema.metadata[b"fingerprint"].decode()
            _write_tables(store, part_key(prefix, min(copied)), chain([first], tables), fingerprint)
    return copied


def _merged(files: Iterable[EmbeddingsFile], wanted: Sequence[bytes]) -> Iterator[pa.Table]:
    """Yield the wanted rows in order, GROUP rows at a time."""
    waiting = deque(sorted(group for file in files for group in _row_groups(file)))
    keep = set(wanted)
    here: list[pa.Table] = []  # sorted tables that were read but not written yet
    size = GROUP
    for start in range(0, len(wanted), size):
        portion = wanted[start : start + size]
        while waiting and waiting[0].first <= portion[-1]:
            here.append(_only(keep, _read_row_group(waiting.popleft())))
        rows = pa.concat_tables(here)
        places = {text_hash: row for row, text_hash in enumerate(_table_hashes(rows))}
        yield rows.take([places[text_hash] for text_hash in portion]).combine_chunks()
        here = [left for table in here if (left := _after(portion[-1], table)).num_rows]


def _chosen(
    file: EmbeddingsFile, wanted: Collection[bytes], dimension: int, copied: set[bytes]
) -> Iterator[pa.Table]:
    """Yield the wanted rows of a file of this dimension, and add their hashes to `copied`.

    The file stays open, because it may be replaced at any time by one with other rows.
    """
    with _opened_file(file) as parquet:
        if vector_dimension(parquet.schema_arrow) != dimension:
            return
        for number in range(parquet.num_row_groups):
            rows = _only(wanted, parquet.read_row_group(number))
            copied.update(_table_hashes(rows))
            if rows.num_rows:
                yield rows


def _only(keep: Collection[bytes], table: pa.Table) -> pa.Table:
    return table.filter(
        pa.array([text_hash in keep for text_hash in _table_hashes(table)], pa.bool_())
    )


def _after(text_hash: bytes, table: pa.Table) -> pa.Table:
    return table.filter(pa.array([other > text_hash for other in _table_hashes(table)], pa.bool_()))
