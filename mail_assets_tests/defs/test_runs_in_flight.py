"""Runs in flight: those whose process was killed are none, and are ended."""

from collections.abc import Iterator

import dagster as dg
import pytest

from mail_assets.defs.runs import PROCESS, cancel_abandoned, months_in_flight, process_tag
from mail_assets_tests.processes.test_identity import child, ended_process

__all__ = ["child", "ended_process"]  # fixtures


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def test_a_run_of_a_process_that_was_killed_keeps_no_month_and_is_canceled(
    instance: dg.DagsterInstance, ended_process: str
) -> None:
    started = dg.DagsterRunStatus.STARTED
    killed, alive, unknown = (
        instance.add_run(
            dg.DagsterRun("any", status=started, tags={"dagster/partition": key} | tags)
        ).run_id
        for key, tags in (
            ("harbor|2024-03", {PROCESS: ended_process}),
            ("harbor|2024-04", process_tag()),
            ("harbor|2024-05", {}),
        )
    )
    expected = {"harbor 2024-04", "harbor 2024-05"}
    assert {str(month) for month in months_in_flight(instance, ["harbor"])} == expected
    cancel_abandoned(instance)
    statuses = {run.run_id: run.status for run in instance.get_runs()}
    canceled = dg.DagsterRunStatus.CANCELED
    assert statuses == {killed: canceled, alive: started, unknown: started}
