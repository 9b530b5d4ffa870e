"""Files of embeddings in the store: one a month of a list and encoder fingerprint.

While a month is being encoded its vectors are kept in parts, files of the same format; the whole
file replaces them (`embeddings_merge`). Each is put in one piece: what can be read is whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mail_assets.month import ListMonth
from mail_assets.store.embeddings_format import (
    RowGroup,
    fetched_file,
    opened_file,
    read_row_group,
    table_hashes,
    table_rows,
    vector_dimension,
    write_tables,
)
from mail_assets.store.objects import ObjectStore

#: Embeddings by the hash of their text.
Embeddings = dict[bytes, npt.NDArray[np.float32]]


class Contents(NamedTuple):
    """The hashes of a file, ascending, and the dimension of its vectors."""

    hashes: Sequence[bytes] = ()
    dimension: int = 0


def file_key(month: ListMonth, fingerprint: str) -> str:
    """Return the key of a month's file."""
    return f"{month_prefix(month)}{fingerprint}.parquet"


def month_prefix(month: ListMonth) -> str:
    """Return the prefix of all files of a month, whatever their encoder."""
    return f"embeddings/{month.list_name}/{month.month}/"


def parts_prefix(month: ListMonth, fingerprint: str) -> str:
    """Return the prefix of the parts of a month that is being encoded."""
    return f"{month_prefix(month)}{fingerprint}.parts/"


def part_key(prefix: str, first: bytes) -> str:
    """Return the key of a part: by its first hash, for no two parts share one."""
    return f"{prefix}{first.hex()[:16]}.parquet"


def read_embeddings(
    store: ObjectStore, key: str, wanted: Iterable[bytes] | None = None
) -> Embeddings:
    """Return the vectors of a file, or those under the `wanted` hashes; none if it is missing.

    Raises:
        EmbeddingsFileError: the file is damaged.
    """
    if not store.exists(key):
        return {}
    with fetched_file(store, key) as file, opened_file(file) as parquet:
        table = parquet.read()
    keep = None if wanted is None else set(wanted)
    return {
        text_hash: vector
        for text_hash, vector in table_rows(table)
        if keep is None or text_hash in keep
    }


def read_contents(store: ObjectStore, key: str) -> Contents:
    """Return which texts a file has, without their vectors; none if it is missing, or goes now.

    Raises:
        EmbeddingsFileError: the file is damaged.
    """
    try:
        with fetched_file(store, key) as file, opened_file(file) as parquet:
            hashes = table_hashes(parquet.read(columns=["text_hash"]))
            return Contents(hashes, vector_dimension(parquet.schema_arrow))
    except FileNotFoundError:
        return Contents()


def read_hashes(store: ObjectStore, key: str) -> Sequence[bytes]:
    """Return the hashes of a file, ascending; none if it is missing.

    Raises:
        EmbeddingsFileError: the file is damaged.
    """
    return read_contents(store, key).hashes


def read_first_embeddings(store: ObjectStore, key: str, count: int) -> Embeddings:
    """Return the first `count` vectors of a file, a GROUP at most; none if it is missing.

    Raises:
        EmbeddingsFileError: the file is damaged.
    """
    if not store.exists(key):
        return {}
    with fetched_file(store, key) as file:
        return dict(table_rows(read_row_group(RowGroup(b"", file, 0)).slice(0, count)))


def write_embeddings(
    store: ObjectStore, key: str, vectors: Mapping[bytes, object], fingerprint: str
) -> int:
    """Write a file with the encoder's fingerprint in it; return its size in bytes."""
    hashes = sorted(vectors)
    matrix = np.asarray([vectors[h] for h in hashes], dtype=np.float32)
    # "element" is what Arrow reads it as: a file that is merged from others has the same schema
    kind = pa.list_(pa.field("element", pa.float32()), matrix.shape[1])
    rows = {
        "text_hash": pa.array(hashes, pa.binary(32)),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), type=kind),
    }
    return write_tables(store, key, [pa.table(rows)], fingerprint)


def read_fingerprint(store: ObjectStore, key: str) -> str:
    """Return the encoder's fingerprint that is written in a file."""
    with store.fetch(key) as path:
        metadata = pq.read_schema(path).metadata or {}
    return str(metadata.get(b"fingerprint", b"").decode())
