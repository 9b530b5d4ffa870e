"""The sensors. They request runs of new and changed archives, failed months, commits and threads.

Dagster ends a tick after 60 seconds. So listing has its own time limit, and the first clone of a
repository is left to a run. Threads belong to no month: they are built once after all changed
months.

One sensor posts failed months, with the reasons, to a webhook. It does not use Dagster's
run_failure_sensor, which advances even if its function fails (1.13.27): messages to a webhook that
is down would be lost.
https://docs.dagster.io/guides/automate/sensors
"""

import datetime as dt
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Final, NamedTuple

import dagster as dg

from mail_assets.defs.failures import RunFailure, read_failures
from mail_assets.defs.jobs import build_threads, refresh_archives, refresh_commits
from mail_assets.defs.partitions import asset_key, list_names, partition_key
from mail_assets.defs.resources import (
    AlertsResource,
    ArchiveSourceResource,
    DatabaseResource,
    RepositoriesResource,
)
from mail_assets.defs.runs import (
    IN_FLIGHT,
    Failures,
    failed_months,
    is_backfill_in_flight,
    months_in_flight,
    run_ended,
)
from mail_assets.errors import name_some
from mail_assets.http.requests import WebhookError, escape
from mail_assets.month import ListMonth
from mail_assets.settings.lists import LoadedLists
from mail_assets.sources.source import Listing, SourceError, list_archives
from mail_assets.steps.build_threads import are_threads_outdated
from mail_assets.steps.group_series import are_series_outdated
from mail_assets.steps.read_commits import find_months_behind
from mail_assets.tables.health import find_behind
from mail_assets.tables.lists import record_lists
from mail_assets.tables.mbox_archives import KnownArchive, known_archives
from mail_assets.tables.thread_summaries import are_summaries_outdated

#: Most months that a reason names.
MOST_MONTHS = 5
#: Most runs requested by a tick; the rest waits for the next tick. To fill a whole archive, use a
#: backfill, which makes one run per year.
BATCH = 24


class Patience(NamedTuple):
    """Seconds that a tick waits for one listing (`answer`), and for all listings (`all`)."""

    answer: float = 15.0
    all: float = 40.0


PATIENCE = Patience()


class Cursor(NamedTuple):
    """Position at which the next tick continues: after the partition `after`, with list `first`."""

    after: str = ""
    first: str = ""

    @classmethod
    def parse(cls, text: str | None) -> "Cursor":
        """Read a cursor; return the initial one if it cannot be read."""
        try:
            return cls(**json.loads(text or "{}"))
        except (ValueError, TypeError):
            return cls()

    def rotate(self, lists: Sequence[str]) -> list[str]:
        """Return the lists starting with `first`, then those before it."""
        at = lists.index(self.first) if self.first in lists else 0
        return [*lists[at:], *lists[:at]]

    def __str__(self) -> str:
        return json.dumps(self._asdict())


class Plan(NamedTuple):
    """Decision about each month: request a run with a key, or wait for a run or a pause."""

    run_keys: dict[ListMonth, str]
    in_flight: list[ListMonth]
    paused: dict[ListMonth, Failures]


def build_new_archives(
    partitions: dg.MultiPartitionsDefinition,
    patience: Patience = PATIENCE,
    clock: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    loaded: LoadedLists | None = None,
) -> dg.SensorDefinition:
    """Build the sensor for the lists and months of lists.toml; `loaded` is that file as loaded."""
    lists = list_names(partitions)

    @dg.sensor(
        job=refresh_archives,
        minimum_interval_seconds=300,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Request a run of every archive that is new at its source or has changed there,"
        " and of every month whose last run failed.",
    )
    def new_archives(
        context: dg.SensorEvaluationContext,
        database: DatabaseResource,
        archive_source: ArchiveSourceResource,
    ) -> dg.SensorResult | dg.SkipReason:
        """Request a run for every archive that is new or changed at its source, every month that
        is older than its fetched archive, and every month whose last run of any job failed.
        The pause grows with each failure. If lists.toml has changed since it was loaded, this is
        reported, and the published lists in the file are recorded.
        """
        outdated = loaded.describe_change() if loaded else ""
        if outdated:
            context.log.warning(outdated)
        cursor = Cursor.parse(context.cursor)
        sources = [archive_source.for_listing(n, patience.answer) for n in cursor.rotate(lists)]
        listing = list_archives(sources, patience.all)
        for reason in listing.failed.values():
            context.log.error(reason)
        with database.connect("sensor") as connection:
            if loaded:
                record_lists(connection, loaded.published())
            known, behind = known_archives(connection, lists), find_behind(connection)
        failed = failed_months(context.instance, lists, clock())
        news = _find_news(listing.versions, known)
        wanted = {
            month: _describe(news.get(month), known.get(month), behind.get(month))
            for month in {*failed, *news, *behind}
        }
        # a file may be of a month without a partition, and a list may have been removed
        possible = _with_partitions(partitions, wanted)
        plan = plan_runs(possible, failed, months_in_flight(context.instance, lists), clock())
        batch = next_batch(plan.run_keys, cursor.after)
        after = batch[-1].key if batch else cursor.after
        cursor = Cursor(after, next(iter(listing.waiting), ""))
        report = [*([outdated] if outdated else []), *_report(plan, listing)]
        for line in report:
            context.log.info(line)
        if not batch:
            context.update_cursor(str(cursor))
            return dg.SkipReason("; ".join(["no new or changed archives", *report]))
        return _request(context, plan, batch, str(cursor))

    return new_archives


