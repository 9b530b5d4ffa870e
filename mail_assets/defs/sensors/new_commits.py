"""The sensor that requests runs of the months in which a repository has new commits.

A repository at a URL is fetched in a tick, which ends after 60 seconds: its first clone is left to
a run.
https://docs.dagster.io/guides/automate/sensors
"""

import datetime as dt
from collections.abc import Callable

import dagster as dg

from mail_assets.defs.jobs import refresh_commits
from mail_assets.defs.partitions import list_names, partition_key
from mail_assets.defs.resources import DatabaseResource, RepositoriesResource
from mail_assets.defs.runs import failed_months, months_in_flight
from mail_assets.defs.sensors.new_archives import next_batch, plan_runs
from mail_assets.month import ListMonth
from mail_assets.sources.repository import CommitSource
from mail_assets.sources.source import SourceError
from mail_assets.steps.read_commits import find_months_behind


def build_new_commits(
    partitions: dg.MultiPartitionsDefinition,
    clock: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
) -> dg.SensorDefinition:
    """Build the sensor for the repositories of lists.toml."""
    lists = list_names(partitions)

    @dg.sensor(
        job=refresh_commits,
        minimum_interval_seconds=300,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Request a run of every month in which a repository of lists.toml has commits "
        "that are not stored, or stored ones are no longer on its branch.",
    )
    def new_commits(
        context: dg.SensorEvaluationContext,
        database: DatabaseResource,
        repositories: RepositoriesResource,
    ) -> dg.SensorResult | dg.SkipReason:
        """Request a run for each month that is behind its repositories. The cursor is the last
        partition key of the tick before.
        """
        wanted: dict[ListMonth, str] = {}
        report = []
        with database.connect("sensor") as connection:
            for list_name, sources in repositories.by_list().items():
                there = {name: one for name, one in sources.items() if one.is_mirrored}
                report += [_not_cloned(one) for name, one in sources.items() if name not in there]
                if len(there) < len(sources):
                    continue  # its months would lose the commits of the other
                try:
                    wanted |= find_months_behind(connection, {list_name: there})
                except SourceError as error:
                    context.log.error(str(error))
                    report.append(str(error))
        possible = {*partitions.get_partition_keys()}
        now = clock()
        plan = plan_runs(
            {month: what for month, what in wanted.items() if month.key in possible},
            failed_months(context.instance, lists, now),
            months_in_flight(context.instance, lists),
            now,
        )
        batch = next_batch(plan.run_keys, context.cursor or "")
        if not batch:
            return dg.SkipReason("; ".join(["no new commits", *report]))
        context.log.info(f"requested: {', '.join(map(str, batch))}")
        return dg.SensorResult(
            run_requests=[
                dg.RunRequest(partition_key=partition_key(month), run_key=plan.run_keys[month])
                for month in batch
            ],
            cursor=batch[-1].key,
        )

    return new_commits


def _not_cloned(source: CommitSource) -> str:
    return (
        f"repository {source.name} is not cloned yet: run `mail-assets backfill`, or any month of "
        "its list"
    )
