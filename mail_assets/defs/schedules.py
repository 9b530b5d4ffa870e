"""The schedules: a daily refresh of recent months, and the weekly upkeep.

https://docs.dagster.io/guides/automate/schedules
"""

import datetime as dt
from collections.abc import Iterator

import dagster as dg

from mail_assets.defs.jobs import refresh_archives
from mail_assets.defs.partitions import partition_key
from mail_assets.month import ListMonth

#: Days for which mail of a month may still arrive or be moderated in the next month.
LATE = dt.timedelta(days=3)

#: Today's mail has priority over the months of a backfill (priority 0). A month takes minutes; a
#: run of four hours hangs, and would block the run of the next day.
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
        now = context.scheduled_execution_time
        recent = {f"{day:%Y-%m}" for day in (now - LATE, now)}
        keys = map(str, partitions.get_partition_keys(current_time=now))
        wanted = sorted(
            (month for key in keys if (month := ListMonth.parse(key)).month in recent),
            key=lambda month: month.month,
        )
        if not wanted:
            yield dg.SkipReason("the last_month of lists.toml has passed: nothing to refresh")
        for month in wanted:
            yield dg.RunRequest(
                partition_key=partition_key(month),
                # a run key is launched only once: the date makes it daily
                run_key=f"{month.key}@{now:%Y-%m-%d}",
                tags=DAILY_TAGS,
            )

    return daily_refresh


def build_weekly_upkeep(upkeep: dg.JobDefinition) -> dg.ScheduleDefinition:
    """Build the schedule of the job `upkeep`."""
    return dg.ScheduleDefinition(
        name="weekly_upkeep",
        job=upkeep,
        cron_schedule="45 4 * * 0",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description="Prune, maintain the indexes, count searches, measure quality and check every "
        "month, every Sunday.",
    )
