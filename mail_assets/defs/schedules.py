"""The schedules: the current month and the searches daily; what is of all months weekly.

All are off until they are switched on. The daily one is not made by Dagster's own builder, which
with end_offset=1 schedules the month that has just begun: a finished month would never be fetched
after its last day.
https://docs.dagster.io/guides/automate/schedules
"""

import datetime as dt
from collections.abc import Iterator

import dagster as dg

from mail_assets.defs.jobs import (
    check_all_months,
    count_searches,
    maintain_vectors,
    measure_quality,
    prune_all,
    refresh_archives,
)
from mail_assets.defs.partitions import partition_key
from mail_assets.month import ListMonth
from mail_assets.operations.prune import KEEP_DAYS

#: Mail of a month's last days arrives, and is moderated, during the first days of the next.
LATE = dt.timedelta(days=3)

#: Today's mail goes before the months of a backfill, whose runs have priority 0. A month takes
#: minutes: after four hours something hangs, and the next day's run needs its place.
DAILY_TAGS = {"dagster/priority": "10", "dagster/max_runtime": str(4 * 3600)}


def build_daily_refresh(partitions: dg.MultiPartitionsDefinition) -> dg.ScheduleDefinition:
    """Build the schedule for the lists and months of lists.toml."""

    @dg.schedule(
        job=refresh_archives,
        cron_schedule="15 4 * * *",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description="Refresh the current month of every list daily, and the month before it "
        "until the 3rd.",
    )
    def daily_refresh(
        context: dg.ScheduleEvaluationContext,
    ) -> Iterator[dg.RunRequest | dg.SkipReason]:
        """Request a run for each of these months."""
        now = context.scheduled_execution_time
        recent = {f"{day:%Y-%m}" for day in (now - LATE, now)}
        keys = map(str, partitions.get_partition_keys(current_time=now))
        wanted = sorted(
            (month for key in keys if (month := ListMonth.parse(key)).month in recent),
            key=lambda month: month.month,
        )
        if not wanted:
            yield dg.SkipReason("the last_month of lists.toml is over: nothing to refresh")
        for month in wanted:
            yield dg.RunRequest(
                partition_key=partition_key(month),
                # a run key is launched only once: the date makes it daily
                run_key=f"{month.key}@{now:%Y-%m-%d}",
                tags=DAILY_TAGS,
            )

    return daily_refresh


daily_audit = dg.ScheduleDefinition(
    name="daily_audit",
    job=count_searches,
    cron_schedule="15 3 * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Take over the counts of searches that were served, daily.",
)

#: Before the maintenance, which then has less to compact.
weekly_pruning = dg.ScheduleDefinition(
    name="weekly_pruning",
    job=prune_all,
    cron_schedule="45 4 * * 0",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description=f"Delete what is older than {KEEP_DAYS} days and not needed, every Sunday.",
)

weekly_maintenance = dg.ScheduleDefinition(
    name="weekly_maintenance",
    job=maintain_vectors,
    cron_schedule="45 5 * * 0",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Compact and index the vector bucket and the word index, and delete former "
    "archives whose time is over, every Sunday.",
)

#: After the maintenance, which changes what an approximate index finds.
weekly_quality = dg.ScheduleDefinition(
    name="weekly_quality",
    job=measure_quality,
    cron_schedule="45 6 * * 0",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Measure the quality of search every Sunday, with MAIL_QUALITY_SET.",
)

weekly_checks = dg.ScheduleDefinition(
    name="weekly_checks",
    job=check_all_months,
    cron_schedule="45 7 * * 0",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Check all months every Sunday: a daily run checks its own months only.",
)

WEEKLY = (weekly_pruning, weekly_maintenance, weekly_quality, weekly_checks)
