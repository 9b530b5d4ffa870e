"""Fetch the archive of one month into the store, or refuse it with its figures.

The source's bytes are kept as they came. Whether they hold anything new is decided on the
messages in them, without their From_ lines: some servers invent that line at every
download, so that the bytes differ and nothing has changed.
"""

import hashlib
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from mail_assets.mail.archive.dialects import find_dialect
from mail_assets.mail.archive.mbox import split_archive
from mail_assets.mail.archive.unpacked import unpacked
from mail_assets.month import ListMonth
from mail_assets.sources.source import ArchiveSource, Fetched, Unchanged
from mail_assets.steps.cut_archives import store_archive
from mail_assets.steps.outcome import Outcome, StepError
from mail_assets.steps.workspace import Workspace
from mail_assets.tables.mbox_archives import (
    ArchiveRow,
    folder_key,
    read_archive,
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

#: A month may lose this share of its messages, or one message, without being refused:
#: archives hide single messages that a moderator takes down.
MAX_LOSS = 0.03

ASSET = "mbox_archives"

#: Of everything that is found out about an archive; raise it when the same bytes would say more.
VERSION = "archive 2"


class FetchOptions(NamedTuple):
    """How an archive is fetched.

    `dialect` is that of lists.toml, None where each archive is to be asked; with `allow_loss` an
    archive may vanish or lose any number of messages.
    """

    dialect: str | None = None
    allow_loss: bool = False


def fetch_archive(
    workspace: Workspace, month: ListMonth, source: ArchiveSource, options: FetchOptions
) -> Outcome:
    """Make the stored archive of a month equal to the source's.

    Raises:
        SourceError: the source cannot be read, or what it sent is no archive.
        StepError: the archive vanished, or lost more than a few per cent of its messages,
            and the options do not allow it.
    """
    began = time.monotonic()
    connection, store = workspace.connection, workspace.store
    partition = Partition(ASSET, month)
    with locked(connection, partition), tempfile.TemporaryDirectory() as folder:
        old = read_archive(connection, month)
        kept = old if old and old.object_key and store.exists(old.object_key) else None
        state = read_state(connection, partition)
        # the same bytes may hold other messages in another dialect: they are read again
        reading = f"{options.dialect or 'found'} {VERSION}"
        same_reading = state is not None and state.inputs.endswith(f" {reading}")
        known = kept.version if kept and same_reading else ""
        fetched = source.fetch(month, Path(folder) / "archive", known)
        if isinstance(fetched, Unchanged) and kept:
            new = kept
        else:
            new = _examine(fetched, source.url, options.dialect)
        _refuse_loss(month, old, new, options.allow_loss)
        if kept and new.content_sha256 == kept.content_sha256:
            new = new._replace(
                object_key=kept.object_key, sha256=kept.sha256, bytes=kept.bytes, found=kept.found
            )
            changed = False
        elif isinstance(fetched, Fetched):
            new = store_archive(workspace, month, fetched.path, new)
            changed = True
        else:
            changed = old is None or old.object_key is not None
        if new != old:
            write_archive(connection, month, new)
        _sweep(workspace, month, new)
        counts: Counts = {
            "found": new.found,
            "bytes": new.bytes,
            "fetched": int(isinstance(fetched, Fetched)),
            "seconds": round(time.monotonic() - began, 3),
        }
        inputs = f"{new.sha256 or 'none'} {reading}"
        write_state(connection, partition, State(inputs, new.content_sha256, counts))
    note = "" if new.object_key else "the source has no archive for this month"
    return Outcome(counts, new.content_sha256, changed, note)


def _examine(fetched: Fetched | Unchanged | None, url: str, setting: str | None) -> ArchiveRow:
    """Count the messages of what was fetched and digest them without their From_ lines."""
    if not isinstance(fetched, Fetched):
        return ArchiveRow(url, None, "", 0, "", 0, "", "", "")
    with unpacked(fetched.path) as data:
        found_dialect = find_dialect(data)
    dialect = setting or found_dialect or "plain"
    found, content = 0, hashlib.sha256(dialect.encode())
    for message in split_archive(fetched.path, dialect):
        found += 1
        content.update(hashlib.sha256(message.raw).digest())
    if not found and fetched.bytes:
        content.update(fetched.sha256.encode())
    return ArchiveRow(
        fetched.url,
        None,
        fetched.sha256,
        fetched.bytes,
        fetched.version,
        found,
        content.hexdigest(),
        dialect,
        found_dialect or "",
    )


def _refuse_loss(
    month: ListMonth, old: ArchiveRow | None, new: ArchiveRow, allow_loss: bool
) -> None:
    lost = old.found - new.found if old else 0
    vanished = not new.sha256
    bearable = 0 if old is None or vanished else max(1, MAX_LOSS * old.found)
    if old is None or allow_loss or lost <= bearable:
        return
    what = "has vanished" if vanished else f"now has {new.found}"
    raise StepError(
        f"{month}: the archive held {old.found} messages and {what} "
        f"({lost} lost, {lost / old.found:.0%}). Nothing was changed. If the loss is meant, "
        "materialize mbox_archives with allow_loss: true"
    )


def _sweep(workspace: Workspace, month: ListMonth, new: ArchiveRow) -> None:
    """Delete the files of this month that neither the archive nor its messages need."""
    store = workspace.store
    state = read_state(workspace.connection, Partition("messages", month))
    needed = state.inputs.split()[0][:16] if state else ""
    for key in [*store.keys(folder_key(month))]:
        name = key.rpartition("/")[2]
        if key != new.object_key and (not needed or not name.startswith(needed)):
            store.delete(key)
