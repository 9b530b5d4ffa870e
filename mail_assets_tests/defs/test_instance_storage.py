"""Dagster's own storage: the repository's dagster.yaml works with no server named, and with."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster_postgres import PostgresEventLogStorage

from mail_assets.defs.dagster_home import write_dagster_yaml
from mail_assets.postgres.cluster import Cluster
from mail_assets.postgres.database import embedded
from mail_assets_tests.conftest import REPOSITORY


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A MAIL_HOME whose Dagster home links to the repository's dagster.yaml."""
    for name in ("MAIL_PG_DSN", "DAGSTER_POSTGRES_URL", "MAIL_LISTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MAIL_HOME", str(tmp_path))
    dagster_home = tmp_path / "dagster"
    write_dagster_yaml(dagster_home)
    assert (dagster_home / "dagster.yaml").is_symlink()
    monkeypatch.setenv("DAGSTER_HOME", str(dagster_home))
    yield tmp_path
    if (tmp_path / "postgres").exists():
        embedded(tmp_path).remove()


@dg.asset
def thing() -> None:
    """Something to record."""


def record() -> str:
    """Record a materialization in the instance of DAGSTER_HOME; return its storage's URL."""
    with dg.DagsterInstance.get() as instance:
        storage = instance.event_log_storage
        assert isinstance(storage, PostgresEventLogStorage)
        instance.report_runless_asset_event(dg.AssetMaterialization("thing"))
        assert instance.get_latest_materialization_event(dg.AssetKey("thing"))
        return storage.postgres_url


@pytest.mark.slow
def test_with_no_server_named_the_embedded_one_keeps_the_runs(home: Path) -> None:
    url = record()
    assert url.startswith("postgresql+psycopg2://")
    assert embedded(home).running()
    assert record() == url


def test_a_server_that_is_named_wins(
    home: Path, cluster: Cluster, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = postgres_dsn.partition("?")[0].rpartition("/")[2]
    url = cluster.dsn(name, scheme="postgresql+psycopg2")
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url)
    assert record() == url
    assert not (home / "postgres").exists()


def test_a_mistake_in_the_lists_file_is_the_code_locations_error_only(
    home: Path, cluster: Cluster, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = home / "lists.toml"
    lists.write_text('[harbor]\nsource = "archives"\ndialect = "mbx"\n')
    name = postgres_dsn.partition("?")[0].rpartition("/")[2]
    url = cluster.dsn(name, scheme="postgresql+psycopg2")
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url)
    monkeypatch.setenv("MAIL_LISTS", str(lists))
    assert record() == url  # the webserver and the daemon open this storage when they start
    dagster = Path(sys.executable).parent / "dagster"
    loaded = subprocess.run(
        [dagster, "definitions", "validate"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert loaded.returncode == 1
    assert "Validation failed for code location mail_assets" in loaded.stdout
    assert f"MAIL_LISTS {lists} [harbor] dialect='mbx': " in loaded.stdout


def test_a_backfill_leaves_room_for_schedules_and_a_run_that_hangs_is_ended(
    home: Path, cluster: Cluster, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = postgres_dsn.partition("?")[0].rpartition("/")[2]
    url = cluster.dsn(name, scheme="postgresql+psycopg2")
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url)
    with dg.DagsterInstance.get() as instance:  # every key is one that Dagster knows
        runs = instance.get_concurrency_config().run_queue_config
        assert runs is not None
        assert runs.max_concurrent_runs == 3
        assert [*runs.tag_concurrency_limits] == [{"key": "dagster/backfill", "limit": 2}]
        assert instance.run_monitoring_max_runtime_seconds == 86400
        assert instance.run_retries_max_retries == 2
        assert not instance.run_retries_retry_on_asset_or_op_failure
        assert instance.event_log_storage.get_pool_limits() == []
