"""deploy/celery/dagster.yaml configures an instance that sends whole runs to workers."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.run_coordinator import QueuedRunCoordinator

from benchmarks.deployment import read_services
from mail_assets.defs.celery_launcher import MailCeleryLauncher
from mail_assets.postgres.embedded import Cluster
from mail_assets_tests.conftest import REPOSITORY

PROFILE = REPOSITORY / "deploy" / "celery"
ONE_MACHINE = REPOSITORY / "dagster.yaml"


@pytest.fixture
def instance(
    cluster: Cluster, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    """The instance of a part of compose.yaml, on a database of the tests."""
    environ = {"MAIL_WORKERS": "5"}
    part = read_services(REPOSITORY / "compose.yaml", environ)["daemon"]
    database = postgres_dsn.partition("?")[0].rpartition("/")[2]
    storage = cluster.dsn(database, scheme="postgresql+psycopg2")
    for name, value in {**part.environment, "DAGSTER_POSTGRES_URL": storage}.items():
        monkeypatch.setenv(name, value)
    with dg.DagsterInstance.from_config(str(PROFILE)) as opened:
        yield opened


def test_active_runs_are_as_many_as_workers(instance: dg.DagsterInstance) -> None:
    coordinator = instance.run_coordinator
    assert isinstance(coordinator, QueuedRunCoordinator)
    assert coordinator.get_run_queue_config().max_concurrent_runs == 5
    queue = instance.get_concurrency_config().run_queue_config
    assert queue is not None
    assert queue.max_concurrent_runs == 5
    assert instance.event_log_storage.get_pool_limits() == []


def test_runs_go_to_celery_and_are_retried(instance: dg.DagsterInstance) -> None:
    assert isinstance(instance.run_launcher, MailCeleryLauncher)
    assert instance.run_launcher.broker == "redis://redis:6379/0"
    assert instance.run_monitoring_enabled
    assert instance.run_monitoring_max_runtime_seconds == 86400
    assert instance.run_retries_max_retries == 3
    assert not instance.run_retries_retry_on_asset_or_op_failure


def test_celery_yaml_differs_only_in_what_concerns_machines() -> None:
    ours, profile = (
        yaml.safe_load(Path(path).read_text()) for path in (ONE_MACHINE, PROFILE / "dagster.yaml")
    )
    differing = {key for key in {*ours, *profile} if ours.get(key) != profile.get(key)}
    assert differing == {
        *("run_coordinator", "concurrency", "run_launcher", "run_monitoring", "run_retries"),
        "compute_logs",
    }
