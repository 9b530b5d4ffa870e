"""The Parquet files of embeddings: one a month of a list and encoder fingerprint.

A file has the columns `text_hash` (sha256 of what the encoder saw) and `vector`, sorted by
hash, so that the same vectors make the same file. While a month is being encoded, its
vectors are kept in parts, small files of their own; the whole file replaces them. Each is
put in one piece: what can be read is whole. Row groups are small and know their first and
last hash, so that files of any size are merged in little memory.
"""

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

from mail_assets.month import ListMonth
from mail_assets.store.objects import ObjectStore

Vectors = dict[bytes, npt.NDArray[np.float32]]

#: Rows to a row group: 1.5 MB of 384 numbers.
GROUP = 1_000


class EmbeddingsError(RuntimeError):
    """A file of embeddings that cannot be read: names the file and the remedy."""


class _File(NamedTuple):
    """A file that is at hand, and what people call it."""

    path: Path
    url: str


class _Group(NamedTuple):
    """A row group by its first hash."""

    first: bytes
    file: _File
    number: int


def file_key(month: ListMonth, fingerprint: str) -> str:
    """Return the key of a month's file."""
    return f"{folder_key(month)}{fingerprint}.parquet"


def folder_key(month: ListMonth) -> str:
    """Return the prefix of all files of a month, whatever their encoder."""
    return f"embeddings/{month.list_name}/{month.month}/"


def parts_prefix(month: ListMonth, fingerprint: str) -> str:
    """Return the prefix of the parts of a month that is being encoded."""
    return f"{folder_key(month)}{fingerprint}.parts/"


def part_key(prefix: str, first: bytes) -> str:
    """Return the key of a part: by its first hash, for no two parts share one."""
    return f"{prefix}{first.hex()[:16]}.parquet"


def read_vectors(store: ObjectStore, key: str, wanted: Iterable[bytes] | None = None) -> Vectors:
    """Return the vectors of a file, or those under the `wanted` hashes; none if it is missing.

    Raises:
        EmbeddingsError: the file is damaged.
    """
    if not store.exists(key):
        return {}
    with _at_hand(store, key) as file, _opened(file) as parquet:
        table = parquet.read()
    keep = None if wanted is None else set(wanted)
    return {
        text_hash: vector for text_hash, vector in _rows(table) if keep is None or text_hash in keep
    }


def read_hashes(store: ObjectStore, key: str) -> list[bytes]:
    """Return the hashes of a file, ascending; none if it is missing.

    Raises:
        EmbeddingsError: the file is damaged.
    """
    if not store.exists(key):
        return []
    with _at_hand(store, key) as file, _opened(file) as parquet:
        return _hashes(parquet.read(columns=["text_hash"]))


def first_vectors(store: ObjectStore, key: str, count: int) -> Vectors:
    """Return the first `count` vectors of a file, a GROUP at most; none if it is missing.

    Raises:
        EmbeddingsError: the file is damaged.
    """
    if not store.exists(key):
        return {}
    with _at_hand(store, key) as file:
        return dict(_rows(_read_group(_Group(b"", file, 0)).slice(0, count)))


def write_vectors(store: ObjectStore, key: str, vectors: Mapping[bytes, object], about: str) -> int:
    """Write a file and return its size in bytes. `about`, the fingerprint, stands in it."""
    hashes = sorted(vectors)
    matrix = np.asarray([vectors[h] for h in hashes], dtype=np.float32)
    # "element" is what Arrow reads it as: a file that is merged from others has the same schema
    kind = pa.list_(pa.field("element", pa.float32()), matrix.shape[1])
    rows = {
        "text_hash": pa.array(hashes, pa.binary(32)),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), type=kind),
    }
    return _put(store, key, [pa.table(rows)], about)


