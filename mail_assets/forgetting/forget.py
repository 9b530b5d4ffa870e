"""Forget messages: take them out of every table, file and index, and keep them out.

The rows go in one transaction, together with the entry in the list of removals that keeps them
from coming back. Files and indexes follow (forget_files.py, forget_words.py): what is still to do
there is read from the rows of `removed_messages`, so that a forgetting that was interrupted is
finished by the next, whatever it is for.

No lock is held while another is waited for that a run may hold for long. Rows wait for the runs
that cut chunks, then for the loads that have begun; a file waits for the run that encodes its
month, when nothing else waits for this.

[forget_former] Forget mail that only former archives hold: it had vanished from its source before.

Of forgotten senders nothing else tells which of it was theirs.

[forget_again] Forget what a backup has forgotten, of which there are only digests.
"""

from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import ExitStack
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import psycopg

from mail_assets.forgetting.clean import OpenIndex, clean_files, clean_indexes, clean_words
from mail_assets.mail.archive.compression import ArchiveError
from mail_assets.mail.message.forgotten import Digests, Forgotten, make_placeholder
from mail_assets.month import ListMonth
from mail_assets.postgres.database import retry_conflicts
from mail_assets.steps.archive_cuts import Cuts, find_cuts, reading_dialect
from mail_assets.steps.build_threads import build_threads
from mail_assets.steps.store_archive import record_cuts
from mail_assets.store.objects import StoreError
from mail_assets.tables.encoded_texts import sweep_encoded
from mail_assets.tables.hidden_ids import find_held, hide_ids
from mail_assets.tables.mbox_archives import (
    delete_vanished,
    former_archives,
    local_archive,
    read_archive,
)
from mail_assets.tables.partitions import Partition, locked
from mail_assets.tables.removals import (
    CutMessage,
    NewRemoval,
    add_removal,
    drop_reused,
    key_old_digests,
    lock_for_forgetting,
    lock_for_load,
    read_forgotten,
    record_cut,
    settle_digests,
    show_ids,
    uncut_months,
)
from mail_assets.tables.removed_messages import (
    Copy,
    RemovedMessage,
    count_mentioned,
    count_named,
    delete_copies,
    find_copies,
    find_entries,
    find_names,
    hide_people,
    key_prefix,
    read_key_prefixes,
    record_removed,
    refresh_statistics,
    removed_months,
    update_counts,
)
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


#: For digests that are compared at once and never stored.
UNKEYED = Digests(b"")


class ForgetRequest(NamedTuple):
    """What is to be forgotten, why, and who says so; `cut` is whether archives lose it too.

    `hidden` are ids of the mail of forgotten senders that others name.
    """

    message_ids: Collection[str]
    senders: Collection[str]
    reason: str
    by: str
    cut: bool = False
    hidden: Collection[str] = ()

    @property
    def addresses(self) -> list[str]:
        """The senders, in lower case."""
        return sorted({sender.strip().lower() for sender in self.senders})

    def removals(self, digests: Digests) -> dict[bytes, str]:
        """Return the digest and the kind of each entry for the list of removals."""
        return {
            **{digests.of_message(x): "message" for x in self.message_ids},
            **{digests.of_sender(x): "sender" for x in self.senders},
        }

    def forgotten(self, digests: Digests) -> Forgotten:
        """Return what is to be forgotten."""
        messages = frozenset(map(digests.of_message, self.message_ids))
        senders = frozenset(map(digests.of_sender, self.senders))
        return Forgotten(messages, senders, messages, digests)


class ForgetReport(NamedTuple):
    """What was removed; `failed` names indexes that could not be reached, with the reason.

    `removals` are the digests of what was asked for, `people` is the number of other messages that
    named a forgotten person among their addresses, `documents` those of word indexes. `uncut` are
    the months whose archives are to be stored without it (cut_archives.py), `former` the keys of
    former archives that held it, `vanished` is how much of it had vanished from its source before,
    `unread` why former archives could not be read, by URL.
    """

    removals: Set[bytes] = frozenset()
    copies: Sequence[Copy] = ()
    chunks: int = 0
    people: int = 0
    files: int = 0
    documents: int = 0
    vectors: int = 0
    failed: Mapping[str, str] = MappingProxyType({})
    uncut: Sequence[ListMonth] = ()
    former: frozenset[str] = frozenset()
    vanished: int = 0
    unread: Mapping[str, str] = MappingProxyType({})


class ForgottenRows(NamedTuple):
    """What was removed from the tables, and what for; `vanished` as in the report."""

    asked: Forgotten
    copies: list[Copy]
    chunks: int
    people: int
    vanished: int


def find_matches(connection: psycopg.Connection, request: ForgetRequest) -> list[Copy]:
    """Return the rows of messages that a request would remove."""
    forgotten = request.forgotten(UNKEYED)
    copies = find_copies(connection, request.message_ids, request.addresses)
    return [
        copy
        for copy in copies
        if copy.message_id in request.message_ids
        or forgotten.removal_of_author(copy.from_name, copy.from_email) is not None
    ]


def count_mentions(
    connection: psycopg.Connection, request: ForgetRequest, copies: Collection[Copy]
) -> tuple[int, int]:
    """Return how many messages beside `copies` name a sender in an address column, and elsewhere.

    Elsewhere is the subject and the text, which are others' own and stay. Reads every body.
    """
    if not request.senders:
        return 0, 0
    entries = find_entries(connection, request.addresses, request.forgotten(UNKEYED))
    return count_named(connection, entries, copies), count_mentioned(
        connection, request.addresses, copies
    )


