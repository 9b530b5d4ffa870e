"""Ask a source whether the archive that is kept of a month is still the one it has.

The rules are those of fetch_archive: what is confirmed here, a fetch would not have changed.
"""

import tempfile
from pathlib import Path

from mail_assets.mail.archive.compression import ArchiveError
from mail_assets.month import ListMonth
from mail_assets.sources.source import ArchiveSource, Fetched
from mail_assets.steps.fetch_archive import (
    ASSET,
    FetchOptions,
    ask_source,
    examine_archive,
    keep_file,
)
from mail_assets.tables.mbox_archives import ArchiveRow, read_archive, write_archive
from mail_assets.tables.partitions import Partition, locked
from mail_assets.workspace import Workspace


def confirm_archive(
    workspace: Workspace, month: ListMonth, source: ArchiveSource, options: FetchOptions
) -> bool:
    """Return whether the source has what is kept of a month, or both have nothing.

    Bytes that differ and hold the same messages are the same archive, whose new version is
    recorded: the next time there may be nothing to download.

    Raises:
        SourceError: the source cannot be asked.
    """
    with (
        locked(workspace.connection, Partition(ASSET, month)),
        tempfile.TemporaryDirectory() as folder,
    ):
        kept = read_archive(workspace.connection, month)
        if kept is None:
            return False
        fetched = ask_source(source, month, Path(folder) / "archive", kept)
        if fetched is None or not kept.object_key:
            return fetched is None and not kept.object_key
        if isinstance(fetched, Fetched):
            return _holds_the_same(workspace, month, (kept, fetched), options)
        return True


def _holds_the_same(
    workspace: Workspace,
    month: ListMonth,
    archives: tuple[ArchiveRow, Fetched],
    options: FetchOptions,
) -> bool:
    kept, fetched = archives
    try:
        new = examine_archive(workspace, fetched, kept, options.dialect).row
    except ArchiveError:  # its run says so
        return False
    if new.content_sha256 != kept.content_sha256:
        return False
    write_archive(workspace.connection, month, keep_file(new, kept))
    return True