def _find_news(
    listed: Mapping[ListMonth, str], known: Mapping[ListMonth, KnownArchive]
) -> dict[ListMonth, str]:
    """Return month -> version, for months that are new or changed at their source."""
    return {
        month: version
        for month, version in listed.items()  # "" if a source does not list versions
        if month not in known or (version and version != known[month].version)
    }


def _with_partitions(
    partitions: dg.MultiPartitionsDefinition, wanted: Mapping[ListMonth, str]
) -> dict[ListMonth, str]:
    keys = {*partitions.get_partition_keys()}
    return {month: what for month, what in wanted.items() if month.key in keys}


def plan_runs(
    wanted: Mapping[ListMonth, str],
    failed: Mapping[ListMonth, Failures],
    in_flight: Collection[ListMonth],
    now: dt.datetime,
) -> Plan:
    """Decide about each wanted month; `wanted` describes what a run would change.

    Dagster never launches a run key twice. So a key includes this description and the last failed
    run.
    """
    plan = Plan({}, [], {})
    for month, what in sorted(wanted.items()):
        failures = failed.get(month)
        if month in in_flight:
            plan.in_flight.append(month)
        elif failures and failures.retry_at > now:
            plan.paused[month] = failures
        else:
            again = f" after {failures.last_run}" if failures else ""
            plan.run_keys[month] = f"{month.key}@{what}{again}"
    return plan


def next_batch(months: Iterable[ListMonth], after: str) -> list[ListMonth]:
    """Return the next BATCH months after a partition key; if none is left, start from the first."""
    waiting = sorted(months, key=lambda month: month.key)
    return ([month for month in waiting if month.key > after] or waiting)[:BATCH]


def _request(
    context: dg.SensorEvaluationContext, plan: Plan, batch: Sequence[ListMonth], cursor: str
) -> dg.SensorResult:
    context.log.info(f"requested: {', '.join(map(str, batch))}")
    requests = [
        dg.RunRequest(partition_key=partition_key(month), run_key=plan.run_keys[month])
        for month in batch
    ]
    return dg.SensorResult(run_requests=requests, cursor=cursor)


def _describe(new: str | None, known: KnownArchive | None, behind: str | None) -> str:
    """Describe what a run would change: new version, replaced version, first outdated asset.

    A version alone is not enough, because it occurs again if a file is restored. After a run that
    changes nothing, the description is the same, so that the run is not repeated.
    """
    if known is None:
        return new or ""
    version = known.version if new is None else new
    first_asset = f" from {behind} on" if behind else ""
    return f"{version} for that of {known.since.isoformat()}{first_asset}"


def _report(plan: Plan, listing: Listing) -> Iterator[str]:
    if plan.in_flight:
        yield f"in a run already: {name_some(map(str, plan.in_flight), MOST_MONTHS)}"
    if plan.paused:
        pauses = (
            f"{month} (failures: {failures.runs}, last run {failures.last_run[:8]}, "
            f"again after {failures.retry_at:%Y-%m-%d %H:%M} UTC)"
            for month, failures in plan.paused.items()
        )
        yield f"paused after failures: {name_some(pauses, MOST_MONTHS)}"
    if listing.failed:
        yield f"could not list {', '.join(listing.failed)}"
    if listing.waiting:
        yield f"no time left to list {', '.join(listing.waiting)}: first in the next tick"


