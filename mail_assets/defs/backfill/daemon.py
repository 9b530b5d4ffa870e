"""Launches backfills that Dagster's daemon runs, and waits for them if requested.

No month is run in this process. The daemon splits the months into runs of a year, by the backfill
policy of the assets. It tags each run with `dagster/backfill`, and the queue of dagster.yaml limits
that tag. The sensor `new_threads` builds the threads afterwards, as after any run of months.

This module uses private modules of Dagster (1.13.27), as Dagster's GraphQL server does; a test
covers it.
https://docs.dagster.io/guides/build/partitions-and-backfills/backfilling-data
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
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
from mail_assets.defs.backfill.report import Report
from mail_assets.defs.backfill.runs import AS_USUAL, StepOptions
from mail_assets.defs.definitions import build_defs
from mail_assets.defs.failures import read_failures
from mail_assets.defs.instance import open_instance
from mail_assets.defs.partitions import MONTHLY, asset_key
from mail_assets.defs.runs import months_of_tags
from mail_assets.errors import MailAssetsError
from mail_assets.month import ListMonth
from mail_assets.settings.settings import Settings

#: Seconds without a heartbeat after which a daemon is considered dead; the interval is 30 s.
_ALIVE = 300

#: Seconds between two queries of a backfill's status; the daemon updates it every few seconds.
PAUSE = 2.0


class LaunchError(MailAssetsError):
    """No Dagster daemon is running that could run a backfill."""


@dataclass(frozen=True)
class Launched:
    """The backfills that the daemon runs, one per list, and the report of their plan.

    `backfills` maps the id of each to its months; it is empty if no month needs a run.
    """

    backfills: Mapping[str, Sequence[ListMonth]]
    report: Report

    @property
    def months(self) -> Sequence[ListMonth]:
        """The months of all backfills."""
        return [month for months in self.backfills.values() for month in months]


def launch_lists(settings: Settings, request: BackfillRequest) -> Launched:
    """Launch backfills of those months of some lists that need a run.

    A list whose source cannot be listed is in `report.failed`.

    Raises:
        LaunchError: no daemon is running.
    """
    report = Report()
    report.expect(MONTHLY)
    with open_instance(settings) as instance:
        heartbeat = instance.get_daemon_heartbeats().get("BACKFILL")
        if heartbeat is None or time.time() - heartbeat.timestamp > _ALIVE:
            raise LaunchError(
                "no Dagster daemon runs on this instance; the backfill needs one: "
                "start `dagster-daemon run` (`make dev` does), or leave out --launch"
            )
        ranges = plan_ranges(settings, instance, request, report)
        months = sorted(month for one in ranges for month in one.months)
        backfills = {}
        if months:
            defs = build_defs(settings)
            # one backfill per list, or Dagster would put several lists with few months into a run
            for _, of_list in groupby(months, key=lambda month: month.list_name):
                wanted = [*of_list]
                backfills[launch_months(instance, defs, wanted, request.options)] = wanted
    return Launched(backfills, report)


def wait_for_backfill(settings: Settings, launched: Launched) -> None:
    """Wait until all backfills have ended, and add their done and failed months to the report.

    Ctrl-C ends the waiting: `report.interrupted` is set, and the daemon continues.
    """
    report = launched.report
    with open_instance(settings) as instance:
        ends: dict[str, str] = {}
        try:
            for backfill_id in launched.backfills:
                while not (over := _find_end(instance, backfill_id)):
                    sleep(PAUSE)
                ends[backfill_id] = over
        except KeyboardInterrupt:
            report.interrupted = True
            return
        for backfill_id, over in ends.items():
            if over != _ENDED:
                report.failed[f"backfill {backfill_id}"] = over
        done = {*find_materialized(settings, instance, launched.months, MONTHLY)}
        reasons = _read_reasons(instance, [*launched.backfills], [*settings.lists])
    for month in launched.months:
        if str(month) in reasons:
            report.failed[str(month)] = reasons[str(month)]
        elif month in done:
            report.done.append(month)
        else:
            report.failed[str(month)] = "it was not run"


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
    for asset in map(asset_key, MONTHLY):
        partitions = graph.get(asset).partitions_def
        assert partitions, f"{asset} has no months"
        subsets[asset] = partitions.subset_with_partition_keys(keys)
    backfill: PartitionBackfill = PartitionBackfill.from_asset_graph_subset(
        backfill_id=make_new_backfill_id(),
        backfill_timestamp=time.time(),
        tags={},
        dynamic_partitions_store=instance,
        # both fields have defaults, but mypy does not see them because of the class decorator
        asset_graph_subset=AssetGraphSubset(subsets, set()),  # type: ignore[call-arg]
        title="mail-assets backfill --launch",
        description=None,
        run_config=options.configure(MONTHLY),
    )
    instance.add_backfill(backfill)
    return backfill.backfill_id


#: Result of _find_end for a backfill whose runs have all ended, successfully or not.
_ENDED = "it has ended"


def _find_end(instance: dg.DagsterInstance, backfill_id: str) -> str:
    """Return _ENDED, or the reason why a backfill was stopped; "" while it is running."""
    backfill = instance.get_backfill(backfill_id)
    if backfill is None:
        return "it was deleted"
    if backfill.status == BulkActionStatus.CANCELED:
        return "it was canceled"
    if backfill.status == BulkActionStatus.FAILED:
        return backfill.error.message.strip() if backfill.error else "the daemon gave it up"
    return _ENDED if backfill.status in BULK_ACTION_TERMINAL_STATUSES else ""


def _read_reasons(
    instance: dg.DagsterInstance, backfills: Sequence[str], lists: Sequence[str]
) -> dict[str, str]:
    """Return month -> reason; if failures of a run name no month, all its months have failed."""
    reasons: dict[str, str] = {}
    failed = dg.RunsFilter(
        tags={BACKFILL_ID_TAG: backfills}, statuses=[dg.DagsterRunStatus.FAILURE]
    )
    for run in instance.get_runs(failed):
        failures = read_failures(instance, run.run_id)
        months = {str(month) for month in months_of_tags(run.tags, lists)}
        named = {one.subject: one.reason for one in failures if one.subject in months}
        if len(named) < len(failures) or not failures:
            other = next((one for one in failures if one.subject not in months), None)
            why = f"its run failed: {other.subject}: {other.reason}" if other else "its run failed"
            reasons |= dict.fromkeys(months, why)
        reasons |= named
    return reasons
