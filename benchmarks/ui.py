"""Measure the loading times of the pages of Dagster's UI in a browser.

    python -m benchmarks.list_months --lists 8 --months 300 --messages 10 --home HOME
    python -m benchmarks.ui HOME [--screenshots FOLDER]

HOME is a home that list_months.py has filled, or another one, whose lists MAIL_LISTS names. The
program starts the webserver and the daemon, lets the daemon run a backfill of three list-months,
and opens each page twice in Chromium without a window. A page is loaded when its main content is
shown and nothing else is loading.
"""

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import dagster as dg
import httpx

from mail_assets.defs.backfill.daemon import Launched, launch_months, wait_for_backfill
from mail_assets.defs.backfill.report import Report
from mail_assets.defs.definitions import build_defs
from mail_assets.defs.instance import use_dagster_home
from mail_assets.defs.partitions import asset_key, list_months
from mail_assets.month import ListMonth
from mail_assets.postgres.database import embedded
from mail_assets.settings.settings import load_settings
from mail_assets_tests.web.chromium import Chromium, browsing

PORT = 43_117
UI = f"http://127.0.0.1:{PORT}"
SIZE = {"width": 1600, "height": 1100, "deviceScaleFactor": 1, "mobile": False}

COUNT_REQUESTS = """const send = window.fetch; window.asked = 0; window.fetch = (...request) => {
  window.asked += 1; return send(...request).finally(() => { window.asked -= 1 }) }"""
#: The seconds from navigation until the page is complete and stays so for half a second; 0 if it is
#: not complete after two minutes.
WAIT = """new Promise(resolve => { let shown = 0; const look = () => {
  const now = performance.now(), text = document.body.innerText
  const loading = document.querySelector('[class*=Skeleton_], [class*=Spinner_]')
  if (window.asked || loading || !%s.every(one => text.includes(one))) shown = 0
  else shown ||= now
  if (shown && now - shown > 500) resolve(shown / 1000)
  else if (now > 120000) resolve(0)
  else setTimeout(look, 50) }; look() })"""


class Page(NamedTuple):
    """A page, and texts of its main content."""

    name: str
    path: str
    texts: Sequence[str]


def main() -> None:
    """Start Dagster, run a backfill, measure each page, stop Dagster."""
    parser = argparse.ArgumentParser(description="Measure the UI on a filled home.")
    parser.add_argument("home", type=Path, help="a home of list_months.py")
    parser.add_argument("--screenshots", type=Path, help="a folder for a picture of each page")
    arguments = parser.parse_args()
    home = arguments.home.resolve()
    os.environ |= {"MAIL_HOME": str(home), "MAIL_PRECISION": "static"}
    os.environ.setdefault("MAIL_LISTS", str(home / "lists.toml"))
    settings = load_settings()
    use_dagster_home(settings)
    with started("dagster-daemon", "run"), run_webserver():
        pages = list_pages(make_backfill(), min(settings.lists))
        measure_pages(pages, arguments.screenshots)
    embedded(home).stop()


def list_pages(backfill: str, name: str) -> list[Page]:
    """Return the pages that people open most, with texts of their main content.

    `name` is the list of the backfill.
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
    """Let the daemon run a backfill of three list-months; wait for it, and return its id."""
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
def run_webserver() -> Iterator[None]:
    """Run the webserver while the block runs; the block starts when the server answers."""
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
    """Run a program of Dagster with our definitions while the block runs."""
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
    """Open each page twice; print its loading times."""
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
    """Open a page; return its loading time as text."""
    browser.visit(f"{UI}{page.path}")
    wait = WAIT % json.dumps([*page.texts])
    shown = browser.ask("Runtime.evaluate", expression=wait, awaitPromise=True)["result"]["value"]
    return f"{shown:.1f} s" if shown else "NOT shown"


if __name__ == "__main__":
    main()
