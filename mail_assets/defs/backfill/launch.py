"""Backfills handed to Dagster's daemon, which has its workers make them: the UI's own backfills.

Nothing here runs a month. The daemon cuts the months into runs of a year by the assets' backfill
policy and tags each with `dagster/backfill`, which the queue of dagster.yaml knows.
It relies on private modules of Dagster (1.13.27), as its GraphQL server does; a test covers it.
https://docs.dagster.io/guides/build/partitions-and-backfills/backfilling-data
"""

import time
from collections.abc import Sequence
from typing import Any

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset
from dagster._core.execution.backfill import PartitionBackfill
from dagster._core.utils import make_new_backfill_id

from mail_assets.defs.partitions import asset_key
from mail_assets.month import ListMonth

#: Seconds since the daemon has shown itself last, which it does every 30.
_ALIVE = 300


class LaunchError(RuntimeError):
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
