"""Runs: months in flight, failed months and retries, killed processes, and the run log."""

import datetime as dt
import logging
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.events import StepMaterializationData

from mail_assets.defs.partitions import asset_key
from mail_assets.defs.runs import (
    MEMORY,
    PROCESS,
    Failures,
    LogLine,
    MonthFinished,
    build_run_logger,
    cancel_abandoned,
    failed_months,
    log_month,
    months_in_flight,
    months_of_tags,
)
from mail_assets.month import ListMonth
from mail_assets.processes.machine import name_process
from mail_assets_tests.defs.dagster_world import range_tags
from mail_assets_tests.processes.test_machine import child, ended_process

LISTS = ("harbor", "pier", "quay")
NOW = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def partition(key: str) -> dict[str, str]:
    return {"dagster/partition": key}


def add(
    instance: dg.DagsterInstance,
    status: dg.DagsterRunStatus,
    tags: Mapping[str, str],
    job: str = "refresh_archives",
    assets: Collection[str] = (),
) -> str:
    """Record an ended run of the given assets, or of all."""
    ends = {
        dg.DagsterRunStatus.FAILURE: dg.DagsterEventType.RUN_FAILURE,
        dg.DagsterRunStatus.SUCCESS: dg.DagsterEventType.RUN_SUCCESS,
        dg.DagsterRunStatus.CANCELED: dg.DagsterEventType.RUN_CANCELED,
    }
    selection = {*map(asset_key, assets)} or None
    run = instance.add_run(dg.DagsterRun(job_name=job, tags=dict(tags), asset_selection=selection))
    start(instance, run)
    if status == SUCCEEDED:
        make(instance, run)
    instance.report_dagster_event(dg.DagsterEvent(ends[status].value, job), run.run_id)
    return run.run_id


def start(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    event = dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, run.job_name)
    instance.report_dagster_event(event, run.run_id)


