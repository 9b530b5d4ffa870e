"""Fetch the archive of one month into the store, or refuse it with its figures.

The file is stored byte for byte. An archive counts as changed if its messages differ. From_ lines
are not compared, because some servers make up others at every download. An archive that lost
messages, or that belongs to another list, is refused. Messages are compared, not counted: if 200
were replaced by 200 others, 200 are lost.
"""

import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from mail_assets.files import digest_file
from mail_assets.mail.archive.compression import unpacked
from mail_assets.mail.archive.mbox import read_contents
from mail_assets.mail.message.ids import normalize_id
from mail_assets.month import ListMonth
from mail_assets.sources.source import ArchiveSource, Fetched, Unchanged
from mail_assets.steps.store_archive import store_archive
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.mbox_archives import (
    ArchiveRow,
    drop_former,
    drop_returned,
    expired_archives,
    folder_key,
    keep_former,
    kept_former,
    local_archive,
    prefix_of_messages,
    read_archive,
    record_vanished,
    usual_list_ids,
    write_archive,
)
from mail_assets.tables.partitions import (
    Counts,
    Partition,
    State,
    locked,
    read_state,
    write_state,
)
from mail_assets.tables.removals import read_forgotten
from mail_assets.workspace import Outcome, StepError, Workspace

ASSET = "mbox_archives"

#: Version of the recorded facts about an archive; raise it when the same bytes would give others.
VERSION = "archive 5"


#: A month may lose this share of its messages, or one message, without being refused:
#: moderators take down single messages.
MAX_LOSS = 0.03

#: An archive of another list is refused if at least this many months agree on their list's name.
#: After a list is renamed, this many months must be accepted before the new name counts as usual.
MIN_MONTHS = 2

REMEDY = (
    "If this is intended, run `mail-assets backfill --allow-loss` for this month, or materialize "
    "mbox_archives with allow_loss: true"
)


class FetchOptions(NamedTuple):
    """Options of a fetch.

    `dialect` comes from lists.toml; with None it is detected for each archive. With `allow_loss` an
    archive may vanish, lose any number of messages, or name another list. A former archive is kept
    for `keep_days`. With `rebuild` the archive is downloaded again, and a damaged stored file is
    replaced.
    """

    dialect: str | None = None
    allow_loss: bool = False
    keep_days: int = 0
    rebuild: bool = False

    @property
    def reading(self) -> str:
        """Dialect and version; they and the bytes determine the facts about an archive."""
        return f"{self.dialect or 'found'} {VERSION}"


class ExaminedArchive(NamedTuple):
    """An archive's row as it would be recorded, and its messages: digest -> Message-ID."""

    row: ArchiveRow
    messages: Mapping[str, str]


def fetch_archive(
    workspace: Workspace, month: ListMonth, source: ArchiveSource, options: FetchOptions
) -> Outcome:
    """Make the stored archive of a month equal to the source's.

    Raises:
        SourceError: the source cannot be read, or its answer is not an archive.
        StepError: the archive vanished, lost more than a few per cent of its messages, or belongs
            to another list, and the options do not allow it.
    """
    began = time.monotonic()
    connection, store = workspace.connection, workspace.store
    partition = Partition(ASSET, month)
    with locked(connection, partition), tempfile.TemporaryDirectory() as folder:
        old = read_archive(connection, month)
        kept = old if old and old.object_key and store.exists(old.object_key) else None
        if options.rebuild and kept and not is_intact(store, kept):
            workspace.log(f"{month}: {store.url(kept.object_key or '')} is damaged")
            kept = None
        known = None if options.rebuild else kept
        fetched = ask_source(source, month, Path(folder) / "archive", known)
        for line in source.new_remarks():
            workspace.log(f"{month.list_name}: {line}")
        state = read_state(connection, partition)
        if isinstance(fetched, Unchanged) and kept and is_read(state, options):
            examined, loss = ExaminedArchive(kept, {}), NO_LOSS
        else:
            examined = examine_archive(
                workspace, fetched, kept or _empty(source.url), options.dialect
            )
            loss = _check(workspace, month, (old, kept), examined, options)
        new = examined.row
        changed = old is None or new.content_sha256 != old.content_sha256 or kept is None
        # the digests of other bytes are comparable only if both files are read in one dialect
        if kept and not changed and new.found_dialect == kept.found_dialect:
            new = keep_file(new, kept)
        elif isinstance(fetched, Fetched):
            new = store_archive(workspace, month, fetched.path, new)
        elif old and not kept and not old.object_key:
            changed = False  # the month still has no archive
        with connection.transaction():
            if new != old or options.rebuild:  # a rebuild also repairs a damaged row
                write_archive(connection, month, new)
            drop_returned(connection, month, examined.messages)
            _record_loss(workspace, month, (kept, new), loss, options.keep_days)
            counts: Counts = {
                "found": new.found,
                "bytes": new.bytes,
                "fetched": int(isinstance(fetched, Fetched)),
                "vanished": len(loss.vanished),
                "seconds": round(time.monotonic() - began, 3),
            }
            inputs = f"{new.sha256 or 'none'} {options.reading}"
            write_state(connection, partition, State(inputs, new.content_sha256, counts))
        files = {key for key in store.keys(folder_key(month)) if key != new.object_key}
        _sweep_month(workspace, month, files)
    note = "" if new.object_key else "the source has no archive for this month"
    return Outcome(counts, new.content_sha256, changed, note)


