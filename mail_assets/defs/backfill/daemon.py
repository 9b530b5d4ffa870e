"""Hand a backfill to Dagster's daemon, whose workers make the months; wait for it if asked to.

Nothing here runs a month. The daemon cuts the months into runs of a year by the assets' backfill
policy. It tags each run with `dagster/backfill`, and the queue of dagster.yaml limits that tag. The
sensor `new_threads` builds the threads after it, as after any run of months.

It relies on private modules of Dagster (1.13.27), as its GraphQL server does; a test covers it.
https://docs.dagster.io/guides/build/partitions-and-backfills/backfilling-data
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from time import sleep

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset
from dagster._core.execution.backfill import (
    BULK_ACTION_TERMINAL_STATUSES,
    BulkActionStatus,
    PartitionBackfill,
)
from dagster._core.storage.tags import BACKFILL_ID_TAG
from dagster._core.utils import make_new_backfill_id

from mail_assets.defs.backfill.plan import BackfillRequest, find_materialized, plan_ranges
from mail_assets.defs.backfill.report import CHAIN, Report
from mail_assets.defs.backfill.runs import AS_USUAL, StepOptions
from mail_assets.defs.definitions import build_defs
from mail_assets.defs.failures import read_failures
from mail_assets.defs.instance import open_instance
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.runs import months_of_tags
from mail_assets.errors import MailAssetsError
from mail_assets.month import ListMonth
from mail_assets.settings.settings import Settings

#: Seconds after which a daemon counts as gone; it records a heartbeat every 30 s.
_ALIVE = 300

#: Seconds between two looks at a backfill; the daemon itself looks every few seconds.
PAUSE = 2.0


class LaunchError(MailAssetsError):
    """No daemon runs that would take a backfill."""


@dataclass(frozen=True)
class Launched:
    """A backfill that the daemon has taken over, its months, and the report of its plan.

    `backfill_id` is empty if no month needs a run.
    """

    backfill_id: str
    months: Sequence[ListMonth]
    report: Report


def launch_lists(settings: Settings, request: BackfillRequest) -> Launched:
    """Have the daemon fill the months of some lists that need a run.

    A list whose source cannot be listed is in `report.failed`.

    Raises:
        LaunchError: no daemon runs.
    """
    report = Report()
    report.expect(CHAIN)
    with open_instance(settings) as instance:
        _require_daemon(instance)
        ranges = plan_ranges(settings, instance, request, report)
        months = [month for one in ranges for month in one.months]
        backfill_id = ""
        if months:
            defs = build_defs(settings)
            backfill_id = launch_months(instance, defs, months, request.options)
    return Launched(backfill_id, months, report)


def wait_for_backfill(settings: Settings, launched: Launched) -> None:
    """Wait until a backfill has ended; `launched.report` then has its months, done or failed.

    Ctrl-C ends the waiting: the report says so, and the daemon goes on.
    """
    report = launched.report
    with open_instance(settings) as instance:
        try:
            while not (over := _find_end(instance, launched.backfill_id)):
                sleep(PAUSE)
        except KeyboardInterrupt:
            report.interrupted = True
            return
        if over != _ENDED:
            report.failed[f"backfill {launched.backfill_id}"] = over
        done = {*find_materialized(settings, instance, launched.months, CHAIN)}
        reasons = _read_reasons(instance, launched.backfill_id, [*settings.lists])
    for month in launched.months:
        if month in done:
            report.done.append(month)
        else:
            report.failed[str(month)] = reasons.get(str(month), "it was not run")


def _require_daemon(instance: dg.DagsterInstance) -> None:
    heartbeat = instance.get_daemon_heartbeats().get("BACKFILL")
    if heartbeat is None or time.time() - heartbeat.timestamp > _ALIVE:
        raise LaunchError(
            "no Dagster daemon runs on this instance, so nobody would run the backfill: start "
            "`dagster-daemon run` (`make dev` does), or leave out --launch"
        )


def launch_months(
    instance: dg.DagsterInstance,
    defs: dg.Definitions,
    months: Sequence[ListMonth],
    options: StepOptions = AS_USUAL,
) -> str:
    """Ask the daemon for a backfill of months; return the id of the backfill."""
    keys = [month.key for month in months]
    graph = defs.resolve_asset_graph()
    subsets = {}
    for asset in map(asset_key, CHAIN):
        partitions = graph.get(asset).partitions_def
        assert partitions, f"{asset} has no months"
        subsets[asset] = partitions.subset_with_partition_keys(keys)
    backfill: PartitionBackfill = PartitionBackfill.from_asset_graph_subset(
        backfill_id=make_new_backfill_id(),
        backfill_timestamp=time.time(),
        tags={},
        dynamic_partitions_store=instance,
        # both fields have defaults, which mypy does not see through the decorator of the class
        asset_graph_subset=AssetGraphSubset(subsets, set()),  # type: ignore[call-arg]
        title="mail-assets backfill --launch",
        description=None,
        run_config=options.configure(CHAIN),
    )
    instance.add_backfill(backfill)
    return backfill.backfill_id


#: The end of a backfill of which every run has ended, well or not.
_ENDED = "it has ended"


def _find_end(instance: dg.DagsterInstance, backfill_id: str) -> str:
    """Return _ENDED, or the reason why a backfill was given up; "" while it goes on."""
    backfill = instance.get_backfill(backfill_id)
    if backfill is None:
        return "it was deleted"
    if backfill.status == BulkActionStatus.CANCELED:
        return "it was canceled"
    if backfill.status == BulkActionStatus.FAILED:
        return backfill.error.message.strip() if backfill.error else "the daemon gave it up"
    return _ENDED if backfill.status in BULK_ACTION_TERMINAL_STATUSES else ""


def _read_reasons(
    instance: dg.DagsterInstance, backfill_id: str, lists: Sequence[str]
) -> dict[str, str]:
    """Return the reasons of failed months. A month that its run does not name has the first."""
    reasons: dict[str, str] = {}
    failed = dg.RunsFilter(
        tags={BACKFILL_ID_TAG: backfill_id}, statuses=[dg.DagsterRunStatus.FAILURE]
    )
    for run in instance.get_runs(failed):
        failures = read_failures(instance, run.run_id)
        reasons.update((one.subject, one.reason) for one in failures)
        first = f"its run failed: {failures[0].subject}: {failures[0].reason}" if failures else ""
        for month in months_of_tags(run.tags, lists):
            reasons.setdefault(str(month), first or "its run failed")
    return reasons