def build_new_commits(partitions: dg.MultiPartitionsDefinition) -> dg.SensorDefinition:
    """Build the sensor for the repositories of lists.toml."""
    lists = list_names(partitions)

    @dg.sensor(
        job=refresh_commits,
        minimum_interval_seconds=300,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Request a run of every month in which a repository of lists.toml has commits "
        "that are not stored, or stored commits that are no longer on its branch.",
    )
    def new_commits(
        context: dg.SensorEvaluationContext,
        database: DatabaseResource,
        repositories: RepositoriesResource,
    ) -> dg.SensorResult | dg.SkipReason:
        """Request a run for each month that is behind its repositories. The cursor is the last
        partition key of the previous tick.
        """
        wanted: dict[ListMonth, str] = {}
        report = []
        with database.connect("sensor") as connection:
            for list_name, sources in repositories.by_list().items():
                missing = [name for name, one in sources.items() if not one.is_mirrored]
                report += [
                    f"repository {name} is not cloned yet: run `mail-assets backfill`, or any "
                    "month of its list"
                    for name in missing
                ]
                if missing:
                    continue  # a run would delete the stored commits of a missing repository
                try:
                    wanted |= find_months_behind(connection, {list_name: sources})
                except SourceError as error:
                    context.log.error(str(error))
                    report.append(str(error))
        now = dt.datetime.now(dt.UTC)
        possible = _with_partitions(partitions, wanted)
        failed = failed_months(context.instance, lists, now)
        plan = plan_runs(possible, failed, months_in_flight(context.instance, lists), now)
        batch = next_batch(plan.run_keys, context.cursor or "")
        if not batch:
            return dg.SkipReason("; ".join(["no new commits", *report]))
        return _request(context, plan, batch, batch[-1].key)

    return new_commits


#: Longest wait for the runs of months, so that mail gets threads during a backfill of days. The
#: cost of building threads depends on the mail that changed, not on all mail.
LONGEST_WAIT = dt.timedelta(hours=1)

#: Longest time between two builds of threads; otherwise Dagster would show them as overdue.
REFRESH = dt.timedelta(days=1)


def build_new_threads(
    partitions: dg.MultiPartitionsDefinition,
    clock: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
) -> dg.SensorDefinition:
    """Build the sensor. It is on by default, because without new mail it requests nothing."""
    lists = list_names(partitions)

    @dg.sensor(
        job=build_threads,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Request that threads are built and summarized if messages have changed, when "
        "the runs of months and backfills have ended or have taken an hour.",
    )
    def new_threads(
        context: dg.SensorEvaluationContext, database: DatabaseResource
    ) -> dg.RunRequest | dg.SkipReason:
        """Request a run if messages wait for their threads. The cursor is the time since when."""
        now = clock()
        with database.connect("sensor") as connection:
            outdated = (
                are_threads_outdated(connection)
                or are_summaries_outdated(connection)
                or are_series_outdated(connection)
            )
        if not outdated and not _is_due(context.instance, now):
            context.update_cursor("")
            return dg.SkipReason("no message has changed since the threads were built")
        since = dt.datetime.fromisoformat(context.cursor) if context.cursor else now
        context.update_cursor(since.isoformat())
        failures = _last_failures(context.instance)
        if _are_being_built(context.instance):
            return dg.SkipReason("a run builds the threads, or is about to")
        if failures and failures.retry_at > now:
            return dg.SkipReason(f"failed; again after {failures.retry_at:%Y-%m-%d %H:%M} UTC")
        if now - since < LONGEST_WAIT:
            if months_in_flight(context.instance, lists):
                return dg.SkipReason("months are in a run: the threads are built after them")
            # the backfill may build the threads itself, at its end
            if is_backfill_in_flight(context.instance):
                return dg.SkipReason("a backfill is running: the threads are built after it")
        context.update_cursor("")
        return dg.RunRequest()

    return new_threads


def _are_being_built(instance: dg.DagsterInstance) -> bool:
    runs = instance.get_runs(dg.RunsFilter(statuses=IN_FLIGHT))
    return any(
        run.job_name == build_threads.name or asset_key("threads") in (run.asset_selection or ())
        for run in runs
    )


def _is_due(instance: dg.DagsterInstance, now: dt.datetime) -> bool:
    """Return whether threads were built, but not within REFRESH."""
    event = instance.get_latest_materialization_event(asset_key("threads"))
    built = event and dt.datetime.fromtimestamp(event.timestamp, dt.UTC)
    return bool(built and now - built > REFRESH)


