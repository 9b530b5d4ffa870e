"""The Parquet files of embeddings: one a month of a list and encoder fingerprint.

A file has the columns `text_hash` (sha256 of what the encoder saw) and `vector`, sorted by
hash, so that the same vectors make the same file. While a month is being encoded, its
vectors are kept in parts, small files of their own; the whole file replaces them. Each is
put in one piece: what can be read is whole.
"""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mail_assets.store.objects import ObjectStore

Vectors = dict[bytes, npt.NDArray[np.float32]]


class EmbeddingsError(RuntimeError):
    """A file of embeddings that cannot be read: names the file and the remedy."""


def file_key(list: str, month: str, fingerprint: str) -> str:
    """Return the key of a month's file."""
    return f"embeddings/{list}/{month}/{fingerprint}.parquet"


def parts_prefix(list: str, month: str, fingerprint: str) -> str:
    """Return the prefix of the parts of a month that is being encoded."""
    return f"embeddings/{list}/{month}/{fingerprint}.parts/"


def read_vectors(store: ObjectStore, key: str, wanted: Iterable[bytes] | None = None) -> Vectors:
    """Return the vectors of a file, or those under the `wanted` hashes; none if it is missing.

    Raises:
        EmbeddingsError: the file is damaged.
    """
    if not store.exists(key):
        return {}
    try:
        with store.fetch(key) as path:
            table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise EmbeddingsError(
            f"{store.url(key)} is damaged ({error}); delete it and materialize embeddings again"
        ) from error
    hashes: list[bytes] = table.column("text_hash").to_pylist()
    vectors = table.column("vector").combine_chunks()
    matrix = vectors.flatten().to_numpy().reshape(len(hashes), -1)
    keep = None if wanted is None else set(wanted)
    return {
        text_hash: matrix[row]
        for row, text_hash in enumerate(hashes)
        if keep is None or text_hash in keep
    }


def write_vectors(store: ObjectStore, key: str, vectors: Mapping[bytes, object], about: str) -> int:
    """Write a file and return its size in bytes. `about`, the fingerprint, stands in it."""
    hashes = sorted(vectors)
    matrix = np.asarray([vectors[h] for h in hashes], dtype=np.float32)
    table = pa.table(
        {
            "text_hash": pa.array(hashes, pa.binary(32)),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), matrix.shape[1]),
        },
        metadata={"fingerprint": about},
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.parquet"
        pq.write_table(table, path, compression="zstd", use_dictionary=False)
        size = path.stat().st_size
        store.put(key, path)
    return size


def file_fingerprint(store: ObjectStore, key: str) -> str:
    """Return the fingerprint that stands inside a file."""
    with store.fetch(key) as path:
        metadata = pq.read_schema(path).metadata or {}
    return str(metadata.get(b"fingerprint", b"").decode())
