"""Fixtures of Dagster's tests: a world with definitions, and its instance."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from mail_assets_tests.defs.dagster_world import DagsterWorld, dagster_world


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
