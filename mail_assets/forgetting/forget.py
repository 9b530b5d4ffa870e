"""Forget messages: remove them from every table, file and index, and keep them out.

One transaction deletes the rows and adds the entry to the list of removals that keeps them out.
Then files and indexes are cleaned (clean.py). The remaining work there is read from the rows of
`removed_messages`, so that the next forgetting finishes an interrupted one. If a removal requests
it, the messages are cut out of the stored archives, and the months are loaded again.

The deletion of rows waits first for the runs that make patches and chunks, then for the running
loads. The cleaning of a file waits for the run that encodes its month; nothing else is locked then.
"""

from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import ExitStack
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import psycopg

from mail_assets.files import digest_file
from mail_assets.forgetting.clean import OpenIndex, clean_files, clean_vectors, clean_words
from mail_assets.mail.archive.compression import ArchiveError
from mail_assets.mail.message.forgotten import Digests, Forgotten
from mail_assets.mail.message.ids import make_placeholder
from mail_assets.month import ListMonth
from mail_assets.postgres.database import retry_conflicts
from mail_assets.steps.build_threads import build_threads
from mail_assets.steps.group_series import group_series
from mail_assets.steps.load_messages import load_messages
from mail_assets.steps.store_archive import (
    find_cuts,
    reading_dialect,
    record_cuts,
    store_archive,
)
from mail_assets.store.objects import StoreError
from mail_assets.tables.encoded_texts import sweep_encoded
from mail_assets.tables.mbox_archives import (
    ArchiveRow,
    delete_vanished,
    drop_former,
    folder_key,
    former_archives,
    kept_former,
    local_archive,
    read_archive,
    replace_former,
    write_archive,
)
from mail_assets.tables.partitions import Partition, locked, read_state
from mail_assets.tables.patch_series import discard_patches
from mail_assets.tables.patches import hide_in_patches
from mail_assets.tables.removals import (
    CutMessage,
    add_removal,
    drop_reused,
    lock_for_forgetting,
    lock_for_load,
    months_holding,
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
    find_held,
    find_names,
    hide_ids,
    hide_people,
    key_prefix,
    read_key_prefixes,
    record_removed,
    refresh_statistics,
    removed_months,
    update_counts,
)
from mail_assets.workspace import ListDefaults, StepError, Workspace


def cut_archives(
    workspace: Workspace, months: Sequence[ListMonth], defaults: Mapping[str, ListDefaults]
) -> tuple[int, dict[str, str]]:
    """Store the archives of months again without forgotten mail, and load the months again.

    `defaults` maps each list to its defaults. Return the number of archives stored again, and key
    of the month -> reason for each failure.
    """
    cut, failed = 0, dict[str, str]()
    for month in months:
        try:
            cut += _cut_month(workspace, month, defaults)
        except (StepError, FileNotFoundError) as error:
            failed[month.key] = str(error)
        except (ArchiveError, StoreError) as error:
            failed[month.key] = f"{month}: {error}"
    return cut, failed


def find_archives_holding(
    workspace: Workspace, removals: Collection[bytes], former: Collection[str] = ()
) -> list[str]:
    """Return the URLs of archive files that still contain mail of some removals.

    `former` are the keys of former archives that contained such mail.
    """
    store, months = workspace.store, months_holding(workspace.connection, removals)
    current = [key for month in months for key in store.keys(folder_key(month))]
    left = [key for key in sorted(former) if store.exists(key)]
    return [store.url(key) for key in dict.fromkeys([*current, *left])]


def _cut_month(
    workspace: Workspace, month: ListMonth, defaults: Mapping[str, ListDefaults]
) -> bool:
    connection, store = workspace.connection, workspace.store
    is_loaded = read_state(connection, Partition("messages", month)) is not None
    if is_loaded and month.list_name not in defaults:
        raise StepError(
            f"{month}: the list is not in lists.toml, whose language loading it needs: put "
            f"[{month.list_name}] with its source back"
        )
    partition = Partition("mbox_archives", month)
    wait = partial(workspace.log, f"{month}: waiting for the run that fetches it")
    with locked(connection, partition, wait):
        archive = stored = read_archive(connection, month)
        if archive is None or stored is None:
            return False
        if archive.object_key:  # otherwise it has vanished and is kept as a former archive
            with local_archive(store, archive.object_key) as path:
                stored = store_archive(workspace, month, path, archive)
            if stored != archive:
                write_archive(connection, month, stored)
    if is_loaded:
        load_messages(workspace, month, defaults[month.list_name])
    with locked(connection, partition, wait):
        former = [_cut_former(workspace, month, x, archive) for x in kept_former(connection, month)]
        current = read_archive(connection, month)
        kept = kept_former(connection, month)
        for key in [*store.keys(folder_key(month))]:
            if current and key not in (current.object_key, stored.object_key, *kept):
                store.delete(key)
                drop_former(connection, key)
    return stored != archive or any(former)


