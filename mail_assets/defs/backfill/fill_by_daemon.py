"""Fill the months of some lists through Dagster's daemon, and follow what its workers do.

The end is that of a backfill in this process (fill.py): a month that cannot be made fails alone,
and the threads are built and summarized once.
"""

from collections.abc import Collection, Iterable, Sequence

import dagster as dg

from mail_assets.defs.backfill.events import BackfillLaunched, Listener, MonthsPassed, RunsPlanned
from mail_assets.defs.backfill.fill import BackfillRequest, plan_ranges
from mail_assets.defs.backfill.follow import Follower
from mail_assets.defs.backfill.launch import launch_months, launch_whole, require_daemon
from mail_assets.defs.backfill.report import CHAIN, Report
from mail_assets.defs.backfill.runs import Runs
from mail_assets.defs.definitions import build_defs
from mail_assets.defs.instance import open_instance
from mail_assets.month import ListMonth, month_number
from mail_assets.settings.environment import Settings


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
