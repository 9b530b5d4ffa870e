"""Fill the months of some lists through Dagster's daemon, and follow what its workers do.

The end is that of a backfill in this process (fill.py): a month that cannot be made fails alone,
and the threads are built and summarized once.

[launch] Backfills handed to Dagster's daemon, which has its workers make them: the UI's own backfills.

Nothing here runs a month. The daemon cuts the months into runs of a year by the assets' backfill
policy and tags each with `dagster/backfill`, which the queue of dagster.yaml knows.
It relies on private modules of Dagster (1.13.27), as its GraphQL server does; a test covers it.
https://docs.dagster.io/guides/build/partitions-and-backfills/backfilling-data

[follow] What the runs of a launched backfill do, read from the event log and passed on as events.
"""

import itertools
import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import sleep
from typing import Any

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset
from dagster._core.execution.backfill import (
    BULK_ACTION_TERMINAL_STATUSES,
    BulkActionStatus,
    PartitionBackfill,
)
from dagster._core.storage.tags import BACKFILL_ID_TAG
from dagster._core.utils import make_new_backfill_id

from mail_assets.defs.backfill.plan import BackfillRequest, plan_ranges
from mail_assets.defs.backfill.report import (
    CHAIN,
    STATE_COUNTS,
    WORK_COUNTS,
    BackfillLaunched,
    Listener,
    MonthRange,
    MonthsPassed,
    RangeFinished,
    RangeStarted,
    Report,
    RunsPlanned,
)
from mail_assets.defs.backfill.runs import Runs
from mail_assets.defs.definitions import build_defs
from mail_assets.defs.instance import open_instance
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.runs import LogLine, MonthFinished, months_of_tags, reason_of
from mail_assets.errors import MailAssetsError
from mail_assets.month import ListMonth, month_number
from mail_assets.settings.settings import Settings
from mail_assets.tables.partitions import Counts

#: Seconds since the daemon has shown itself last, which it does every 30.
_ALIVE = 300


class LaunchError(MailAssetsError):
    """There is no daemon that would run a backfill."""


def require_daemon(instance: dg.DagsterInstance) -> None:
    """Check that the daemon of an instance runs backfills.

    Raises:
        LaunchError: it was never started, or has not been seen for five minutes.
    """
    heartbeat = instance.get_daemon_heartbeats().get("BACKFILL")
    if heartbeat is None or time.time() - heartbeat.timestamp > _ALIVE:
        raise LaunchError(
            "no Dagster daemon runs on this instance, so nobody would run the backfill: start "
            "`dagster-daemon run` (`make dev` does), or leave out --launch"
        )


def launch_months(
    instance: dg.DagsterInstance,
    defs: dg.Definitions,
    assets: Sequence[str],
    months: Sequence[ListMonth],
    allow_loss: bool = False,
) -> str:
    """Ask the daemon for some months of partitioned assets; return the backfill's id."""
    archives = asset_key("mbox_archives").to_python_identifier()
    config = {"ops": {archives: {"config": {"allow_loss": True}}}} if allow_loss else None
    keys = [month.key for month in months]
    graph = defs.resolve_asset_graph()
    subsets = {}
    for asset in map(asset_key, assets):
        partitions = graph.get(asset).partitions_def
        assert partitions, f"{asset} has no months"
        subsets[asset] = partitions.subset_with_partition_keys(keys)
    # both fields have defaults, which mypy does not see through the decorator of the class
    subset = AssetGraphSubset(subsets, set())  # type: ignore[call-arg]
    return _launch(instance, subset, config)


def launch_whole(instance: dg.DagsterInstance, asset: str) -> str:
    """Ask the daemon for an asset without months; return the backfill's id.

    One at a time: of several Dagster 1.13.27 asks by a function that it warns of.
    """
    whole = AssetGraphSubset({}, {asset_key(asset)})  # type: ignore[call-arg]
    return _launch(instance, whole, None)