def _cut_former(workspace: Workspace, month: ListMonth, key: str, archive: ArchiveRow) -> bool:
    """Store a former archive without forgotten mail; return whether it contained any."""
    if not workspace.store.exists(key):
        return False
    with local_archive(workspace.store, key) as path:
        dialect = reading_dialect(path, archive.dialect)
        former = archive._replace(sha256=digest_file(path), dialect=dialect)
        stored = store_archive(workspace, month, path, former)
    if stored.object_key in (None, key):
        return False
    replace_former(workspace.connection, key, stored.object_key)
    return True


#: For digests that are compared and never stored.
UNKEYED = Digests(b"")


class ForgetRequest(NamedTuple):
    """Mail to forget, the reason, and who asks; with `cut` it is also cut out of archives.

    `hidden` are ids of mail of forgotten senders that other mail refers to.
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
        """Return the ids and senders as digests."""
        messages = frozenset(map(digests.of_message, self.message_ids))
        senders = frozenset(map(digests.of_sender, self.senders))
        return Forgotten(messages, senders, messages, digests)


class ForgetReport(NamedTuple):
    """Result of a forgetting.

    removals: the digests of the request.
    chunks, files, documents, vectors: numbers of deleted chunks, changed files of embeddings,
        deleted documents of word indexes and deleted vectors.
    people: number of other messages that named a forgotten person in an address field.
    failed: name of an index -> reason why it could not be reached.
    uncut: months whose archives cut_archives must store again.
    former: keys of former archives that contained the mail.
    vanished: number of messages that had vanished from their source before.
    unread: URL of a former archive -> reason why it could not be read.
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
    """Return how many messages, not in `copies`, name a sender in address columns and in texts.

    Texts are subjects and bodies. They belong to other authors and are not changed. Reads every
    body.
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
    """Remove the mail that a request names, and finish earlier, incomplete requests.

    Raises:
        ForgetKeyError: this machine lacks the key of the digests, and must not choose a new one.
    """
    report = _forget_rows(workspace, request)
    return _forget_elsewhere(workspace, report, report.removals, bool(request.senders), open_index)


def _forget_elsewhere(
    workspace: Workspace,
    report: ForgetReport,
    removals: Set[bytes],
    of_senders: bool,
    open_index: OpenIndex,
) -> ForgetReport:
    """Search former archives for mail without a row, then clean threads, series, indexes and files.

    `removals` are the digests of the mail to search for. If senders are among them, the former
    archives of all months that have lost mail are searched.
    """
    connection, months = workspace.connection, {copy.month for copy in report.copies}
    former = former_archives(connection, removals, of_senders)
    report = _forget_former(workspace, former, report)
    build_threads(connection, workspace.log)
    group_series(connection, workspace.log)
    refresh_statistics(connection)
    documents, failed = clean_words(workspace)
    files = clean_files(workspace, months)
    vectors, failed_vectors = clean_vectors(workspace, months, open_index)
    return report._replace(
        files=files,
        documents=documents,
        vectors=vectors,
        failed=failed | failed_vectors,
        uncut=uncut_months(connection, removals),
    )


def _forget_rows(workspace: Workspace, request: ForgetRequest) -> ForgetReport:
    """Remove the rows, while no run can make patches or chunks from them."""
    connection = workspace.connection
    months: set[ListMonth] = set()
    while True:
        months.update(copy.month for copy in find_matches(connection, request))
        with ExitStack() as held:
            for month in sorted(months):
                for asset in ("patches", "chunks"):
                    wait = partial(workspace.log, f"{month}: waiting for the run of its {asset}")
                    held.enter_context(locked(connection, Partition(asset, month), wait))
            removed = retry_conflicts(partial(_remove_within, workspace, request, months))
            if removed:
                return removed
        # a load has meanwhile added a copy in another month: try again


def _remove_within(
    workspace: Workspace, request: ForgetRequest, months: Collection[ListMonth]
) -> ForgetReport | None:
    """Remove the rows in one transaction; remove nothing and return None if months are missing.

    It locks the summaries of their threads and waits for the threads step, which may need these
    summaries. In such a deadlock PostgreSQL aborts one of the two, which then starts again.
    """
    with workspace.connection.transaction():
        wait = partial(workspace.log, "waiting for the loads of months that have begun")
        lock_for_forgetting(workspace.connection, wait)
        copies = find_matches(workspace.connection, request)
        if any(copy.month not in months for copy in copies):
            return None
        return _remove_rows(workspace, request, copies)


def _remove_rows(workspace: Workspace, request: ForgetRequest, copies: list[Copy]) -> ForgetReport:
    connection = workspace.connection
    digests = settle_digests(connection, workspace.forget_key)
    forgotten = request.forgotten(digests)
    removals = request.removals(digests)
    for digest, kind in removals.items():
        reason, by, cut = request.reason, request.by, request.cut
        add_removal(connection, digest, kind, reason=reason, by=by, cut=cut)
    chunks = delete_copies(connection, copies)
    sweep_encoded(connection)
    # ids of the request count too: other mail may refer to a message that never arrived
    ids = {*request.message_ids, *request.hidden, *(copy.message_id for copy in copies)}
    held = find_held(connection, ids)
    for copy in copies:
        record_removed(connection, copy.month, [_removed(copy, forgotten, held)])
    if held:
        show_ids(connection, [digests.of_message(x) for x in held])
    ids -= held
    vanished = _forget_vanished(connection, ids, forgotten)
    if ids:
        hide_ids(connection, {x: make_placeholder(digests.of_message(x)) for x in sorted(ids)})
    people = hide_people(connection, request.addresses, forgotten)
    hide_in_patches(connection, ids, request.addresses)
    if ids:
        discard_patches(connection, ids)
    for month in {copy.month for copy in copies}:
        update_counts(connection, month)
    return ForgetReport({*removals}, copies, chunks, people, vanished=vanished)


def _removed(copy: Copy, forgotten: Forgotten, held: Set[str]) -> RemovedMessage:
    digest = forgotten.digests.of_message(copy.message_id)
    by_author = forgotten.removal_of_author(copy.from_name, copy.from_email)
    removal = digest if digest in forgotten.messages or by_author is None else by_author
    hidden = None if copy.message_id in held else digest
    return RemovedMessage(copy.ordinal, removal, hidden, copy.key_prefix)


def _forget_vanished(
    connection: psycopg.Connection, message_ids: Set[str], forgotten: Forgotten
) -> int:
    """Replace the records of vanished mail by records of cut messages; return their number.

    The new records lead to former archives with the mail, and to its entries in other indexes.
    """
    records = delete_vanished(connection, message_ids)
    for month, message_id in records:
        if removal := forgotten.removal_of_id(message_id):
            lost = CutMessage(removal, removal, key_prefix(month, message_id, ""))
            record_cut(connection, month, [lost])
    return len(records)


def _forget_former(
    workspace: Workspace, archives: Mapping[str, ListMonth], report: ForgetReport
) -> ForgetReport:
    """Hide the ids of forgotten mail that had vanished, and is only in former archives.

    These must be read because no table records the senders of vanished mail. An archive that is
    damaged or cannot be reached does not stop the others.
    """
    connection, store = workspace.connection, workspace.store
    forgotten = read_forgotten(connection, workspace.forget_key)
    keys, vanished, unread = set[str](), 0, dict[str, str]()
    for key, month in archives.items():
        current = read_archive(connection, month)
        try:
            if not store.exists(key):
                continue
            with local_archive(store, key) as path:
                dialect = reading_dialect(path, current.dialect if current else "")
                cuts = find_cuts(path, month, dialect, forgotten)
        except (ArchiveError, StoreError, FileNotFoundError) as error:
            unread[store.url(key)] = str(error)
            continue
        if cuts.ranges:
            keys.add(key)
            with connection.transaction():
                lock_for_load(connection)
                known = {*read_key_prefixes(connection, month)}
                new = record_cuts(connection, month, cuts, forgotten, known)
                vanished += len(delete_vanished(connection, new))
    return report._replace(
        former=frozenset(keys), vanished=report.vanished + vanished, unread=unread
    )


def forget_again(workspace: Workspace, open_index: OpenIndex) -> ForgetReport:
    """Remove all mail in the list of removals after a restore, as forget_messages does.

    The list has only digests, so they are compared with the digests of every id and address here.
    If it is killed, run it again.

    Raises:
        ForgetKeyError: this machine lacks the key of the digests.
    """
    forgotten = read_forgotten(workspace.connection, workspace.forget_key)
    if forgotten.is_empty:
        return ForgetReport()
    for month in removed_months(workspace.connection):
        drop_reused(workspace.connection, month)
    message_ids, senders, hidden = find_names(workspace.connection, forgotten)
    request = ForgetRequest(message_ids, senders, "", "", hidden=hidden)
    report = _forget_rows(workspace, request)
    removals = forgotten.messages | forgotten.senders
    return _forget_elsewhere(workspace, report, removals, bool(forgotten.senders), open_index)
