"""The files of embeddings in the store: which there are, and which may hold more than their month.

What does not live here: writing them (encode_chunks.py).
"""

import datetime as dt
from collections.abc import Collection, Iterator
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
    """Yield all files of embeddings in the store; what is named otherwise is not ours."""
    for key in workspace.store.keys(PREFIX):
        match key.split("/"):
            case [_, name, month, file] if file.endswith(".parquet"):
                fingerprint, is_part = file.removesuffix(".parquet"), False
            case [_, name, month, folder, _] if folder.endswith(".parts"):
                fingerprint, is_part = folder.removesuffix(".parts"), True
            case _:
                continue
        with suppress(FileNotFoundError):  # a run has ended since, and its parts with it
            modified = workspace.store.modified(key)
            yield EmbeddingsFile(key, ListMonth(name, month), fingerprint, is_part, modified)


def older_than_chunks(
    workspace: Workspace, files: Collection[EmbeddingsFile]
) -> list[EmbeddingsFile]:
    """Return the files that were written before the chunks of their month changed last.

    No other holds a text that no chunk has: a run of the configured encoder writes its file anew.
    """
    chunked = read_chunk_times(workspace.connection)
    return [one for one in files if one.month not in chunked or one.modified < chunked[one.month]]


def keep_texts(workspace: Workspace, key: str, wanted: Collection[bytes]) -> None:
    """Write a file again with the vectors of some texts alone; without any it is deleted."""
    vectors = read_embeddings(workspace.store, key)
    kept = {text_hash: vectors[text_hash] for text_hash in vectors.keys() & wanted}
    if kept:
        fingerprint = read_fingerprint(workspace.store, key)
        write_embeddings(workspace.store, key, kept, fingerprint)
    else:
        workspace.store.delete(key)
