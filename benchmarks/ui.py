"""Measure how long the pages of Dagster's UI take in a browser until they show what they are for.

    python -m benchmarks.list_months --lists 8 --months 300 --messages 10 --home HOME
    python -m benchmarks.ui HOME [--screenshots FOLDER]
    python -m benchmarks.ui [--lists 8] [--months 300] [--screenshots FOLDER]

Starts the webserver and the daemon on a home that list_months.py has filled (or another, whose
lists MAIL_LISTS names), has the daemon make a backfill of three list-months, and opens each page
twice in Chromium without a window: the seconds from the address to what a reader came for, when
nothing is loading any more.

Without HOME the event log of a home of its own is written in a minute through Dagster's storage, as
the runs of a backfill write it: a run a list and year, each month planned and materialized in every
asset. Then each page is asked for: the requests that it sends to GraphQL, and the page in Chromium,
if there is one. What filling months costs: list_months.py; pages of mail: serving.py.
"""

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
import httpx
from dagster import DagsterEvent, EventLogEntry
from dagster._core.events import AssetMaterializationPlannedData, StepMaterializationData
from dagster._core.execution.backfill import BulkActionStatus

from benchmarks.list_months import write_archives
from mail_assets.defs.backfill.daemon import Launched, launch_months, wait_for_backfill
from mail_assets.defs.backfill.report import (
    STATE_COUNTS,
    WORK_COUNTS,
    MonthRange,
    Report,
    calendar_year_ranges,
)
from mail_assets.defs.definitions import build_defs
from mail_assets.defs.instance import use_dagster_home
from mail_assets.defs.partitions import MONTHLY, asset_key, list_months
from mail_assets.month import ListMonth
from mail_assets.postgres.database import embedded
from mail_assets.settings.settings import load_settings
from mail_assets_tests.web.chromium import CHROMIUM, Chromium, browsing

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


def measure_invented(arguments: argparse.Namespace) -> None:
    """Write an event log, start the webserver, and print how long each page takes."""
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
    for asset in MONTHLY:
        for kind in ("ASSET_MATERIALIZATION_PLANNED", "ASSET_MATERIALIZATION"):
            events = [_event(run.run_id, asset, month, kind) for month in one.months]
            instance.event_log_storage.store_event_batch(events)
    return 2 * len(MONTHLY) * len(one.months)


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
    keys = [{"path": [*asset_key(asset).path]} for asset in (*MONTHLY, "threads")]
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


PORT = 43_117
UI = f"http://127.0.0.1:{PORT}"
SIZE = {"width": 1600, "height": 1100, "deviceScaleFactor": 1, "mobile": False}

COUNT_REQUESTS = """const send = window.fetch; window.asked = 0; window.fetch = (...request) => {
  window.asked += 1; return send(...request).finally(() => { window.asked -= 1 }) }"""
#: The seconds since the address was given until nothing is missing for half a second; 0 where
#: something is after two minutes.
WAIT = """new Promise(resolve => { let shown = 0; const look = () => {
  const now = performance.now(), text = document.body.innerText
  const loading = document.querySelector('[class*=Skeleton_], [class*=Spinner_]')
  if (window.asked || loading || !%s.every(one => text.includes(one))) shown = 0
  else shown ||= now
  if (shown && now - shown > 500) resolve(shown / 1000)
  else if (now > 120000) resolve(0)
  else setTimeout(look, 50) }; look() })"""


class Page(NamedTuple):
    """A page, and texts that stand on it once it shows what it is for."""

    name: str
    path: str
    texts: Sequence[str]


def main() -> None:
    """Start, make a backfill, open each page, stop."""
    parser = argparse.ArgumentParser(description="Measure the UI on a home that is filled.")
    parser.add_argument("home", type=Path, nargs="?", help="a home of list_months.py")
    parser.add_argument("--lists", type=int, default=8, help="of an invented event log")
    parser.add_argument("--months", type=int, default=300, help="of an invented event log")
    parser.add_argument("--screenshots", type=Path, help="a folder for a picture of each page")
    arguments = parser.parse_args()
    if arguments.home is None:
        measure_invented(arguments)
        return
    home = arguments.home.resolve()
    os.environ |= {"MAIL_HOME": str(home), "MAIL_PRECISION": "static"}
    os.environ.setdefault("MAIL_LISTS", str(home / "lists.toml"))
    settings = load_settings()
    use_dagster_home(settings)
    with run_daemon(), run_webserver():
        pages = list_pages(make_backfill(), min(settings.lists))
        measure_pages(pages, arguments.screenshots)
    embedded(home).stop()


