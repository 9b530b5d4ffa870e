"""The sensor: archives that are new at the source, or have changed there.

What lives here: which runs to ask for. What does not: listing a source (sources/), which
must be cheap, since a tick ends after 60 seconds.
https://docs.dagster.io/guides/automate/sensors
"""

import dagster as dg

from mail_assets.defs.jobs import refresh_archives
from mail_assets.defs.partitions import months, partition_key
from mail_assets.defs.resources.archive_source import ArchiveSourceResource
from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.month import ListMonth
from mail_assets.sources.source import SourceError
from mail_assets.tables.mbox_archives import known_versions

#: Runs asked for by one tick; the rest waits for the next. Fill a whole archive with a
#: backfill, which makes one run of a year.
BATCH = 24


def build_new_archives(lists: tuple[str, ...], first_month: str) -> dg.SensorDefinition:
    """Build the sensor for the lists of lists.toml."""

    @dg.sensor(
        job=refresh_archives,
        minimum_interval_seconds=300,
        default_status=dg.DefaultSensorStatus.STOPPED,
    )
    def new_archives(
        context: dg.SensorEvaluationContext,
        database: DatabaseResource,
        archive_source: ArchiveSourceResource,
    ) -> dg.SensorResult | dg.SkipReason:
        """Ask for a run of every archive that is new at its source or has changed there.

        What has been fetched stands in Postgres, so the cursor is only the place where the
        last tick stopped: the next goes on behind it, and begins anew at the end.
        """
        changed: dict[ListMonth, str] = {}
        down: list[str] = []
        # a file that names a month to come belongs to no partition yet
        possible = {*months(first_month).get_partition_keys()}
        with database.connect("sensor") as connection:
            for name in lists:
                known = known_versions(connection, name)
                try:
                    versions = archive_source.of(name).versions()
                except SourceError as error:  # one list's server is down: the others go on
                    context.log.error(str(error))
                    down.append(name)
                    continue
                changed |= {
                    month: version
                    for month, version in versions.items()
                    if month.month in possible and _is_news(version, known.get(month))
                }
        if not changed:
            unseen = f"; could not list {', '.join(down)}" if down else ""
            return dg.SkipReason(f"no new or changed archives{unseen}")
        waiting = sorted(changed)
        behind = [month for month in waiting if month.key > (context.cursor or "")]
        batch = (behind or waiting)[:BATCH]
        return dg.SensorResult(
            run_requests=[
                dg.RunRequest(
                    partition_key=partition_key(month), run_key=f"{month.key}@{changed[month]}"
                )
                for month in batch
            ],
            cursor=batch[-1].key,
        )

    return new_archives


def _is_news(version: str, known: str | None) -> bool:
    """Say whether a listing tells more than we know; some sources cannot tell versions."""
    return known is None or (bool(version) and version != known)
