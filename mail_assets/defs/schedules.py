"""The schedule: the running month daily, the month before until the 3rd.

Written by hand: with end_offset=1 Dagster's own builder schedules the month that has just
begun, so a finished month would never be fetched after its last day.
https://docs.dagster.io/guides/automate/schedules
"""

from collections.abc import Iterator

import dagster as dg

from mail_assets.defs.jobs import maintain_vectors, measure_quality, refresh_archives
from mail_assets.defs.partitions import months, partition_key
from mail_assets.month import ListMonth

#: Mail of a month's last days arrives, and is moderated, during the first days of the next.
LATE_DAYS = 3


def build_daily_refresh(lists: tuple[str, ...], first_month: str) -> dg.ScheduleDefinition:
    """Build the schedule for the lists of lists.toml."""

    @dg.schedule(
        job=refresh_archives,
        cron_schedule="15 4 * * *",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
    )
    def daily_refresh(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
        """Refresh the running month of every list daily, and the month before until the 3rd."""
        now = context.scheduled_execution_time
        recent = months(first_month).get_partition_keys(current_time=now)[-2:]
        for month in recent if now.day <= LATE_DAYS else recent[-1:]:
            for name in lists:
                key = partition_key(ListMonth(name, month))
                # a run key is launched once for ever: the date makes it daily
                yield dg.RunRequest(partition_key=key, run_key=f"{key}@{now:%Y-%m-%d}")

    return daily_refresh


weekly_maintenance = dg.ScheduleDefinition(
    job=maintain_vectors,
    cron_schedule="45 5 * * 0",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    name="weekly_maintenance",
)

#: After the upkeep, which changes what an approximate index finds.
weekly_quality = dg.ScheduleDefinition(
    job=measure_quality,
    cron_schedule="45 6 * * 0",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    name="weekly_quality",
)