def list_pages(backfill: str, name: str) -> list[Page]:
    """Return the pages that people open most, each with texts of what it is opened for.

    `name` is the list that the backfill is of.
    """
    messages = f"/assets/{'/'.join(asset_key('messages').path)}"
    return [
        Page("graph of all assets", "/asset-groups", ["mbox_archives", "thread_summaries"]),
        Page("catalog", "/assets", ["mail / mbox_archives", "partitions"]),
        Page("asset", f"{messages}?view=overview", ["Latest materialization", "stored"]),
        Page("partitions of an asset", f"{messages}?view=partitions", [name, "Materialized ("]),
        Page("events of an asset", f"{messages}?view=events", ["Metadata", f"{name}|"]),
        Page("backfills", "/runs?view=backfills", [backfill]),
        Page("backfill", f"/runs/b/{backfill}?tab=overview", [backfill]),
        Page("runs", "/runs", ["Success"]),
    ]


def make_backfill() -> str:
    """Have the daemon make a backfill of three list-months; return its id when it has ended."""
    settings = load_settings()
    defs = build_defs(settings)
    months = list_months(tuple(settings.lists), settings.first_month, settings.last_month)
    first = [ListMonth.parse(key) for key in months.get_partition_keys()[:3]]
    with dg.DagsterInstance.get() as instance:
        backfill = launch_months(instance, defs, first)
    began = time.monotonic()
    wait_for_backfill(settings, Launched({backfill: first}, Report()))
    print(f"a backfill of 3 list-months: {time.monotonic() - began:.0f} s", flush=True)
    return backfill


@contextmanager
def run_daemon() -> Iterator[None]:
    """Run Dagster's daemon until the block ends."""
    with started("dagster-daemon", "run"):
        yield


@contextmanager
def run_webserver() -> Iterator[None]:
    """Run the webserver until the block ends, which begins when it answers."""
    began = time.monotonic()
    with started("dagster-webserver", "-p", str(PORT)) as server:
        while server.poll() is None:
            try:
                httpx.get(f"{UI}/server_info", timeout=5).raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.5)
        print(f"webserver up in {time.monotonic() - began:.1f} s", flush=True)
        yield


@contextmanager
def started(program: str, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program of Dagster with our definitions until the block ends."""
    command = [
        str(Path(sys.executable).parent / program),
        *options,
        "-m",
        "mail_assets.definitions",
    ]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
        try:
            yield process
        finally:
            process.terminate()


def measure_pages(pages: Sequence[Page], screenshots: Path | None = None) -> None:
    """Open each page twice, and print the seconds until it shows what it is for."""
    with tempfile.TemporaryDirectory() as profile, browsing(Path(profile)) as browser:
        browser.ask("Emulation.setDeviceMetricsOverride", **SIZE)
        browser.ask("Page.addScriptToEvaluateOnNewDocument", source=COUNT_REQUESTS)
        for page in pages:
            first, again = open_page(browser, page), open_page(browser, page)
            print(f"{page.name}: {first}, again {again}", flush=True)
            if screenshots:
                screenshots.mkdir(parents=True, exist_ok=True)
                picture = browser.ask("Page.captureScreenshot")["data"]
                name = f"{page.name.replace(' ', '-')}.png"
                (screenshots / name).write_bytes(base64.b64decode(picture))


def open_page(browser: Chromium, page: Page) -> str:
    """Return the seconds from the address to a page that shows its texts and waits for nothing."""
    browser.visit(f"{UI}{page.path}")
    wait = WAIT % json.dumps([*page.texts])
    shown = browser.ask("Runtime.evaluate", expression=wait, awaitPromise=True)["result"]["value"]
    return f"{shown:.1f} s" if shown else "NOT shown"


if __name__ == "__main__":
    main()
