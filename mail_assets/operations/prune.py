"""Delete files that nothing uses any more: embeddings, and former archives whose time is over.

Each file is deleted under the lock of the run that writes it. Embeddings can be made again from
chunks, so a file deleted in error would cost time, not mail.
"""

import datetime as dt
from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from mail_assets.forgetting.clean import (
    EmbeddingsFile,
    find_files,
    keep_texts,
    older_than_chunks,
)
from mail_assets.steps.fetch_archive import sweep_former_archives
from mail_assets.store.embeddings import read_hashes
from mail_assets.tables.encoded_texts import read_used_fingerprints
from mail_assets.tables.mbox_archives import expired_archives
from mail_assets.tables.partitions import Partition, locked
from mail_assets.tables.removed_messages import read_text_hashes
from mail_assets.workspace import Workspace


class Pruned(NamedTuple):
    """Number of things of a kind that are deleted, and their bytes; None where they are unknown."""

    what: str
    things: int
    bytes: int | None


def prune_archives(workspace: Workspace, *, dry_run: bool = False) -> Pruned:
    """Delete former archives that were kept for MAIL_KEEP_ARCHIVES days."""
    store, expired = workspace.store, expired_archives(workspace.connection)
    size = sum(store.size(key) for key in expired if store.exists(key))
    if expired and not dry_run:
        sweep_former_archives(workspace)
    return Pruned("former archives", len(expired), size)


def prune_embeddings(
    workspace: Workspace, configured: str, before: dt.datetime, *, dry_run: bool = False
) -> list[Pruned]:
    """Delete embeddings last written before a time that nothing uses.

    These are embeddings of encoders without an index that are not `configured`, parts that no run
    has finished, and vectors of texts that no chunk has any more.
    """
    used = {*read_used_fingerprints(workspace.connection), configured}
    files = [one for one in find_files(workspace) if one.modified < before]
    unused = [one for one in files if one.fingerprint not in used]
    parts = [one for one in files if one.fingerprint in used and one.is_part]
    whole = [one for one in files if one.fingerprint in used and not one.is_part]
    return [
        _delete("embeddings of unused encoders", workspace, unused, dry_run),
        _delete("unfinished parts of embeddings", workspace, parts, dry_run),
        _prune_texts(workspace, whole, dry_run),
    ]


def _delete(
    what: str, workspace: Workspace, files: Collection[EmbeddingsFile], dry_run: bool
) -> Pruned:
    sizes = []
    for one in files:
        with suppress(FileNotFoundError):  # a run has ended meanwhile, and deleted its parts
            sizes.append(workspace.store.size(one.key))
        if not dry_run:
            with locked(workspace.connection, Partition("embeddings", one.month)):
                workspace.store.delete(one.key)
    return Pruned(what, len(sizes), sum(sizes))


def _prune_texts(workspace: Workspace, files: Collection[EmbeddingsFile], dry_run: bool) -> Pruned:
    """Delete vectors of texts that no chunk of the month has.

    Only files of encoders that are not configured have such vectors, and only files that are older
    than their month's chunks: a run of the configured encoder writes its file again.
    """
    store = workspace.store
    count = size = 0
    for one in older_than_chunks(workspace, files):
        with locked(workspace.connection, Partition("embeddings", one.month)):
            hashes = read_hashes(store, one.key)
            wanted = read_text_hashes(workspace.connection, one.month)
            stale = {*hashes} - wanted
            if not stale:
                continue
            count += len(stale)
            size += store.size(one.key) * len(stale) // len(hashes)
            if not dry_run:
                keep_texts(workspace, one.key, wanted)
    return Pruned("embeddings of texts that are gone", count, size)
