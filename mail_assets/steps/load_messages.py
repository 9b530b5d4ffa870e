"""Load the archive of one month into `messages`, `archive_entries` and `quarantine`.

The cost is proportional to the change. Messages that an earlier load has parsed are recognized by
the digest of their bytes and not parsed again. Only rows that differ are made and written.
"""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile

from mail_assets.mail.archive.compression import unpacked
from mail_assets.mail.body.segments import SEGMENTER_VERSION
from mail_assets.mail.message.parse import PARSER_VERSION
from mail_assets.month import ListMonth
from mail_assets.postgres.database import retry_conflicts
from mail_assets.processes.workers import WorkerError
from mail_assets.steps.fetch_archive import is_intact
from mail_assets.steps.month_contents import (
    KnownMonth,
    MonthAccount,
    MonthContents,
    find_shared,
    read_contents,
    recall_month,
)
from mail_assets.steps.read_month import Archive, MonthReader, Reading, make_lines
from mail_assets.tables.lists import record_list
from mail_assets.tables.mbox_archives import (
    ArchiveRow,
    drop_altered_entries,
    local_archive,
    read_archive,
    read_entries,
    replace_entries,
)
from mail_assets.tables.messages import (
    KnownRow,
    RowKey,
    count_undated,
    delete_rows,
    find_contested,
    mend_senders,
    read_arrivals,
    read_known_rows,
    replace_quarantine,
    write_rows,
)
from mail_assets.tables.partitions import Counts, Partition, State, locked, read_state, write_state
from mail_assets.tables.removals import (
    LESS,
    LOAD_AGAIN,
    drop_reused,
    lock_for_load,
    read_forgotten,
    show_ids,
)
from mail_assets.tables.removed_messages import find_held, hide_ids, replace_removed
from mail_assets.workspace import ListDefaults, Log, Outcome, StepError, Workspace, rate

ASSET = "messages"

#: Version of all code that makes a row; raise it when the same bytes would give other rows.
MESSAGES_VERSION = f"parser {PARSER_VERSION}, segmenter {SEGMENTER_VERSION}, rows 15"

#: Bytes of drafts to keep in memory; larger ones go to a temporary file.
DRAFTS_IN_MEMORY = 64 << 20

#: Seconds between two progress messages.
PROGRESS = 15.0


def load_messages(
    workspace: Workspace, month: ListMonth, defaults: ListDefaults, *, rebuild: bool = False
) -> Outcome:
    """Bring the rows of one month up to date with its archive.

    With `rebuild` every message is parsed again, and each row is compared with the result.

    A load is one transaction: if it is killed, the month stays as it was. Two loads that delete the
    summaries of the same threads can deadlock; PostgreSQL aborts one of them, which is retried.

    Raises:
        StepError: mbox_archives was never materialized for this month, or a worker process died.
        ArchiveError: the stored file is damaged.
    """
    connection, partition = workspace.connection, Partition(ASSET, month)
    with locked(connection, partition):
        archive = read_archive(connection, month)
        if archive is None:
            raise StepError(f"{month}: no archive yet; materialize mbox_archives first")
        # before the load's transaction: within it, other months of the list would wait for its end
        record_list(connection, month.list_name, defaults.language, published=defaults.published)
        inputs, made_by = message_inputs(archive, defaults), _made_by_now(archive, defaults)
        state = read_state(connection, partition)
        if state and state.inputs == inputs and not rebuild:
            return Outcome({**state.counts, "written": 0, "deleted": 0}, state.digest, False)
        loader = _Loader(workspace, month, archive, defaults, made_by)
        knows = not rebuild and state is not None and _made_by(state) == made_by

        def load() -> State:
            with connection.transaction():
                if rebuild:
                    _check_archive(workspace, month, archive)
                    drop_altered_entries(connection, month)
                loaded = State(inputs, *loader.load(knows))
                if rebuild:
                    loaded.counts["written"] += mend_senders(connection, month)
                write_state(connection, partition, loaded, rebuild and _has_changed(loaded))
            return loaded

        new = retry_conflicts(load)
    return Outcome(new.counts, new.digest, _has_changed(new))


def _has_changed(state: State) -> bool:
    return bool(state.counts["written"] or state.counts["deleted"])


def _check_archive(workspace: Workspace, month: ListMonth, archive: ArchiveRow) -> None:
    if archive.object_key and not is_intact(workspace.store, archive):
        raise StepError(
            f"{month}: {workspace.store.url(archive.object_key)} is missing or damaged; run "
            f"`mail-assets backfill --rebuild --list {month.list_name} --from {month.month} --to "
            f"{month.month}`, which fetches it again, or restore a backup"
        )


def message_inputs(archive: ArchiveRow, defaults: ListDefaults) -> str:
    """Return the version of a month's inputs: the archive's digest, dialect, settings, code."""
    return f"{archive.sha256 or 'none'} {_made_by_now(archive, defaults)}"


