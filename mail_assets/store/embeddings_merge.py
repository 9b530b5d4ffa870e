"""Put files of embeddings together: copy the wanted vectors of one, merge those of several."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain

import pyarrow as pa

from mail_assets.store import embeddings_format
from mail_assets.store.embeddings import part_key
from mail_assets.store.embeddings_format import (
    EmbeddingsFile,
    fetched_file,
    opened_file,
    read_row_group,
    row_groups,
    table_hashes,
    vector_dimension,
    write_tables,
)
from mail_assets.store.objects import ObjectStore


def merge_embeddings(
    store: ObjectStore, sources: Sequence[str], wanted: Sequence[bytes], key: str, fingerprint: str
) -> int:
    """Write a file of the `wanted` hashes, with their vectors from other files; return its size.

    The hashes, one at least, ascend; a source may be the file that is replaced. In memory are
    the wanted rows of the row groups that span one place in the order: one of each source, and
    mostly fewer, for parts are ranges.

    Raises:
        EmbeddingsFileError: a source is damaged.
        KeyError: a hash is in none of them.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(fetched_file(store, source)) for source in sources]
        return write_tables(store, key, _merged(files, wanted), fingerprint)


def copy_embeddings(
    store: ObjectStore, source: str, wanted: Collection[bytes], prefix: str, dimension: int
) -> set[bytes]:
    """Copy the `wanted` vectors that a file has into a part, if any; return their hashes.

    None of a file whose vectors have another dimension: they cannot be merged.

    Raises:
        EmbeddingsFileError: the file is damaged.
    """
    if not store.exists(source):
        return set()
    copied: set[bytes] = set()
    with fetched_file(store, source) as file:
        tables = _chosen(file, wanted, dimension, copied)
        first = next(tables, None)
        if first is not None:
            fingerprint = first.schema.metadata[b"fingerprint"].decode()
            write_tables(store, part_key(prefix, min(copied)), chain([first], tables), fingerprint)
    return copied


def _merged(files: Iterable[EmbeddingsFile], wanted: Sequence[bytes]) -> Iterator[pa.Table]:
    """Yield the wanted rows in order, a GROUP at a time."""
    waiting = deque(sorted(group for file in files for group in row_groups(file)))
    keep = set(wanted)
    here: list[pa.Table] = []  # what is read and not yet written, each sorted
    size = embeddings_format.GROUP
    for start in range(0, len(wanted), size):
        portion = wanted[start : start + size]
        while waiting and waiting[0].first <= portion[-1]:
            here.append(_only(keep, read_row_group(waiting.popleft())))
        rows = pa.concat_tables(here)
        places = {text_hash: row for row, text_hash in enumerate(table_hashes(rows))}
        yield rows.take([places[text_hash] for text_hash in portion]).combine_chunks()
        here = [left for table in here if (left := _after(portion[-1], table)).num_rows]


def _chosen(
    file: EmbeddingsFile, wanted: Collection[bytes], dimension: int, copied: set[bytes]
) -> Iterator[pa.Table]:
    """Yield the wanted rows of a file of this dimension, and note their hashes.

    The file stays open: its month may be written again at any time, and then has other rows.
    """
    with opened_file(file) as parquet:
        if vector_dimension(parquet.schema_arrow) != dimension:
            return
        for number in range(parquet.num_row_groups):
            rows = _only(wanted, parquet.read_row_group(number))
            copied.update(table_hashes(rows))
            if rows.num_rows:
                yield rows


def _only(keep: Collection[bytes], table: pa.Table) -> pa.Table:
    return table.filter(
        pa.array([text_hash in keep for text_hash in table_hashes(table)], pa.bool_())
    )


def _after(text_hash: bytes, table: pa.Table) -> pa.Table:
    return table.filter(pa.array([other > text_hash for other in table_hashes(table)], pa.bool_()))