def forget_messages(
    workspace: Workspace, request: ForgetRequest, open_index: OpenIndex
) -> ForgetReport:
    """Remove what a request names, and finish what an earlier one could not.

    Raises:
        ForgetKeyError: this machine has not the key of the digests, and must not choose it.
    """
    rows = forget_rows(workspace, request)
    return forget_elsewhere(workspace, rows, rows.asked, open_index)


def forget_elsewhere(
    workspace: Workspace, rows: ForgottenRows, asked: Forgotten, open_index: OpenIndex
) -> ForgetReport:
    """Take what the rows of messages no longer have out of all that was made of them.

    Former archives are looked at for what is `asked` for.
    """
    connection, months = workspace.connection, {copy.month for copy in rows.copies}
    former = forget_former(workspace, asked)
    build_threads(connection, workspace.log)
    refresh_statistics(connection)
    documents, failed = clean_words(workspace)
    files = clean_files(workspace, months)
    vectors, failed_vectors = clean_indexes(workspace, months, open_index)
    return ForgetReport(
        removals=rows.asked.messages | rows.asked.senders,
        copies=rows.copies,
        chunks=rows.chunks,
        people=rows.people,
        files=files,
        documents=documents,
        vectors=vectors,
        failed=failed | failed_vectors,
        uncut=uncut_months(connection, asked.messages | asked.senders),
        former=former.keys,
        vanished=rows.vanished + former.vanished,
        unread=former.unread,
    )


def forget_rows(workspace: Workspace, request: ForgetRequest) -> ForgottenRows:
    """Remove the rows. A run that cuts chunks may write, behind this, what it has read before."""
    connection = workspace.connection
    months: set[ListMonth] = set()
    while True:
        months.update(copy.month for copy in find_matches(connection, request))
        with ExitStack() as held:
            for month in sorted(months):
                wait = partial(workspace.log, f"{month}: waiting for the run that cuts its chunks")
                held.enter_context(locked(connection, Partition("chunks", month), wait))
            removed = retry_conflicts(partial(_remove_within, workspace, request, months))
            if removed:
                return removed
        # a load has brought a copy in another month meanwhile


def _remove_within(
    workspace: Workspace, request: ForgetRequest, months: Collection[ListMonth]
) -> ForgottenRows | None:
    """Remove the rows in one transaction, None if some are in other months.

    It holds the summaries of their threads while it waits for the threads step, which may want
    them: PostgreSQL ends one of the two, and that one begins anew.
    """
    with workspace.connection.transaction():
        wait = partial(workspace.log, "waiting for the loads of months that have begun")
        lock_for_forgetting(workspace.connection, wait)
        copies = find_matches(workspace.connection, request)
        if any(copy.month not in months for copy in copies):
            return None
        return _remove_rows(workspace, request, copies)


def _remove_rows(workspace: Workspace, request: ForgetRequest, copies: list[Copy]) -> ForgottenRows:
    connection = workspace.connection
    digests = settle_digests(connection, workspace.forget_key)
    forgotten = request.forgotten(digests)
    for digest, kind in request.removals(digests).items():
        removal = NewRemoval(digest, kind, request.reason, request.by, request.cut)
        add_removal(connection, removal)
    chunks = delete_copies(connection, copies)
    sweep_encoded(connection)
    # an id that never came may be named by others all the same
    ids = {*request.message_ids, *request.hidden, *(copy.message_id for copy in copies)}
    held = find_held(connection, ids)
    for copy in copies:
        record_removed(connection, copy.month, [_removed(copy, forgotten, held)])
    if held:
        show_ids(connection, [digests.of_message(x) for x in held])
    ids -= held
    vanished = forget_vanished(connection, ids, forgotten)
    if ids:
        hide_ids(connection, {x: make_placeholder(digests.of_message(x)) for x in sorted(ids)})
    people = hide_people(connection, request.addresses, forgotten)
    for month in {copy.month for copy in copies}:
        update_counts(connection, month)
    return ForgottenRows(forgotten, copies, chunks, people, vanished)


def _removed(copy: Copy, forgotten: Forgotten, held: Set[str]) -> RemovedMessage:
    digest = forgotten.digests.of_message(copy.message_id)
    by_author = forgotten.removal_of_author(copy.from_name, copy.from_email)
    removal = digest if digest in forgotten.messages or by_author is None else by_author
    hidden = None if copy.message_id in held else digest
    return RemovedMessage(copy.ordinal, removal, hidden, copy.key_prefix)


def forget_again(workspace: Workspace, open_index: OpenIndex) -> ForgetReport:
    """Remove all that is here of what is in the list of removals, as forget_messages does.

    What the digests stand for is found by making those of every id and address that is here. Where
    it was killed, it is run again.

    Raises:
        ForgetKeyError: this machine has not the key of the digests.
    """
    key_old_digests(workspace.connection, workspace.forget_key)
    forgotten = read_forgotten(workspace.connection, workspace.forget_key)
    if forgotten.is_empty:
        return ForgetReport()
    for month in removed_months(workspace.connection):
        drop_reused(workspace.connection, month)
    names = find_names(workspace.connection, forgotten)
    request = ForgetRequest(names.message_ids, names.senders, "", "", hidden=names.hidden)
    rows = forget_rows(workspace, request)
    return forget_elsewhere(workspace, rows, forgotten, open_index)
