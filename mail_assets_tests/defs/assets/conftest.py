"""What the tests of the assets may ask for: a world of definitions, run by Dagster."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mail_assets_tests.defs.dagster_world import DagsterWorld, dagster_world


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the model is prepared, once."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def world(
    tmp_path: Path, postgres_dsn: str, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DagsterWorld]:
    """An empty world with an ephemeral instance."""
    with dagster_world(tmp_path, postgres_dsn, model_cache, monkeypatch) as made:
        yield made