def _launch(
    instance: dg.DagsterInstance, subset: AssetGraphSubset, run_config: dict[str, Any] | None
) -> str:
    backfill: PartitionBackfill = PartitionBackfill.from_asset_graph_subset(
        backfill_id=make_new_backfill_id(),
        backfill_timestamp=time.time(),
        tags={},
        dynamic_partitions_store=instance,
        asset_graph_subset=subset,
        title="mail-assets backfill --launch",
        description=None,
        run_config=run_config,
    )
    instance.add_backfill(backfill)
    return backfill.backfill_id


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


def launch_lists(settings: Settings, request: BackfillRequest, listener: Listener) -> Report:
    """Have the months of some lists filled by the daemon's workers, then the threads built and
    summarized.

    A list whose source cannot be listed fails alone. Ctrl-C ends the following only: the report
    says so, and the daemon goes on with what was launched until then.

    Raises:
        LaunchError: no daemon runs.
    """
    report = Report()
    report.expect(CHAIN)
    with open_instance(settings) as instance:
        require_daemon(instance)
        ranges = plan_ranges(settings, instance, request, report)
        listener(MonthsPassed(len(report.unchanged)))
        months = [month for one in ranges for month in one.months]
        listener(RunsPlanned(len(months), CHAIN))
        follower = Follower(instance, [*settings.lists], listener, report)
        defs = build_defs(settings)
        try:
            _fill(follower, defs, months, request.allow_loss)
            # in this process: what it maintains is not cut into partitions, and no asset
            maintenance = Runs(defs, instance, listener, CHAIN)
            maintenance.report.merge(report)
            maintenance.maintain_indexes()
            report.failed.update(maintenance.report.failed)
        except KeyboardInterrupt:
            report.interrupted = True
    report.done.sort()
    return report


def _fill(
    follower: Follower, defs: dg.Definitions, months: Sequence[ListMonth], allow_loss: bool
) -> None:
    """Launch all months; those that failed again, each in a run of its own; then the threads.

    Nothing more is launched after a backfill that somebody has canceled.
    """
    report = follower.report
    if not _follow(follower, defs, [months] if months else [], allow_loss):
        return
    failed = _left(months, report.done)
    if not _follow(follower, defs, split_neighbours(failed, follower.lists), allow_loss):
        return
    for month in map(str, _left(months, report.done)):
        report.failed[month] = follower.reasons.get(month, "it was not run")
    for asset, name in (("threads", "threads"), ("thread_summaries", "summaries of threads")):
        whole = launch_whole(follower.instance, asset)
        follower.listener(BackfillLaunched(whole, name))
        if not follower.follow([whole]):
            return
        if "threads" in follower.reasons:
            report.failed["threads"] = follower.reasons["threads"]
            return


def _follow(
    follower: Follower,
    defs: dg.Definitions,
    parts: Iterable[Sequence[ListMonth]],
    allow_loss: bool,
) -> bool:
    """Launch a backfill for each part, beside each other; follow them; return whether all ended."""
    launched = []
    for months in parts:
        backfill = launch_months(follower.instance, defs, CHAIN, months, allow_loss)
        what = "1 list-month" if len(months) == 1 else f"{len(months)} list-months"
        follower.listener(BackfillLaunched(backfill, what))
        launched.append(backfill)
    return follower.follow(launched)


def split_neighbours(
    months: Iterable[ListMonth], lists: Collection[str]
) -> list[Sequence[ListMonth]]:
    """Return two parts without neighbours, like the squares of a chessboard, empty ones left out.

    The daemon makes one run of months that follow each other, and of one month of lists that
    follow each other: months without neighbours get a run each.
    """
    places = {name: place for place, name in enumerate(sorted(lists))}
    parts: tuple[list[ListMonth], list[ListMonth]] = ([], [])
    for month in months:
        # a year has 12 months and its number 100: both are even
        parts[(places[month.list_name] + month_number(month.month)) % 2].append(month)
    return [part for part in parts if part]


def _left(months: Sequence[ListMonth], done: Iterable[ListMonth]) -> Sequence[ListMonth]:
    made = {*done}
    return [month for month in months if month not in made]
