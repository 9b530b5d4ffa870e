"""Put a fetched archive into the store, without the messages that are forgotten.

The bytes of the other messages stay exactly as they are, and the file is compressed as it was.
"""

import tempfile
from collections.abc import Collection
from pathlib import Path

import psycopg

from mail_assets.files import digest_file
from mail_assets.mail.archive.compression import archive_suffix
from mail_assets.mail.message.forgotten import Forgotten, make_placeholder
from mail_assets.month import ListMonth
from mail_assets.steps.archive_cuts import Cuts, find_cuts, write_without
from mail_assets.tables.mbox_archives import ArchiveRow, object_key
from mail_assets.tables.removals import (
    CutMessage,
    lock_for_load,
    read_cut,
    record_cut,
)
from mail_assets.tables.removed_messages import find_held, hide_ids, key_prefix
from mail_assets.workspace import Workspace


def store_archive(
    workspace: Workspace, month: ListMonth, path: Path, archive: ArchiveRow
) -> ArchiveRow:
    """Put an archive into the store without forgotten messages; return its row with the key.

    `sha256`, `bytes` and `found` describe the stored file then. `content_sha256` and `version` stay
    those of the source, so that a fetch recognizes it.

    Raises:
        StepError: the other messages would read differently.
    """
    connection = workspace.connection
    forgotten = read_cut(connection, workspace.forget_key)
    with tempfile.TemporaryDirectory() as folder:
        if forgotten.messages or forgotten.senders:
            cuts = find_cuts(path, month, archive.dialect, forgotten)
            if cuts.ranges:
                path = write_without(path, Path(folder) / "archive", archive.dialect, cuts)
                archive = archive._replace(
                    sha256=digest_file(path), bytes=path.stat().st_size, found=len(cuts.left)
                )
                with connection.transaction():
                    lock_for_load(connection)
                    record_cuts(connection, month, cuts, forgotten)
        key = object_key(month, archive.sha256, archive_suffix(path))
        workspace.store.put(key, path)
    return archive._replace(object_key=key)


def record_cuts(
    connection: psycopg.Connection,
    month: ListMonth,
    cuts: Cuts,
    forgotten: Forgotten,
    known: Collection[str] = (),
) -> set[str]:
    """Record the messages that an archive has lost; call it in a transaction after lock_for_load.

    Messages with one of the `known` key prefixes are recorded already. Their ids are hidden, except
    those that other mail has too. Return the ids that were first seen now, after their senders were
    forgotten.
    """
    ids = {one.message_id for one in cuts.contents}
    held = (ids & cuts.ids_left) | find_held(connection, ids)
    digests = {x: forgotten.digests.of_message(x) for x in ids - held}
    lost = [
        CutMessage(
            one.removal,
            digests.get(one.message_id),
            key_prefix(
                month,
                one.message_id,
                "" if one.is_first and one.message_id in digests else one.content_hash,
            ),
        )
        for one in cuts.contents
    ]
    record_cut(connection, month, [one for one in lost if one.key_prefix not in known])
    new = {
        x: make_placeholder(digest) for x, digest in digests.items() if digest not in forgotten.ids
    }
    if new:
        hide_ids(connection, new)
    return {*new}
