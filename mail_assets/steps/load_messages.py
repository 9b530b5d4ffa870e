"""Load the archive of one month into `messages` and `quarantine`."""

import time
from collections.abc import Iterable
from contextlib import ExitStack

from mail_assets.mail.body.segments import SEGMENTER_VERSION
from mail_assets.mail.message.parse import PARSER_VERSION
from mail_assets.month import ListMonth
from mail_assets.steps.message_reader import MessageReader
from mail_assets.steps.outcome import Outcome, StepError, rate
from mail_assets.steps.workspace import Log, Workspace
from mail_assets.tables.hidden_ids import hide_ids
from mail_assets.tables.mbox_archives import local_archive, read_archive
from mail_assets.tables.messages import MessageRow, replace_messages, replace_quarantine
from mail_assets.tables.partitions import Counts, Partition, State, locked, read_state, write_state
from mail_assets.tables.removals import key_old_digests, lock_for_load, read_forgotten
from mail_assets.tables.removed_messages import clear_removed, record_removed

ASSET = "messages"

#: Of everything that makes a row; raise it when the same bytes would give other rows.
VERSION = f"parser {PARSER_VERSION}, segmenter {SEGMENTER_VERSION}, rows 3"

#: Seconds between two lines of progress.
PROGRESS = 15.0


def load_messages(workspace: Workspace, month: ListMonth, language: str) -> Outcome:
    """Make the rows of one month equal to what its archive says.

    One transaction: a run killed at any point leaves the month as it was.

    Raises:
        StepError: mbox_archives was never materialized for this month by this version.
        ArchiveError: the stored file is damaged.
    """
    connection, partition = workspace.connection, Partition(ASSET, month)
    with locked(connection, partition):
        archive = read_archive(connection, month)
        if archive is None or (archive.object_key and not archive.dialect):
            raise StepError(f"{month}: no archive yet; materialize mbox_archives first")
        inputs = f"{archive.sha256 or 'none'} {archive.dialect} {language} {VERSION}"
        state = read_state(connection, partition)
        if state and state.inputs == inputs:
            return Outcome({**state.counts, "written": 0, "deleted": 0}, state.digest, False)
        progress = _Progress(month, archive.found, workspace.log)
        key_old_digests(connection, workspace.forget_key)
        with connection.transaction(), ExitStack() as opened:
            lock_for_load(connection)
            forgotten = read_forgotten(connection, workspace.forget_key)
            reader = MessageReader(month, archive.dialect, forgotten, progress.report)
            rows: Iterable[MessageRow] = ()
            if archive.object_key:
                store = workspace.store
                rows = reader.read(opened.enter_context(local_archive(store, archive.object_key)))
            loaded = replace_messages(connection, month, rows, language, VERSION)
            reader.quarantine_stored(loaded.refused)
            replace_quarantine(connection, month, VERSION, reader.quarantined)
            clear_removed(connection, month)
            record_removed(connection, month, reader.removed)
            if reader.new_stand_ins:
                hide_ids(connection, reader.new_stand_ins)
            figures = reader.counts()
            counts: Counts = {
                **figures,
                "seconds": round(progress.seconds, 3),
                "messages_per_second": rate(figures["found"], progress.seconds),
                "written": loaded.rows.written,
                "deleted": loaded.rows.deleted,
            }
            write_state(connection, partition, State(inputs, loaded.rows.digest, counts))
    return Outcome(counts, loaded.rows.digest, bool(counts["written"] or counts["deleted"]))


class _Progress:
    """Reports from time to time how far a month is."""

    def __init__(self, month: ListMonth, expected: int, log: Log) -> None:
        self._month, self._expected, self._log = month, expected, log
        self._began = self._reported = time.monotonic()

    @property
    def seconds(self) -> float:
        """The seconds since the start of the month."""
        return time.monotonic() - self._began

    def report(self, found: int) -> None:
        """Log how far it is, if the last line is `PROGRESS` seconds old."""
        now = time.monotonic()
        if now - self._reported < PROGRESS:
            return
        self._reported = now
        speed = found / (now - self._began)
        left = (self._expected - found) / speed
        self._log(
            f"{self._month}: {found} of {self._expected} messages, {speed:.0f}/s, {left:.0f} s left"
        )
