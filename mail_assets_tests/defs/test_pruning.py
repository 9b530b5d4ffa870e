"""Pruning Dagster's history does not change the UI and backfills."""

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest

from mail_assets.defs import pruning
from mail_assets.defs.instance import write_dagster_yaml
from mail_assets.defs.pruning import (
    HistoryError,
    count_prunable_runs,
    delete_answers,
    prune_history,
)
from mail_assets.defs.runs import failed_months
from mail_assets.settings.settings import load_settings
from mail_assets_tests.databases import dagster_url

MONTHS = dg.StaticPartitionsDefinition(["harbor|2024-03", "harbor|2024-04"])
MARCH, APRIL = MONTHS.get_partition_keys()
NOW = dt.datetime.now(dt.UTC)
OLD = NOW - dt.timedelta(days=90)


class Config(dg.Config):
    """The asset fails if this is set."""

    fail: bool = False


@dg.asset(key_prefix="mail", partitions_def=MONTHS)
def vectors(context: dg.AssetExecutionContext, config: Config) -> dg.MaterializeResult[None]:
    """A month."""
    context.log.info("a line")
    if config.fail:
        raise dg.Failure("it cannot be made", allow_retries=False)
    return dg.MaterializeResult(metadata={"run": context.run.run_id})


@dg.asset_check(asset=vectors)
def fits(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """A check."""
    return dg.AssetCheckResult(passed=True)


@dg.asset(key_prefix="mail")
def search_quality() -> None:
    """An asset whose history is read."""


@pytest.fixture
def instance(
    tmp_path: Path, home_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    """An instance in PostgreSQL, as configured by dagster.yaml."""
    url = dagster_url(home_dsn)
    monkeypatch.setenv("MAIL_HOME", str(tmp_path))
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    write_dagster_yaml(tmp_path / "dagster")
    with dg.DagsterInstance.get() as instance:
        yield instance


def run(
    instance: dg.DagsterInstance, partition: str | None, *, days: int, fail: bool = False
) -> str:
    """Run the assets, and set the end of the run to `days` ago."""
    assets: Sequence[Any] = [vectors, fits] if partition else [search_quality]
    result = dg.materialize(
        assets,
        instance=instance,
        partition_key=partition,
        run_config={"ops": {"mail__vectors": {"config": {"fail": fail}}}} if partition else None,
        raise_on_error=False,
    )
    assert result.success is not fail
    with connect(instance) as connection:
        connection.execute(
            "update runs set end_time = %s, update_timestamp = to_timestamp(%s) at time zone 'UTC'"
            " where run_id = %s",
            2 * ((NOW - dt.timedelta(days=days)).timestamp(),) + (result.run_id,),
        )
        connection.execute(
            "update asset_check_executions set create_timestamp = create_timestamp - %s"
            " where run_id = %s",
            (dt.timedelta(days=days), result.run_id),
        )
    return result.run_id


def connect(instance: dg.DagsterInstance) -> psycopg.Connection:
    url: str = instance.event_log_storage.postgres_url  # type: ignore[attr-defined]
    return psycopg.connect(url.replace("+psycopg2", ""), autocommit=True)


def events(instance: dg.DagsterInstance, run_id: str) -> set[str]:
    with connect(instance) as connection:
        rows = connection.execute(
            "select coalesce(dagster_event_type, 'log') from event_logs where run_id = %s",
            (run_id,),
        ).fetchall()
    return {kind for (kind,) in rows}


def shown(instance: dg.DagsterInstance) -> dict[str, Any]:
    """Return the state of the months and of the check, as the UI and backfills see it."""
    key, check = vectors.key, dg.AssetCheckKey(vectors.key, "fits")
    storage = instance.event_log_storage
    latest = storage.get_latest_asset_check_execution_by_key([check]).get(check)
    materialized = instance.fetch_materializations(dg.AssetRecordsFilter(key), limit=100).records
    last: dict[str | None, Any] = {}
    for record in materialized:
        last.setdefault(record.partition_key, record.asset_materialization)
    failed = failed_months(instance, ["harbor"], NOW)
    return {
        "materialized": instance.get_materialized_partitions(key),
        "last": last,
        "status": instance.get_status_by_partition(key, [MARCH, APRIL], MONTHS),
        "check": latest and (latest.run_id, latest.status),
        "failed": {str(month): found.last_run for month, found in failed.items()},
    }


def kinds(found: Sequence[Any]) -> dict[str, int]:
    return {one.what: one.things for one in found}


def test_prune_keeps_the_last_of_each_partition_and_check(instance: dg.DagsterInstance) -> None:
    replaced = [run(instance, MARCH, days=300), run(instance, MARCH, days=200)]
    last_march = run(instance, MARCH, days=150)
    last_april = run(instance, APRIL, days=140)
    before = shown(instance)
    whole = events(instance, last_march)
    dry = prune_history(instance, OLD, dry_run=True)
    assert [events(instance, run_id) for run_id in replaced] == [whole, whole]
    assert prune_history(instance, OLD) == dry
    assert shown(instance) == before
    assert kinds(dry)["runs"] == 2
    assert kinds(dry)["evaluations of checks"] == 3
    assert all(size for _, _, size in dry)
    assert {record.dagster_run.run_id for record in instance.get_run_records()} == {
        last_march,
        last_april,
    }
    assert [events(instance, run_id) for run_id in replaced] == [set(), set()]
    left = events(instance, last_march)
    assert whole - left >= {"log", "STEP_OUTPUT", "ASSET_MATERIALIZATION_PLANNED"}
    assert left >= {"PIPELINE_START", "STEP_START", "STEP_SUCCESS", "ASSET_MATERIALIZATION"}
    assert "ASSET_CHECK_EVALUATION" not in left
    assert "ASSET_CHECK_EVALUATION" in events(instance, last_april)
    again = prune_history(instance, OLD)
    assert not any(one.things for one in again)


def test_prune_keeps_all_that_is_younger(instance: dg.DagsterInstance) -> None:
    run(instance, MARCH, days=89)
    run(instance, MARCH, days=10)
    run(instance, MARCH, days=0)
    assert not any(one.things for one in prune_history(instance, OLD))
    with pytest.raises(HistoryError, match="30 days"):
        prune_history(instance, NOW - dt.timedelta(days=29))


def test_prune_keeps_a_failed_run_until_its_month_is_made(instance: dg.DagsterInstance) -> None:
    run(instance, MARCH, days=400)
    still_failing = run(instance, MARCH, days=300, fail=True)
    mended = run(instance, APRIL, days=300, fail=True)
    run(instance, APRIL, days=200)
    before = shown(instance)
    assert before["status"][MARCH].value == "FAILED"
    assert kinds(prune_history(instance, OLD))["runs"] == 1
    assert shown(instance) == before
    assert instance.get_run_by_id(mended) is None
    kept = events(instance, still_failing)
    assert kept >= {"ASSET_MATERIALIZATION_PLANNED", "STEP_FAILURE", "PIPELINE_FAILURE"}
    run(instance, MARCH, days=100)
    assert kinds(prune_history(instance, OLD))["runs"] == 2, "the failed one, and the replaced"
    assert instance.get_run_by_id(still_failing) is None


def test_prune_keeps_all_of_search_quality(instance: dg.DagsterInstance) -> None:
    runs = {run(instance, None, days=days) for days in (300, 200, 100)}
    assert kinds(prune_history(instance, OLD))["runs"] == 0
    assert {record.dagster_run.run_id for record in instance.get_run_records()} == runs
    kept = instance.fetch_materializations(dg.AssetRecordsFilter(search_quality.key), limit=10)
    assert len(kept.records) == 3


def test_prune_continues_after_a_kill(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    for days in (300, 200, 100):
        run(instance, MARCH, days=days)
    before = shown(instance)

    def die(run_id: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(instance, "delete_run", die)
        with pytest.raises(KeyboardInterrupt):
            prune_history(instance, OLD)
    assert shown(instance) == before
    assert kinds(prune_history(instance, OLD))["runs"] == 2
    assert shown(instance) == before
    with connect(instance) as connection:
        orphans = connection.execute(
            "select count(*) from event_logs where run_id not in (select run_id from runs)"
        ).fetchone()
    assert orphans == (0,)


def test_prunable_runs_are_counted_up_to_a_limit(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 1)
    for days in (400, 300, 200, 100):
        run(instance, MARCH, days=days)
    assert count_prunable_runs(instance, OLD, 2) == 2
    assert count_prunable_runs(instance, OLD, 9) == 3


def test_prune_refuses_another_storage() -> None:
    with (
        dg.DagsterInstance.ephemeral() as instance,
        pytest.raises(HistoryError, match="only PostgreSQL can be pruned"),
    ):
        prune_history(instance, OLD)


def ask(instance: dg.DagsterInstance, *, days: int) -> str:
    """Run a job with the name test_queries, and set its end to `days` ago."""

    @dg.op
    def answer(context: dg.OpExecutionContext) -> None:
        context.add_output_metadata({"answer_1": "a mail"})

    @dg.job
    def test_queries() -> None:
        answer()

    result = test_queries.execute_in_process(instance=instance)
    with connect(instance) as connection:
        connection.execute(
            "update runs set end_time = %s where run_id = %s",
            ((NOW - dt.timedelta(days=days)).timestamp(), result.run_id),
        )
    return result.run_id


def test_prune_deletes_old_answers(instance: dg.DagsterInstance) -> None:
    old, new = ask(instance, days=100), ask(instance, days=80)
    assert kinds(prune_history(instance, OLD))["runs"] == 1
    assert [events(instance, run_id) == set() for run_id in (old, new)] == [True, False]


def test_answers_are_deleted_unless_their_run_is_active(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    settings = load_settings({"MAIL_HOME": str(tmp_path)})
    month = run(instance, MARCH, days=1)
    answers = [ask(instance, days=days) for days in (1, 100)]
    with connect(instance) as connection:
        connection.execute("update runs set status = 'STARTED' where run_id = %s", answers[:1])
    assert delete_answers(settings) == (1, 1)
    assert events(instance, answers[1]) == set()
    assert events(instance, answers[0])
    assert events(instance, month)


def test_prune_finds_no_answers_if_dagster_never_ran(tmp_path: Path) -> None:
    assert delete_answers(load_settings({"MAIL_HOME": str(tmp_path)})) == (0, 0)
    assert not (tmp_path / "dagster").exists()
