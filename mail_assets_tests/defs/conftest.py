"""Fixtures of Dagster's tests: a world with definitions, and ticks of its sensor."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from mail_assets_tests.defs.dagster_world import DagsterWorld, dagster_world
from mail_assets_tests.defs.sensor_tick import Tick


@pytest.fixture
def world(
    tmp_path: Path, mail_dsn: str, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DagsterWorld]:
    """An empty world with an ephemeral instance."""
    with dagster_world(tmp_path, mail_dsn, model_cache, monkeypatch) as made:
        yield made


@pytest.fixture
def instance(world: DagsterWorld) -> dg.DagsterInstance:
    return world.instance


@pytest.fixture
def tick(world: DagsterWorld, instance: dg.DagsterInstance) -> Tick:
    """Function that ticks the sensor for archives."""
    return Tick(world, instance)