def _last_failures(instance: dg.DagsterInstance) -> Failures | None:
    ended = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS]
    records = instance.get_run_records(
        dg.RunsFilter(job_name=build_threads.name, statuses=ended), limit=20
    )
    failed = [*takewhile(lambda x: x.dagster_run.status == dg.DagsterRunStatus.FAILURE, records)]
    if not failed:
        return None
    return Failures(len(failed), failed[0].dagster_run.run_id, run_ended(failed[0]))


#: Most runs, including successful ones, that a tick reads; the next tick continues after them.
RUNS_OF_TICK = 100

#: Limits that keep a message below the 4,000 characters that Slack accepts.
MOST_FAILURES, LONGEST_REASON = 10, 300

#: Events at the end of a run; a successful run may have failed checks.
ENDS: Final = (dg.DagsterEventType.RUN_FAILURE, dg.DagsterEventType.RUN_SUCCESS)


def build_failure_alerts(enabled: bool) -> dg.SensorDefinition:
    """Build the sensor; it is on by default if MAIL_ALERT_URL is set."""
    status = dg.DefaultSensorStatus.RUNNING if enabled else dg.DefaultSensorStatus.STOPPED

    @dg.sensor(
        minimum_interval_seconds=60,
        default_status=status,
        description="Post failed months and checks, with their reasons, to MAIL_ALERT_URL.",
    )
    def failure_alerts(
        context: dg.SensorEvaluationContext, alerts: AlertsResource
    ) -> dg.SkipReason:
        """Post a message for each run since the last tick that has failed, or that has a failed
        check of severity ERROR. If the webhook fails, the next tick tries again.
        """
        if not alerts.url:
            return dg.SkipReason("MAIL_ALERT_URL is not set")
        if context.cursor is None:
            ends = [context.instance.fetch_run_status_changes(kind, limit=1) for kind in ENDS]
            newest = max((one.storage_id for end in ends for one in end.records), default=0)
            context.update_cursor(str(newest))
            return dg.SkipReason("from now on, failed runs are posted to MAIL_ALERT_URL")
        posted = 0
        for run_id, storage_id in finished_runs(context.instance, int(context.cursor)):
            try:
                posted += _alert(context.instance, alerts, run_id)
            except WebhookError as error:
                context.log.error(f"MAIL_ALERT_URL: {error}; run {run_id} is posted later")
                if not posted:  # a tick that raises keeps its old cursor and posts again
                    raise
                break
            context.update_cursor(str(storage_id))
        return dg.SkipReason(f"runs posted: {posted}" if posted else "no failed runs")

    return failure_alerts


def finished_runs(instance: dg.DagsterInstance, after: int) -> Iterator[tuple[str, int]]:
    """Yield (run id, id of its end event) for the runs that ended after an event, in order."""
    records = [
        record
        for kind in ENDS
        for record in instance.fetch_run_status_changes(
            dg.RunStatusChangeRecordsFilter(kind, after_storage_id=after),
            limit=RUNS_OF_TICK,
            ascending=True,
        ).records
    ]
    for record in islice(sorted(records, key=lambda record: record.storage_id), RUNS_OF_TICK):
        yield record.run_id, record.storage_id


def alert_text(job: str, run: str, failures: list[RunFailure]) -> str:
    """Return the message about a run in Slack's markup; `run` must already be in that markup."""
    name = "materialization" if job.startswith("__") else job  # Dagster's own name is internal
    lines = [f"*{escape(name)}* failed, {run}:"]
    for failure in failures[:MOST_FAILURES]:
        reason = " ".join(failure.reason.split())
        if len(reason) > LONGEST_REASON:
            reason = f"{reason[:LONGEST_REASON]}..."
        lines.append(f"• {escape(failure.subject)}: {escape(reason)}")
    if len(failures) > MOST_FAILURES:
        lines.append(f"and {len(failures) - MOST_FAILURES} more")
    return "\n".join(lines)


def _alert(instance: dg.DagsterInstance, alerts: AlertsResource, run_id: str) -> bool:
    """Post the failures of a run; return whether it has any."""
    failures, run = read_failures(instance, run_id), instance.get_run_by_id(run_id)
    if not failures or run is None:  # somebody deleted the run
        return False
    alerts.post(alert_text(run.job_name, alerts.run_link(run_id), failures))
    return True
