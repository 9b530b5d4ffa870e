"""Forget messages: take them out of every table, file and index, and keep them out.

The rows go in one transaction, together with the entry in the list of removals that keeps them
from coming back. Files and indexes follow: what is still to do there is read from the rows of
`removed`, so that a forgetting that was interrupted is finished by the next, whatever it is for.

What stays: the archive as it was fetched, whose bytes are the source's (see docs/forgetting.md),
and what others have quoted.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from typing import NamedTuple

import psycopg

from mail_assets.mail.message.forgotten import message_digest, sender_digest, stand_in
from mail_assets.month import ListMonth
from mail_assets.steps.build_threads import build_threads
from mail_assets.steps.workspace import Workspace
from mail_assets.store.embeddings import (
    month_prefix,
    read_embeddings,
    read_fingerprint,
    write_embeddings,
)
from mail_assets.tables.hidden_ids import hide_ids
from mail_assets.tables.manifest import drop_keys
from mail_assets.tables.partitions import Partition, locked
from mail_assets.tables.removals import add_removal, lock_for_forgetting
from mail_assets.tables.removed_messages import (
    Copy,
    RemovedMessage,
    delete_copies,
    find_copies,
    read_text_hashes,
    record_removed,
    removed_months,
    unwanted_keys,
    update_counts,
)
from mail_assets.vectors.index import MissingIndexError, VectorError, VectorIndex

#: Opens an index by the manifest's name for it; ValueError where that cannot be done.
OpenIndex = Callable[[str], VectorIndex]


class ForgetRequest(NamedTuple):
    """What is to be forgotten, why, and who says so."""

    message_ids: Collection[str]
    senders: Collection[str]
    reason: str
    by: str

    @property
    def removals(self) -> dict[bytes, str]:
        """The digest and the kind of each entry for the list of removals."""
        return {
            **{message_digest(x): "message" for x in self.message_ids},
            **{sender_digest(x): "sender" for x in self.senders},
        }


class ForgetReport(NamedTuple):
    """What was removed; `failed` names indexes that could not be reached, with the reason."""

    copies: list[Copy]
    chunks: int
    files: int
    vectors: int
    failed: Mapping[str, str]


def find_matches(connection: psycopg.Connection, request: ForgetRequest) -> list[Copy]:
    """Return the rows of messages that a request would remove."""
    return find_copies(
        connection, request.message_ids, [sender.strip().lower() for sender in request.senders]
    )


def forget_messages(
    workspace: Workspace, request: ForgetRequest, open_index: OpenIndex
) -> ForgetReport:
    """Remove what a request names, and finish what an earlier one could not.

    A run that has read a month before may write it behind this: the month's chunks, embeddings
    and vectors are locked until their files and indexes are done.
    """
    connection = workspace.connection
    with ExitStack() as held:
        with connection.transaction():
            lock_for_forgetting(connection)
            copies = find_matches(connection, request)
            for month in sorted({copy.month for copy in copies}):
                for asset in ("chunks", "embeddings", "vectors"):
                    held.enter_context(locked(connection, Partition(asset, month)))
            chunks = _remove_rows(connection, request, copies)
        build_threads(connection, workspace.log)
        months = removed_months(connection)
        files = sum(_remove_from_files(workspace, month) for month in months)
        vectors, failed = _remove_from_indexes(connection, open_index)
    return ForgetReport(copies, chunks, files, vectors, failed)


def _remove_rows(
    connection: psycopg.Connection, request: ForgetRequest, copies: Collection[Copy]
) -> int:
    for digest, kind in request.removals.items():
        add_removal(connection, digest, kind, request.reason, request.by)
    chunks = delete_copies(connection, copies)
    for copy in copies:
        record_removed(connection, copy.month, [_removed(copy, request)])
    # an id that never came may be named by others all the same
    ids = {*request.message_ids, *(copy.message_id for copy in copies if not copy.variant)}
    if ids:
        hide_ids(connection, {x: stand_in(message_digest(x)) for x in sorted(ids)})
    for month in {copy.month for copy in copies}:
        update_counts(connection, month)
    return chunks


def _removed(copy: Copy, request: ForgetRequest) -> RemovedMessage:
    digest = message_digest(copy.message_id)
    named = copy.message_id in request.message_ids
    removal = digest if named else sender_digest(copy.from_email)
    return RemovedMessage(copy.ordinal, removal, None if copy.variant else digest, copy.key_prefix)


def _remove_from_files(workspace: Workspace, month: ListMonth) -> int:
    """Take out of all files of a month, whatever their encoder, the vectors of no text of it.

    Parts that a killed run has left count too. Return the number of files changed.
    """
    store, wanted = workspace.store, read_text_hashes(workspace.connection, month)
    changed = 0
    for key in [*store.keys(month_prefix(month))]:
        vectors = read_embeddings(store, key)
        kept = {text_hash: vectors[text_hash] for text_hash in vectors.keys() & wanted}
        if len(kept) == len(vectors):
            continue
        if kept:
            write_embeddings(store, key, kept, read_fingerprint(store, key))
        else:
            store.delete(key)
        changed += 1
    return changed


def _remove_from_indexes(
    connection: psycopg.Connection, open_index: OpenIndex
) -> tuple[int, dict[str, str]]:
    """Delete from every index that the manifest knows; one out of reach does not stop the rest."""
    deleted, failed = 0, {}
    for name, keys in unwanted_keys(connection).items():
        try:
            _delete(open_index(name), keys)
        except (VectorError, ValueError) as error:
            failed[name] = str(error)
            continue
        drop_keys(connection, name, keys)
        deleted += len(keys)
    return deleted, failed


def _delete(index: VectorIndex, keys: Iterable[str]) -> None:
    try:
        index.delete(keys)
    except MissingIndexError:
        return  # it was dropped, and everything in it with it