def ask_source(
    source: ArchiveSource, month: ListMonth, target: Path, kept: ArchiveRow | None
) -> Fetched | Unchanged | None:
    """Fetch the archive of a month, unless it is unchanged since the kept one.

    The version of one URL says nothing about another URL: a server that is asked for a file newer
    than a date answers "unchanged" for any older file.
    """
    fetched = source.fetch(month, target, kept.version if kept else "")
    if kept and isinstance(fetched, Unchanged) and fetched.url != kept.source:
        return source.fetch(month, target)
    return fetched


def is_intact(store: ObjectStore, archive: ArchiveRow) -> bool:
    """Return whether the stored file of an archive exists and has the recorded digest."""
    key = archive.object_key
    if not key or not store.exists(key) or store.size(key) != archive.bytes:
        return False
    with local_archive(store, key) as path:
        return digest_file(path) == archive.sha256


def is_read(state: State | None, options: FetchOptions) -> bool:
    """Return whether the facts were recorded with the current dialect and version."""
    return state is not None and state.inputs.endswith(f" {options.reading}")


def keep_file(new: ArchiveRow, kept: ArchiveRow) -> ArchiveRow:
    """Return the row to record if other bytes hold the same messages as the kept file."""
    return new._replace(object_key=kept.object_key, sha256=kept.sha256, bytes=kept.bytes)


def _empty(url: str) -> ArchiveRow:
    return ArchiveRow(url, None, "", 0, "", 0, "", "", "")


def examine_archive(
    workspace: Workspace,
    fetched: Fetched | Unchanged | None,
    kept: ArchiveRow,
    dialect: str | None,
) -> ExaminedArchive:
    """Read the fetched file; if it is unchanged, read the kept one again."""
    with ExitStack() as opened:
        if isinstance(fetched, Fetched):
            path = fetched.path
            row = _empty(fetched.url)._replace(
                sha256=fetched.sha256, bytes=fetched.bytes, version=fetched.version
            )
        elif isinstance(fetched, Unchanged) and kept.object_key:
            path, row = opened.enter_context(local_archive(workspace.store, kept.object_key)), kept
        else:
            return ExaminedArchive(_empty(kept.source), {})
        data = opened.enter_context(unpacked(path))
        contents = read_contents(data, dialect, row.source)
    row = row._replace(
        found=contents.found,
        content_sha256=contents.digest,
        dialect=contents.dialect,
        found_dialect=contents.found_dialect or "",
        list_id=contents.list_id,
    )
    return ExaminedArchive(row, contents.messages)


class Loss(NamedTuple):
    """Messages of the `former` archive and `lost` ones, as numbers; `vanished`: digest -> id."""

    former: int
    vanished: Mapping[str, str]
    lost: int


NO_LOSS = Loss(0, {}, 0)