def _made_by_now(archive: ArchiveRow, defaults: ListDefaults) -> str:
    return f"{archive.dialect} {defaults} {MESSAGES_VERSION}"


def _made_by(state: State) -> str:
    """Return the inputs of a month without the archive's digest."""
    inputs = state.inputs.replace(LOAD_AGAIN, "").replace(LESS, "")
    return inputs.partition(" ")[2]


class _Loader:
    """Loads one month; the caller opens the transaction."""

    def __init__(
        self,
        workspace: Workspace,
        month: ListMonth,
        archive: ArchiveRow,
        defaults: ListDefaults,
        made_by: str,
    ) -> None:
        self._workspace, self._connection = workspace, workspace.connection
        self._month, self._archive = month, archive
        self._defaults, self._made_by = defaults, made_by
        self._progress = _Progress(month, archive.found, workspace.log)
        self._written_ids: set[str] = set()

    def load(self, knows: bool) -> tuple[str, Counts]:
        """Load the month; return a digest over the rows, and the figures.

        `knows`: an earlier load made the rows with the same dialect, settings and code.
        """
        connection, month = self._connection, self._month
        lock_for_load(connection)
        forgotten = read_forgotten(connection, self._workspace.forget_key)
        former = read_entries(connection, month)
        rows = read_known_rows(connection, month)
        known = recall_month(former, rows) if knows else KnownMonth({}, {})
        charset = self._defaults.charset
        reading = Reading(month.month, self._archive.dialect, forgotten, charset)
        with ExitStack() as opened:
            archive = None
            if self._archive.object_key:
                file = local_archive(self._workspace.store, self._archive.object_key)
                path = opened.enter_context(file)
                archive = Archive(opened.enter_context(unpacked(path)), str(path))
            drafts = opened.enter_context(SpooledTemporaryFile(DRAFTS_IN_MEMORY))
            reader = MonthReader(archive, reading, known.facts, self._workspace.workers, drafts)
            try:
                contents = read_contents(reader, forgotten, self._made_by, self._progress.report)
                if shared := find_shared(contents, forgotten):
                    show_ids(connection, shared)
                    return self.load(knows)  # other mail of the month may name these ids
                written, refused = self._write_changed(reader, contents, known, rows)
            except WorkerError as error:
                raise StepError(f"{month}: {error}") from error
            parsed = len(reader.parsed)
            unpacked_bytes = len(archive.data) if archive else 0
        account = MonthAccount(month, contents, refused)
        vanished = rows.keys() - {row.key for row in account.rows.values()}
        deleted = delete_rows(connection, month, vanished)
        replace_entries(connection, month, former, account.entries())
        replace_quarantine(connection, month, MESSAGES_VERSION, account.quarantined())
        held = find_held(connection, account.removed_ids)
        replace_removed(connection, month, [*account.removed(forgotten.digests, held)])
        drop_reused(connection, month)
        if placeholders := account.new_placeholders(forgotten, held):
            hide_ids(connection, placeholders)
        find_contested(connection, {x for x, _ in vanished} | self._written_ids)
        seconds = self._progress.seconds
        return account.digest, {
            **account.counts(),
            "unpacked_bytes": unpacked_bytes,
            "undated": count_undated(connection, month),
            "parsed": parsed,
            "seconds": round(seconds, 3),
            "messages_per_second": rate(len(contents.found), seconds),
            "written": written,
            "deleted": deleted,
        }

    def _write_changed(
        self,
        reader: MonthReader,
        contents: MonthContents,
        known: KnownMonth,
        former: Mapping[RowKey, KnownRow],
    ) -> tuple[int, dict[int, str]]:
        changed = {
            ordinal: row
            for ordinal, row in contents.rows.items()
            if known.row_hashes.get(row.key) != row.row_hash
        }
        self._written_ids = {row.key[0] for row in changed.values()}
        reader.parse([ordinal for ordinal in changed if ordinal not in reader.parsed])
        refused: dict[int, str] = {}
        arrivals, workers = read_arrivals(former), self._workspace.workers
        lines = make_lines(reader, changed, arrivals, workers, refused)
        rows = write_rows(self._connection, self._month, self._defaults.language, lines)
        return rows.written, refused | rows.refused


class _Progress:
    def __init__(self, month: ListMonth, expected: int, log: Log) -> None:
        self._month, self._expected, self._log = month, expected, log
        self._began = self._reported = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def report(self, found: int) -> None:
        now = time.monotonic()
        if now - self._reported < PROGRESS:
            return
        self._reported = now
        speed = found / (now - self._began)
        left = (self._expected - found) / speed
        self._log(
            f"{self._month}: {found} of {self._expected} messages, {speed:.0f}/s, {left:.0f} s left"
        )
