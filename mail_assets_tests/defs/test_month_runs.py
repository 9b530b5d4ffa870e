"""What runs say of their months: which are in flight, which have failed, and when to try again."""

import datetime as dt
from collections.abc import Iterator, Mapping

import dagster as dg
import pytest

from mail_assets.defs.month_runs import MEMORY, Failures, failed_months, months_in_flight
from mail_assets.month import ListMonth

LISTS = ("harbor", "pier", "quay")
NOW = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def partition(key: str) -> dict[str, str]:
    return {"dagster/partition": key}


def between(first: str, last: str) -> dict[str, str]:
    return {
        "dagster/asset_partition_range_start": first,
        "dagster/asset_partition_range_end": last,
    }


def add(
    instance: dg.DagsterInstance,
    status: dg.DagsterRunStatus,
    tags: Mapping[str, str],
    job: str = "refresh_archives",
) -> str:
    """Record a run that has ended."""
    ends = {
        dg.DagsterRunStatus.FAILURE: dg.DagsterEventType.RUN_FAILURE,
        dg.DagsterRunStatus.SUCCESS: dg.DagsterEventType.RUN_SUCCESS,
        dg.DagsterRunStatus.CANCELED: dg.DagsterEventType.RUN_CANCELED,
    }
    run = instance.add_run(dg.DagsterRun(job_name=job, tags=dict(tags)))
    instance.report_dagster_event(dg.DagsterEvent(ends[status].value, job), run.run_id)
    return run.run_id


FAILED, SUCCEEDED = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS
MARCH = partition("harbor|2024-03")


def failed(instance: dg.DagsterInstance, later: dt.timedelta = dt.timedelta()) -> dict[str, int]:
    """Return month -> how many of its runs have failed."""
    now = dt.datetime.now(dt.UTC) + later
    found = failed_months(instance, "refresh_archives", LISTS, now)
    return {str(month): failures.runs for month, failures in found.items()}


def test_failures_are_counted_for_each_month(instance: dg.DagsterInstance) -> None:
    began = dt.datetime.now(dt.UTC)
    for key in ("harbor|2024-03", "pier|2024-04", "harbor|2024-03"):
        last = add(instance, FAILED, partition(key))
    assert failed(instance) == {"harbor 2024-03": 2, "pier 2024-04": 1}
    now = dt.datetime.now(dt.UTC)
    months = failed_months(instance, "refresh_archives", LISTS, now)
    failures = months[ListMonth("harbor", "2024-03")]
    assert failures.last_run == last
    rounding = dt.timedelta(milliseconds=1)
    assert began - rounding <= failures.ended <= now + rounding


def test_a_failed_range_counts_for_each_of_its_months(instance: dg.DagsterInstance) -> None:
    add(instance, FAILED, between("harbor|2023-12", "harbor|2024-01"))
    assert failed(instance) == {"harbor 2023-12": 1, "harbor 2024-01": 1}


@pytest.mark.parametrize("job", ["refresh_archives", "__ASSET_JOB"])
def test_a_success_of_any_job_ends_the_failures_before_it(
    instance: dg.DagsterInstance, job: str
) -> None:
    add(instance, FAILED, MARCH)
    add(instance, SUCCEEDED, MARCH, job)
    assert failed(instance) == {}
    add(instance, FAILED, MARCH)
    assert failed(instance) == {"harbor 2024-03": 1}


def test_runs_of_other_jobs_and_canceled_ones_are_no_failures(instance: dg.DagsterInstance) -> None:
    add(instance, FAILED, MARCH, "__ASSET_JOB")
    add(instance, FAILED, {})
    add(instance, dg.DagsterRunStatus.CANCELED, MARCH)
    assert failed(instance) == {}


def test_failures_are_forgotten_after_a_month(instance: dg.DagsterInstance) -> None:
    add(instance, FAILED, MARCH)
    assert failed(instance, MEMORY - dt.timedelta(hours=1)) == {"harbor 2024-03": 1}
    assert failed(instance, MEMORY + dt.timedelta(hours=1)) == {}


@pytest.mark.parametrize(
    ("runs", "minutes"), [(1, 10), (2, 20), (5, 160), (8, 1280), (9, 1440), (10_000, 1440)]
)
def test_a_pause_doubles_up_to_a_day(runs: int, minutes: int) -> None:
    assert Failures(runs, "run", NOW).retry_at == NOW + dt.timedelta(minutes=minutes)


def test_months_in_flight_are_those_of_partitions_and_of_rectangles(
    instance: dg.DagsterInstance,
) -> None:
    started = dg.DagsterRunStatus.STARTED
    for tags in (MARCH, between("pier|2023-12", "quay|2024-01"), {}):
        instance.add_run(dg.DagsterRun(job_name="any", status=started, tags=tags))
    add(instance, SUCCEEDED, partition("harbor|2020-01"))
    assert {str(month) for month in months_in_flight(instance, LISTS)} == {
        *("harbor 2024-03", "pier 2023-12", "pier 2024-01", "quay 2023-12", "quay 2024-01")
    }