def _check(
    workspace: Workspace,
    month: ListMonth,
    former: tuple[ArchiveRow | None, ArchiveRow | None],
    examined: ExaminedArchive,
    options: FetchOptions,
) -> Loss:
    """Return the loss since the `former` archive: (its row, its row if its file is intact).

    Raises:
        StepError: the options do not allow it.
    """
    (old, kept), new = former, examined.row
    if not options.allow_loss:
        _refuse_other_list(workspace, month, old, new)
    if old is None or new.content_sha256 == old.content_sha256:
        return NO_LOSS
    loss = _find_loss(workspace, old, kept, examined)
    if not options.allow_loss:
        _refuse_loss(month, old, new, loss)
    return loss


def _find_loss(
    workspace: Workspace, former: ArchiveRow, kept: ArchiveRow | None, examined: ExaminedArchive
) -> Loss:
    """Return the messages that the new archive lacks; without the former file, their number."""
    if kept is None or not kept.object_key:
        return Loss(former.found, {}, max(0, former.found - examined.row.found))
    with local_archive(workspace.store, kept.object_key) as path, unpacked(path) as data:
        held = read_contents(data, kept.dialect or None, kept.object_key).messages
    vanished = {digest: held[digest] for digest in held.keys() - examined.messages.keys()}
    return Loss(len(held), vanished, len(vanished))


def _refuse_loss(month: ListMonth, former: ArchiveRow, new: ArchiveRow, loss: Loss) -> None:
    vanished = not new.sha256
    bearable = 0 if vanished else max(1, MAX_LOSS * loss.former)
    if loss.lost <= bearable:
        return
    what = "has vanished" if vanished else f"now has {new.found}"
    raise StepError(
        f"{month}: the archive held {former.found} messages and {what} "
        f"({loss.lost} lost, {loss.lost / loss.former:.0%}). Nothing was changed. {REMEDY}"
    )


def _refuse_other_list(
    workspace: Workspace, month: ListMonth, former: ArchiveRow | None, new: ArchiveRow
) -> None:
    """Refuse an archive of another list: a file in the wrong folder, or an error of a server.

    Only the name before the first dot counts, because lists move to other hosts. The name in the
    month's former archive is accepted.
    """
    usual = usual_list_ids(workspace.connection, month, MIN_MONTHS)
    accepted = [*usual, former.list_id] if former else usual
    if not new.list_id or not usual or _name(new.list_id) in map(_name, accepted):
        return
    raise StepError(
        f"{month}: the archive at {new.source} is of the list {new.list_id}; other months of "
        f"{month.list_name} are of {usual[0]}. Nothing was changed. {REMEDY}"
    )


def _name(list_id: str) -> str:
    return list_id.partition(".")[0]


def _record_loss(
    workspace: Workspace,
    month: ListMonth,
    archives: tuple[ArchiveRow | None, ArchiveRow],
    loss: Loss,
    keep_days: int,
) -> None:
    connection = workspace.connection
    former, new = archives
    if new.object_key:
        drop_former(connection, new.object_key)
    if former is None or former.object_key in (None, new.object_key):
        return
    keep_former(connection, month, str(former.object_key), keep_days)
    if loss.vanished:
        forgotten = read_forgotten(connection, workspace.forget_key)
        ids = {digest: normalize_id(one) for digest, one in loss.vanished.items()}
        vanished = {digest: one for digest, one in ids.items() if not forgotten.hides_id(one)}
        record_vanished(connection, month, vanished, str(former.object_key))


def _sweep_month(workspace: Workspace, month: ListMonth, keys: set[str]) -> None:
    """Delete superseded files of a month, except those within their keep time or still in use."""
    needed = kept_former(workspace.connection, month)
    prefix = prefix_of_messages(workspace.connection, month)
    for key in keys - needed:
        if not (prefix and key.startswith(prefix)):
            workspace.store.delete(key)
            drop_former(workspace.connection, key)


def sweep_former_archives(workspace: Workspace) -> int:
    """Delete former archives whose keep time has ended; return their number."""
    expired = expired_archives(workspace.connection)
    for key, month in expired.items():
        _sweep_month(workspace, month, {key})
    return len(expired)
