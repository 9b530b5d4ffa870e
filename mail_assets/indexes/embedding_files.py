"""Files of embeddings in the store: find them, and find those that hold texts that are gone.

The step encode_chunks writes them.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from mail_assets.month import ListMonth
from mail_assets.store.embeddings import read_embeddings, read_fingerprint, write_embeddings
from mail_assets.tables.encoded_texts import read_chunk_times
from mail_assets.workspace import Workspace

PREFIX = "embeddings/"


class EmbeddingsFile(NamedTuple):
    """A file of embeddings, or a part of one that a run has not finished."""

    key: str
    month: ListMonth
    fingerprint: str
    is_part: bool
    modified: dt.datetime


def find_files(workspace: Workspace) -> Iterator[EmbeddingsFile]:
    """Yield all files of embeddings in the store, skipping those with other names."""
    for key in workspace.store.keys(PREFIX):
        match key.split("/"):
            case [_, name, month, file] if file.endswith(".parquet"):
                fingerprint, is_part = file.removesuffix(".parquet"), False
            case [_, name, month, folder, _] if folder.endswith(".parts"):
                fingerprint, is_part = folder.removesuffix(".parts"), True
            case _:
                continue
        with suppress(FileNotFoundError):  # a run has ended meanwhile, and deleted its parts
            modified = workspace.store.modified(key)
            yield EmbeddingsFile(key, ListMonth(name, month), fingerprint, is_part, modified)


def older_than_chunks(
    workspace: Workspace, files: Iterable[EmbeddingsFile]
) -> list[EmbeddingsFile]:
    """Return the files that were written before the chunks of their month changed last.

    Only these can hold texts that no chunk has.
    """
    files = [*files]
    chunked = read_chunk_times(workspace.connection)
    return [one for one in files if one.month not in chunked or one.modified < chunked[one.month]]


def keep_texts(workspace: Workspace, key: str, wanted: Collection[bytes]) -> None:
    """Write a file again with the vectors of some texts only; without any it is deleted."""
    vectors = read_embeddings(workspace.store, key)
    kept = {text_hash: vectors[text_hash] for text_hash in vectors.keys() & wanted}
    if kept:
        fingerprint = read_fingerprint(workspace.store, key)
        write_embeddings(workspace.store, key, kept, fingerprint)
    else:
        workspace.store.delete(key)
