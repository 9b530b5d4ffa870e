"""What the runs of a launched backfill do, read from the event log and passed on as events."""

import itertools
import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from time import sleep

import dagster as dg
from dagster._core.execution.backfill import BULK_ACTION_TERMINAL_STATUSES, BulkActionStatus
from dagster._core.storage.tags import BACKFILL_ID_TAG

from mail_assets.defs.backfill.events import Listener, RangeFinished, RangeStarted
from mail_assets.defs.backfill.ranges import MonthRange
from mail_assets.defs.backfill.report import STATE_COUNTS, WORK_COUNTS, Report
from mail_assets.defs.runs import LogLine, MonthFinished, months_of_tags, reason_of
from mail_assets.month import ListMonth
from mail_assets.tables.partitions import Counts

#: Seconds between two looks: the daemon itself looks at a backfill every few seconds.
PAUSE = 2.0


@dataclass
class _Run:
    """How far the log of a run was read, and what it said of the run's end."""

    months: Sequence[ListMonth]
    cursor: str | None = None
    is_read: bool = False
    reason: str = ""

    @property
    def ranges(self) -> Iterator[MonthRange]:
        """The months of each list: the daemon may put a month of all lists into one run."""
        for _, months in itertools.groupby(self.months, key=lambda month: month.list_name):
            first, *rest = months
            yield MonthRange(first, rest[-1] if rest else first)


@dataclass
class Follower:
    """Follows backfills of some lists; `report` adds up what their runs record.

    `reasons` has why the last run of a month failed, under "LIST YYYY-MM", or that of "threads".
    """

    instance: dg.DagsterInstance
    lists: Collection[str]
    listener: Listener
    report: Report
    reasons: dict[str, str] = field(default_factory=dict)
    _runs: dict[str, _Run] = field(default_factory=dict)

    def follow(self, backfills: Sequence[str]) -> bool:
        """Pass on what the runs of backfills do until all are over; return whether all have ended.

        One that was canceled, or that the daemon gave up, has not: it is in `report.failed`.
        """
        waiting = [*backfills]
        while waiting:
            # looked at before the runs, so that their last events are not missed
            over = [one for one in waiting if self._is_over(one)]
            for backfill in waiting:
                for run in self.instance.get_runs(dg.RunsFilter(tags={BACKFILL_ID_TAG: backfill})):
                    self._read(run)
            waiting = [one for one in waiting if one not in over]
            if waiting:
                sleep(PAUSE)
        return not any(f"backfill {one}" in self.report.failed for one in backfills)

    def _is_over(self, backfill_id: str) -> bool:
        backfill = self.instance.get_backfill(backfill_id)
        if backfill is None:
            self.report.failed[f"backfill {backfill_id}"] = "it was deleted"
            return True
        if backfill.status == BulkActionStatus.CANCELED:
            self.report.failed[f"backfill {backfill_id}"] = "it was canceled"
        if backfill.status == BulkActionStatus.FAILED:
            reason = backfill.error.message.strip() if backfill.error else "the daemon gave it up"
            self.report.failed[f"backfill {backfill_id}"] = reason
        return backfill.status in BULK_ACTION_TERMINAL_STATUSES

    def _read(self, run: dg.DagsterRun) -> None:
        """Read what a run has logged since the last look; once more when it has ended."""
        known = self._runs.setdefault(run.run_id, _Run(self._months_of(run)))
        while not known.is_read:
            page = self.instance.get_records_for_run(run.run_id, cursor=known.cursor)
            for record in page.records:
                self._tell(known, record.event_log_entry)
            known.cursor = page.cursor
            if not page.has_more:
                known.is_read = run.is_finished
                break

    def _tell(self, run: _Run, entry: dg.EventLogEntry) -> None:
        """Pass one entry of a run's log on."""
        event = entry.dagster_event
        if event is None:
            level = int(entry.level)
            if level >= logging.INFO:
                self.listener(LogLine(entry.timestamp, level, entry.user_message))
            return
        match event.event_type:
            case dg.DagsterEventType.RUN_START:
                for one in run.ranges:
                    self.listener(RangeStarted(one))
            case dg.DagsterEventType.ASSET_MATERIALIZATION if entry.asset_materialization:
                self._count(entry.asset_materialization)
            case dg.DagsterEventType.ASSET_CHECK_EVALUATION | dg.DagsterEventType.STEP_FAILURE:
                run.reason = run.reason or reason_of(event)
            case dg.DagsterEventType.RUN_SUCCESS:
                self.report.done += run.months
                self._finish(run)
            case dg.DagsterEventType.RUN_FAILURE:
                names = [str(month) for month in run.months] or ["threads"]
                self.reasons.update(dict.fromkeys(names, run.reason or "its run failed"))
                self._finish(run)

    def _finish(self, run: _Run) -> None:
        for one in run.ranges:
            self.listener(RangeFinished(one))

    def _count(self, made: dg.AssetMaterialization) -> None:
        """Add what a step recorded of a month, or of the threads."""
        asset = made.asset_key.path[-1]
        counts = _numbers(made)
        if asset == "threads":
            self.report.threads = int(counts["threads"])
        elif made.partition and asset in STATE_COUNTS:
            month = ListMonth.parse(made.partition)
            names = STATE_COUNTS[asset] + WORK_COUNTS[asset]
            self.report.add(asset, month, {name: int(counts[name]) for name in names})
            changed = any(counts[name] for name in WORK_COUNTS[asset])
            self.listener(MonthFinished(asset, month, counts, changed))

    def _months_of(self, run: dg.DagsterRun) -> Sequence[ListMonth]:
        return sorted(months_of_tags(run.tags, self.lists))


def _numbers(made: dg.AssetMaterialization) -> Counts:
    """Return the plain figures of what was recorded; 0 where a figure was not."""
    values = ((name, getattr(value, "value", None)) for name, value in made.metadata.items())
    return defaultdict(int, {n: v for n, v in values if isinstance(v, int | float)})
