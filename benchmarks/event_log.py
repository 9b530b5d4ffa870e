"""Measure how fast the pages of the UI are with 2,400 list-months filled.

    python -m benchmarks.event_log [--lists 8] [--months 300] [--screenshots FOLDER]

Fills the event log of a home of its own through Dagster's storage as the runs of a backfill do: a
run a list and year, each month planned and materialized in every asset. Then the webserver is
started, and each page asked for: the requests that it sends to GraphQL, and the page in Chromium,
if there is one. What does not live here: what filling months costs (list_months.py).
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import httpx
from dagster import DagsterEvent, EventLogEntry
from dagster._core.events import AssetMaterializationPlannedData, StepMaterializationData
from dagster._core.execution.backfill import BulkActionStatus

from benchmarks.list_months import write_archives
from benchmarks.ui import UI, list_pages, measure_pages, run_webserver
from mail_assets.defs.backfill.daemon import launch_months
from mail_assets.defs.backfill.report import (
    CHAIN,
    STATE_COUNTS,
    WORK_COUNTS,
    MonthRange,
    calendar_year_ranges,
)
from mail_assets.defs.definitions import build_defs
from mail_assets.defs.instance import use_dagster_home
from mail_assets.defs.partitions import asset_key, list_months
from mail_assets.month import ListMonth
from mail_assets.postgres.database import embedded
from mail_assets.settings.settings import load_settings
from mail_assets_tests.web.chromium import CHROMIUM

_HEALTH = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  partitionKeysByDimension { name partitionKeys }
  assetPartitionStatuses { __typename ... on MultiPartitionStatuses { ranges {
    primaryDimStartKey primaryDimEndKey secondaryDim { ... on TimePartitionStatuses {
      ranges { startKey endKey status } } ... on DefaultPartitionStatuses {
      materializedPartitions failedPartitions } } } } } } } }"""

_GRAPH = """query($keys: [AssetKeyInput!]) { assetNodes(assetKeys: $keys) {
  id opNames staleStatus partitionStats { numMaterialized numMaterializing numPartitions numFailed }
  assetMaterializations(limit: 1) { timestamp runId }
  freshnessStatusInfo { freshnessStatus } assetChecksOrError { ... on AssetChecks { checks {
    name executionForLatestMaterialization { status timestamp } } } } } }"""

_BACKFILLS = """{ partitionBackfillsOrError(limit: 10) { ... on PartitionBackfills { results {
  id status numPartitions partitionSetName assetSelection { path } runs(limit: 1) { id }
  hasCancelPermission partitionStatusCounts { runStatus count } } } } }"""

_EVENTS = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  assetMaterializations(limit: 100) { partition timestamp runId metadataEntries { label } } } } }"""


def main() -> None:
    """Fill the event log, start the webserver, and print how long each page takes."""
    parser = argparse.ArgumentParser(description="Measure the UI with many list-months.")
    parser.add_argument("--lists", type=int, default=8)
    parser.add_argument("--months", type=int, default=300)
    parser.add_argument("--screenshots", type=Path, help="a folder for a picture of each page")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        names = [f"list{number}" for number in range(arguments.lists)]
        write_archives(home, names, arguments.months, messages=0)
        os.environ |= {"MAIL_HOME": str(home), "MAIL_LISTS": str(home / "lists.toml")}
        settings = load_settings()
        use_dagster_home(settings)
        defs = build_defs(settings)
        partitions = list_months(tuple(settings.lists), settings.first_month, settings.last_month)
        months = [ListMonth.parse(key) for key in partitions.get_partition_keys()]
        with dg.DagsterInstance.get() as instance:
            began = time.monotonic()
            events = sum(fill_range(instance, one) for one in calendar_year_ranges(months))
            print(f"{len(months)} list-months, {events} events in {time.monotonic() - began:.1f} s")
            began = time.monotonic()
            backfill = launch_months(instance, defs, months)
            print(f"a backfill of all of them launched in {time.monotonic() - began:.1f} s")
            end_backfill(instance, backfill)
        with run_webserver():
            measure_requests()
            if CHROMIUM:
                measure_pages(list_pages(backfill, max(settings.lists)), arguments.screenshots)
        embedded(home).stop()


def end_backfill(instance: dg.DagsterInstance, backfill: str) -> None:
    """Record that a backfill has ended: no daemon makes it, and pages would wait for it."""
    launched = instance.get_backfill(backfill)
    assert launched
    ended = launched.with_status(BulkActionStatus.COMPLETED_SUCCESS)  # type: ignore[no-untyped-call]
    instance.update_backfill(ended)


def fill_range(instance: dg.DagsterInstance, one: MonthRange) -> int:
    """Record a successful run of a range; return its number of events."""
    run = dg.DagsterRun(
        job_name="__ASSET_JOB",
        status=dg.DagsterRunStatus.SUCCESS,
        tags={
            "dagster/asset_partition_range_start": one.first.key,
            "dagster/asset_partition_range_end": one.last.key,
        },
    )
    instance.add_run(run)
    for asset in CHAIN:
        for kind in ("ASSET_MATERIALIZATION_PLANNED", "ASSET_MATERIALIZATION"):
            events = [_event(run.run_id, asset, month, kind) for month in one.months]
            instance.event_log_storage.store_event_batch(events)
    return 2 * len(CHAIN) * len(one.months)


def _event(run_id: str, asset: str, month: ListMonth, kind: str) -> EventLogEntry:
    key = asset_key(asset)
    names = (*STATE_COUNTS[asset], *WORK_COUNTS[asset], "seconds", "dagster/partition_row_count")
    data: Any = AssetMaterializationPlannedData(key, partition=month.key)
    if kind == "ASSET_MATERIALIZATION":
        materialization = dg.AssetMaterialization(
            key,
            partition=month.key,
            metadata={**dict.fromkeys(names, 412), "sample": dg.MetadataValue.md("| row |\n" * 12)},
            tags={"dagster/data_version": month.key, "dagster/code_version": "1"},
        )
        data = StepMaterializationData(materialization, [])
    step = key.to_python_identifier()
    event = DagsterEvent(kind, "__ASSET_JOB", step_key=step, event_specific_data=data)
    return EventLogEntry(  # type: ignore[no-untyped-call]
        None, 20, "", run_id, time.time(), step, "__ASSET_JOB", event
    )


def measure_requests() -> None:
    """Ask what the pages ask, three times each, and print the seconds."""
    key = {"path": [*asset_key("messages").path]}
    keys = [{"path": [*asset_key(asset).path]} for asset in (*CHAIN, "threads")]
    for what, query, variables in (
        ("graph: state of all assets", _GRAPH, {"keys": keys}),
        ("partitions of an asset", _HEALTH, {"key": key}),
        ("newest 100 events of an asset", _EVENTS, {"key": key}),
        ("backfills", _BACKFILLS, {}),
    ):
        print(f"{what}: {', '.join(f'{x:.2f}' for x in _ask(query, variables))} s", flush=True)


def _ask(query: str, variables: Mapping[str, object]) -> Sequence[float]:
    seconds = []
    for _ in range(3):
        began = time.monotonic()
        body = {"query": query, "variables": variables}
        answer = httpx.post(f"{UI}/graphql", json=body, timeout=300).json()
        seconds.append(time.monotonic() - began)
        if "errors" in answer:
            raise SystemExit(json.dumps(answer["errors"])[:2000])
    return seconds


if __name__ == "__main__":
    main()