def merge_vectors(
    store: ObjectStore, sources: Sequence[str], wanted: Sequence[bytes], key: str, about: str
) -> int:
    """Write a file of the `wanted` hashes, with their vectors from other files; return its size.

    The hashes, one at least, ascend; a source may be the file that is replaced. In memory are
    the wanted rows of the row groups that span one place in the order: one of each source, and
    mostly fewer, for parts are ranges.

    Raises:
        EmbeddingsError: a source is damaged.
        KeyError: a hash is in none of them.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(_at_hand(store, source)) for source in sources]
        return _put(store, key, _merged(files, wanted), about)


def copy_vectors(
    store: ObjectStore, source: str, wanted: Collection[bytes], prefix: str, about: str
) -> set[bytes]:
    """Keep as a part what a file holds of the `wanted` hashes, if anything; return those.

    Raises:
        EmbeddingsError: the file is damaged.
    """
    if not store.exists(source):
        return set()
    copied: set[bytes] = set()
    with _at_hand(store, source) as file:
        tables = _chosen(file, wanted, copied)
        first = next(tables, None)
        if first is not None:
            _put(store, part_key(prefix, min(copied)), chain([first], tables), about)
    return copied


def file_fingerprint(store: ObjectStore, key: str) -> str:
    """Return the fingerprint that stands inside a file."""
    with store.fetch(key) as path:
        metadata = pq.read_schema(path).metadata or {}
    return str(metadata.get(b"fingerprint", b"").decode())


def _merged(files: Iterable[_File], wanted: Sequence[bytes]) -> Iterator[pa.Table]:
    """Yield the wanted rows in order, a GROUP at a time."""
    waiting = deque(sorted(group for file in files for group in _groups(file)))
    keep = set(wanted)
    here: list[pa.Table] = []  # what is read and not yet written, each sorted
    for start in range(0, len(wanted), GROUP):
        portion = wanted[start : start + GROUP]
        while waiting and waiting[0].first <= portion[-1]:
            here.append(_only(keep, _read_group(waiting.popleft())))
        rows = pa.concat_tables(here)
        places = {text_hash: row for row, text_hash in enumerate(_hashes(rows))}
        yield rows.take([places[text_hash] for text_hash in portion]).combine_chunks()
        here = [left for table in here if (left := _after(portion[-1], table)).num_rows]


def _groups(file: _File) -> Iterator[_Group]:
    with _opened(file) as parquet:
        for number in range(parquet.num_row_groups):
            yield _Group(parquet.metadata.row_group(number).column(0).statistics.min, file, number)


def _read_group(group: _Group) -> pa.Table:
    with _opened(group.file) as parquet:
        return parquet.read_row_group(group.number)


def _chosen(file: _File, wanted: Collection[bytes], copied: set[bytes]) -> Iterator[pa.Table]:
    """Yield the wanted rows of a file, and note their hashes.

    The file stays open: its month may be written anew at any time, and then has other rows.
    """
    with _opened(file) as parquet:
        for number in range(parquet.num_row_groups):
            rows = _only(wanted, parquet.read_row_group(number))
            copied.update(_hashes(rows))
            if rows.num_rows:
                yield rows


def _only(keep: Collection[bytes], table: pa.Table) -> pa.Table:
    return table.filter(pa.array([text_hash in keep for text_hash in _hashes(table)], pa.bool_()))


def _after(text_hash: bytes, table: pa.Table) -> pa.Table:
    return table.filter(pa.array([other > text_hash for other in _hashes(table)], pa.bool_()))


def _hashes(table: pa.Table) -> list[bytes]:
    found: list[bytes] = table.column("text_hash").to_pylist()
    return found


def _rows(table: pa.Table) -> Iterator[tuple[bytes, npt.NDArray[np.float32]]]:
    hashes = _hashes(table)
    vectors = table.column("vector").combine_chunks()
    return zip(hashes, vectors.flatten().to_numpy().reshape(len(hashes), -1), strict=True)


def _put(store: ObjectStore, key: str, tables: Iterable[pa.Table], about: str) -> int:
    """Write tables, each sorted and after the one before, as one file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.parquet"
        _write(path, iter(tables), about)
        size = path.stat().st_size
        store.put(key, path)
    return size


def _write(path: Path, tables: Iterator[pa.Table], about: str) -> None:
    first = next(tables)
    schema = first.schema.with_metadata({"fingerprint": about})
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=False, write_page_checksum=True
    ) as writer:
        for table in chain([first], tables):
            writer.write_table(table.replace_schema_metadata(schema.metadata), GROUP)


@contextmanager
def _at_hand(store: ObjectStore, key: str) -> Iterator[_File]:
    with store.fetch(key) as path:
        yield _File(path, store.url(key))


@contextmanager
def _opened(file: _File) -> Iterator[pq.ParquetFile]:
    """Open a file to read from it; EmbeddingsError for whatever Arrow finds wrong with it."""
    try:
        # pre_buffer would hold all columns of all row groups
        with pq.ParquetFile(
            file.path, pre_buffer=False, page_checksum_verification=True
        ) as parquet:
            yield parquet
    except (pa.ArrowException, OSError) as error:
        raise EmbeddingsError(
            f"{file.url} is damaged ({error}); delete it and materialize embeddings again"
        ) from error
