"""Fixtures of backfills: a world with an ephemeral instance, and a list of events."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Protocol

import dagster as dg
import pytest

from mail_assets.defs.backfill.plan import BackfillRequest, backfill_lists
from mail_assets.defs.backfill.report import Event, Report
from mail_assets_tests.defs.dagster_world import DagsterWorld, dagster_world
from mail_assets_tests.world import HARBOR, PIER


class Fill(Protocol):
    """Function that backfills the named lists, or both."""

    def __call__(self, *lists: str) -> Report: ...


@pytest.fixture
def world(
    tmp_path: Path, mail_dsn: str, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DagsterWorld]:
    """An empty world whose ephemeral instance replaces that of DAGSTER_HOME."""
    with dagster_world(tmp_path, mail_dsn, model_cache, monkeypatch) as made:
        use_instance(made, monkeypatch)
        yield made


def use_instance(world: DagsterWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the instance of DAGSTER_HOME by that of a world."""
    monkeypatch.setenv("DAGSTER_HOME", str(world.home / "dagster"))
    monkeypatch.setattr(dg.DagsterInstance, "get", lambda: nullcontext(world.instance))


@pytest.fixture
def events() -> list[Event]:
    """List of the events of all backfills."""
    return []


@pytest.fixture
def fill(world: DagsterWorld, events: list[Event]) -> Fill:
    def fill(*lists: str) -> Report:
        request = BackfillRequest(lists or (HARBOR, PIER))
        return backfill_lists(world.settings(), request, events.append)

    return fill
