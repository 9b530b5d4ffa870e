"""Forget mail that only former archives hold: it had vanished from its source before.

Of forgotten senders nothing else tells which of it was theirs.
"""

from collections.abc import Mapping, Set
from typing import NamedTuple

import psycopg

from mail_assets.mail.archive.compression import ArchiveError
from mail_assets.mail.message.forgotten import Forgotten
from mail_assets.month import ListMonth
from mail_assets.steps.archive_cuts import Cuts, find_cuts, reading_dialect
from mail_assets.steps.cut_archives import record_cuts
from mail_assets.store.objects import StoreError
from mail_assets.tables.cut_messages import CutMessage, record_cut
from mail_assets.tables.forgotten_left import read_key_prefixes
from mail_assets.tables.mbox_archives import local_archive, read_archive
from mail_assets.tables.removals import lock_for_load, read_forgotten
from mail_assets.tables.removed_messages import key_prefix
from mail_assets.tables.removed_upstream import delete_vanished, former_archives
from mail_assets.workspace import Workspace


class FormerMail(NamedTuple):
    """The keys of former archives that hold forgotten mail, and how much of it had vanished.

    `unread` is why others could not be read, by their URL.
    """

    keys: frozenset[str]
    vanished: int
    unread: Mapping[str, str]


def forget_vanished(
    connection: psycopg.Connection, message_ids: Set[str], forgotten: Forgotten
) -> int:
    """Forget what is recorded of mail that had vanished, but that its months have lost it.

    By that its former archives are found, and what other indexes have of it.
    """
    records = delete_vanished(connection, message_ids)
    for month, message_id in records:
        if removal := forgotten.removal_of_id(message_id):
            lost = CutMessage(removal, removal, key_prefix(month, message_id, ""))
            record_cut(connection, month, [lost])
    return len(records)


def forget_former(workspace: Workspace, asked: Forgotten) -> FormerMail:
    """Hide the ids of forgotten mail in former archives of months that have lost some.

    Those that have lost what is `asked` for; of senders those that have lost anything. One that is
    damaged or out of reach does not stop the rest.
    """
    connection = workspace.connection
    forgotten = read_forgotten(connection, workspace.forget_key)
    archives = former_archives(connection, asked.messages | asked.senders, bool(asked.senders))
    keys, vanished, unread = set[str](), 0, dict[str, str]()
    for key, month in archives.items():
        try:
            cuts = _find_cuts(workspace, month, key, forgotten)
        except (ArchiveError, StoreError, FileNotFoundError) as error:
            unread[workspace.store.url(key)] = str(error)
            continue
        if cuts and cuts.ranges:
            keys.add(key)
            vanished += _record(workspace, month, cuts, forgotten)
    return FormerMail(frozenset(keys), vanished, unread)


def _find_cuts(
    workspace: Workspace, month: ListMonth, key: str, forgotten: Forgotten
) -> Cuts | None:
    """Return what a former archive holds of forgotten mail, None where its file is gone."""
    if not workspace.store.exists(key):
        return None
    current = read_archive(workspace.connection, month)
    with local_archive(workspace.store, key) as path:
        dialect = reading_dialect(path, current.dialect if current else "")
        return find_cuts(path, month, dialect, forgotten)


def _record(workspace: Workspace, month: ListMonth, cuts: Cuts, forgotten: Forgotten) -> int:
    connection = workspace.connection
    with connection.transaction():
        lock_for_load(connection)
        known = {*read_key_prefixes(connection, month)}
        new = record_cuts(connection, month, cuts, forgotten, known)
        return len(delete_vanished(connection, new))