def make(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Record that a run has materialized its months."""
    for month in months_of_tags(run.tags, LISTS):
        for asset in run.asset_selection or {asset_key("vectors")}:
            made = dg.AssetMaterialization(asset, partition=month.key)
            data = StepMaterializationData(made)
            kind = dg.DagsterEventType.ASSET_MATERIALIZATION.value
            event = dg.DagsterEvent(kind, run.job_name, event_specific_data=data)
            instance.report_dagster_event(event, run.run_id)


FAILED, SUCCEEDED = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS
MARCH = partition("harbor|2024-03")


def failed(
    instance: dg.DagsterInstance,
    later: dt.timedelta = dt.timedelta(),
) -> dict[str, int]:
    """Return the number of failed runs by month."""
    now = dt.datetime.now(dt.UTC) + later
    found = failed_months(instance, LISTS, now)
    return {str(month): failures.runs for month, failures in found.items()}


def test_failures_are_counted_for_each_month(instance: dg.DagsterInstance) -> None:
    began = dt.datetime.now(dt.UTC)
    for key in ("harbor|2024-03", "pier|2024-04", "harbor|2024-03"):
        last = add(instance, FAILED, partition(key))
    assert failed(instance) == {"harbor 2024-03": 2, "pier 2024-04": 1}
    now = dt.datetime.now(dt.UTC)
    months = failed_months(instance, LISTS, now)
    failures = months[ListMonth("harbor", "2024-03")]
    assert failures.last_run == last
    rounding = dt.timedelta(milliseconds=1)
    assert began - rounding <= failures.ended <= now + rounding


@pytest.mark.parametrize("job", ["refresh_archives", "__ASSET_JOB"])
@pytest.mark.parametrize("tags", [
    MARCH,
    range_tags("harbor|2024-03", "harbor|2024-03"),
    range_tags("harbor|2023-11", "harbor|2024-10"),
    range_tags("harbor|2024-02", "pier|2024-03"),
], ids=["month", "range of one", "year", "rectangle"])  # fmt: skip
def test_success_of_any_run_ends_the_failures_before_it(
    instance: dg.DagsterInstance, job: str, tags: dict[str, str]
) -> None:
    add(instance, FAILED, MARCH)
    add(instance, SUCCEEDED, tags, job)
    assert failed(instance) == {}
    add(instance, FAILED, MARCH)
    assert failed(instance) == {"harbor 2024-03": 1}


@pytest.mark.parametrize(
    ("assets", "later", "still"),
    [
        (["messages", "words"], ["messages", "words"], {}),
        (["messages", "words"], ["messages"], {"harbor 2024-03": 1}),
        (["vectors"], ["mbox_archives", "messages"], {"harbor 2024-03": 1}),
    ],
)
def test_run_has_failed_until_its_last_asset_is_made(
    instance: dg.DagsterInstance, assets: list[str], later: list[str], still: dict[str, int]
) -> None:
    add(instance, FAILED, MARCH, "__ASSET_JOB", assets)
    add(instance, SUCCEEDED, MARCH, "__ASSET_JOB", later)
    assert failed(instance) == still


def test_asset_made_by_the_failed_run_is_no_success(instance: dg.DagsterInstance) -> None:
    run = instance.add_run(dg.DagsterRun(job_name="refresh_archives", tags=MARCH))
    start(instance, run)
    make(instance, run)
    instance.report_run_failed(run)
    assert failed(instance) == {"harbor 2024-03": 1}


def test_killed_run_does_not_count_after_a_success(instance: dg.DagsterInstance) -> None:
    killed = instance.add_run(
        dg.DagsterRun(job_name="any", status=dg.DagsterRunStatus.STARTED, tags=MARCH)
    )
    start(instance, killed)
    add(instance, SUCCEEDED, MARCH)
    instance.report_run_failed(killed)
    assert failed(instance) == {}


def test_runs_without_months_and_canceled_ones_are_no_failures(
    instance: dg.DagsterInstance,
) -> None:
    add(instance, FAILED, {})
    add(instance, dg.DagsterRunStatus.CANCELED, MARCH)
    assert failed(instance) == {}


@pytest.mark.parametrize("status", [FAILED, dg.DagsterRunStatus.STARTED])
@pytest.mark.parametrize(
    "tags",
    [
        partition("2024-03-01"),
        partition("harbor|2024-03-01"),
        range_tags("2024-03-01", "2024-03-31"),
        range_tags("a", "z"),
        partition("gone|2024-03"),
        range_tags("gone|2024-03", "gone|2024-04"),
    ],
)
def test_runs_of_other_projects_have_no_months(
    instance: dg.DagsterInstance, status: dg.DagsterRunStatus, tags: dict[str, str]
) -> None:
    instance.add_run(dg.DagsterRun(job_name="any", status=status, tags=tags))
    assert failed(instance) == {}
    assert months_in_flight(instance, LISTS) == set()


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({"harbor|2024-02": "it is broken"}, {"harbor 2024-02": 1}),
        ({"elsewhere|2024-02": "it is broken"}, {"harbor 2024-02": 1, "harbor 2024-03": 1}),
        ({}, {"harbor 2024-02": 1, "harbor 2024-03": 1}),
    ],
)
def test_failed_range_counts_for_the_months_it_names(
    instance: dg.DagsterInstance, named: dict[str, str], expected: dict[str, int]
) -> None:
    @dg.op
    def work() -> None:
        raise dg.Failure("some failed", metadata={"failed": dg.MetadataValue.json(named)})

    @dg.job
    def refresh_archives() -> None:
        work()

    refresh_archives.execute_in_process(
        instance=instance, tags=range_tags("harbor|2024-02", "harbor|2024-03"), raise_on_error=False
    )
    assert failed(instance) == expected


def test_failures_are_forgotten_after_a_month(instance: dg.DagsterInstance) -> None:
    add(instance, FAILED, MARCH)
    assert failed(instance, MEMORY - dt.timedelta(hours=1)) == {"harbor 2024-03": 1}
    assert failed(instance, MEMORY + dt.timedelta(hours=1)) == {}


@pytest.mark.parametrize(
    ("runs", "minutes"), [(1, 10), (2, 20), (5, 160), (8, 1280), (9, 1440), (10_000, 1440)]
)
def test_pause_doubles_up_to_a_day(runs: int, minutes: int) -> None:
    assert Failures(runs, "run", NOW).retry_at == NOW + dt.timedelta(minutes=minutes)


def test_months_in_flight_include_rectangles(instance: dg.DagsterInstance) -> None:
    started = dg.DagsterRunStatus.STARTED
    for tags in (MARCH, range_tags("pier|2023-12", "quay|2024-01"), {}):
        instance.add_run(dg.DagsterRun(job_name="any", status=started, tags=tags))
    add(instance, SUCCEEDED, partition("harbor|2020-01"))
    assert {str(month) for month in months_in_flight(instance, LISTS)} == {
        *("harbor 2024-03", "pier 2023-12", "pier 2024-01", "quay 2023-12", "quay 2024-01")
    }


FINISHED = MonthFinished("messages", ListMonth("dev", "2024-03"), {"found": 3}, True)


def test_run_log_passes_on_lines_and_months(tmp_path: Path) -> None:
    emitted: list[MonthFinished | LogLine] = []

    @dg.op
    def work(context: dg.OpExecutionContext) -> None:
        context.log.debug("not for people")
        log_month(context.log, FINISHED, "messages dev 2024-03: found 3")
        context.log.warning("slow")

    @dg.job(logger_defs={"log": build_run_logger(emitted.append)})
    def job() -> None:
        work()

    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path)) as instance:
        assert job.execute_in_process(
            instance=instance, run_config={"loggers": {"log": {}}}
        ).success
    finished, line, warning = emitted
    assert finished == FINISHED
    assert isinstance(line, LogLine)
    assert (line.level, line.text) == (logging.INFO, "messages dev 2024-03: found 3")
    assert isinstance(warning, LogLine)
    assert str(warning).endswith(" warning: slow")


__all__ = ["child", "ended_process"]  # fixtures


def test_run_of_a_killed_process_is_canceled(
    instance: dg.DagsterInstance, ended_process: str
) -> None:
    started = dg.DagsterRunStatus.STARTED
    killed, alive, unknown = (
        instance.add_run(
            dg.DagsterRun("any", status=started, tags={"dagster/partition": key} | tags)
        ).run_id
        for key, tags in (
            ("harbor|2024-03", {PROCESS: ended_process}),
            ("harbor|2024-04", {PROCESS: name_process()}),
            ("harbor|2024-05", {}),
        )
    )
    expected = {"harbor 2024-04", "harbor 2024-05"}
    assert {str(month) for month in months_in_flight(instance, ["harbor"])} == expected
    cancel_abandoned(instance)
    statuses = {run.run_id: run.status for run in instance.get_runs()}
    canceled = dg.DagsterRunStatus.CANCELED
    assert statuses == {killed: canceled, alive: started, unknown: started}
