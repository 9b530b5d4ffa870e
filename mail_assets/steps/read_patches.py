"""Read the patches of one month's messages into `patches`.

This is a step of its own, after `messages`: the rules for patches have a version of their own, and
a change of them parses no messages again. Only the messages that may have a patch are read, and
the archive is opened only if patches are attached.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from mmap import mmap

from mail_assets.mail.archive.compression import unpacked
from mail_assets.mail.archive.mbox import extract_message
from mail_assets.mail.message.body import PatchFile, read_patch_files
from mail_assets.mail.message.forgotten import NOBODY
from mail_assets.mail.patches.patch import MailedPatch
from mail_assets.mail.patches.read import PATCHES_VERSION, PatchMail, read_patches
from mail_assets.month import ListMonth
from mail_assets.reading.attachments import archive_of_messages
from mail_assets.tables.mbox_archives import local_archive
from mail_assets.tables.partitions import Counts, Partition, State, locked, read_state, write_state
from mail_assets.tables.patches import PatchSource, StoredPatch, read_sources, replace_patches
from mail_assets.tables.removals import read_forgotten
from mail_assets.workspace import Outcome, Workspace, rate, read_made

ASSET = "patches"


def make_patches(workspace: Workspace, month: ListMonth, *, rebuild: bool = False) -> Outcome:
    """Bring the patches of one month up to date with its messages, in one transaction.

    With `rebuild` they are read again even if the messages are unchanged.

    Raises:
        StepError: messages was never materialized for this month.
        StoreError: patches are attached, but the archive of the messages is missing.
    """
    began = time.monotonic()
    connection, partition = workspace.connection, Partition(ASSET, month)
    with locked(connection, partition):
        messages = read_made(connection, "messages", month)
        inputs = patch_inputs(messages)
        state = read_state(connection, partition)
        if state and state.inputs == inputs and not rebuild:
            return Outcome({**state.counts, "written": 0, "deleted": 0}, state.digest, False)
        with connection.transaction(), _Reader(workspace, month) as reader:
            replaced = replace_patches(connection, month, reader.rows())
            seconds = time.monotonic() - began
            counts: Counts = {
                **reader.counts,
                "written": replaced.written,
                "deleted": replaced.deleted,
                "seconds": round(seconds, 3),
                "patches_per_second": rate(reader.counts["patches"], seconds),
            }
            changed = bool(replaced.written or replaced.deleted)
            new = State(inputs, replaced.digest, counts)
            write_state(connection, partition, new, rebuild and changed)
    return Outcome(counts, replaced.digest, changed)


def patch_inputs(messages: State) -> str:
    """Return the version of the inputs from which a month's patches are read."""
    return f"{messages.digest} patches {PATCHES_VERSION}"


class _Reader(ExitStack):
    def __init__(self, workspace: Workspace, month: ListMonth) -> None:
        super().__init__()
        self._workspace, self._month = workspace, month
        self._forgotten = read_forgotten(workspace.connection, workspace.forget_key)
        self._archive: tuple[bytes | mmap, str] | None = None
        self.counts: Counts = dict.fromkeys(
            ("rows", "patches", "covers", "attached", "malformed", "without_patch"), 0
        )

    def rows(self) -> Iterator[StoredPatch]:
        for source in read_sources(self._workspace.connection, self._month):
            found = read_patches(self._mail(source))
            has_patch_text = source.offset is not None or any(
                part.kind == "patch" for part in source.segments
            )
            self.counts["without_patch"] += has_patch_text and not found
            for patch in map(self._hide, found):
                self.counts["rows"] += 1
                self.counts["patches"] += patch.kind == "patch"
                self.counts["covers"] += patch.kind == "cover"
                self.counts["attached"] += patch.source == "attachment"
                self.counts["malformed"] += bool(patch.malformed)
                yield StoredPatch(self._month, source.variant, patch)

    def _hide(self, patch: MailedPatch) -> MailedPatch:
        """Return a patch without the forgotten messages and people that it names."""
        forgotten = self._forgotten
        if forgotten.is_empty:
            return patch
        links = tuple(one for one in patch.links if not forgotten.hides_id(one.message_id))
        patch = replace(patch, links=links)
        if forgotten.removal_of_author(patch.author_name, patch.author_email) is None:
            return patch
        return replace(patch, author_name="", author_email=NOBODY.email)

    def _mail(self, source: PatchSource) -> PatchMail:
        attached: Sequence[PatchFile] = ()
        if source.offset is not None and source.length is not None:
            data, dialect = self._open_archive()
            raw = extract_message(data[source.offset : source.offset + source.length], dialect)
            attached = read_patch_files(raw)
        return PatchMail(
            source.message_id,
            source.subject,
            source.from_name,
            source.from_email,
            source.sent_at,
            source.in_reply_to,
            source.body_text,
            source.segments,
            attached,
        )

    def _open_archive(self) -> tuple[bytes | mmap, str]:
        if self._archive is None:
            workspace = self._workspace
            key, dialect = archive_of_messages(workspace.connection, workspace.store, self._month)
            path = self.enter_context(local_archive(workspace.store, key))
            self._archive = self.enter_context(unpacked(path)), dialect
        return self._archive
