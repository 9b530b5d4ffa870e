"""The daily schedule asks for recent months."""

import datetime as dt
from collections.abc import Iterator

import dagster as dg
import pytest

from mail_assets.defs.partitions import list_months
from mail_assets.defs.schedules import build_daily_refresh

LISTS = ("harbor", "pier")

TICKS = {
    "2024-03-31": ["2024-03"],
    "2024-04-01": ["2024-03", "2024-04"],
    "2024-04-02": ["2024-03", "2024-04"],
    "2024-04-03": ["2024-03", "2024-04"],
    "2024-04-04": ["2024-04"],
    "2024-02-29": ["2024-02"],
    "2024-03-01": ["2024-02", "2024-03"],
    "2023-03-01": ["2023-02", "2023-03"],
    "2023-12-31": ["2023-12"],
    "2024-01-01": ["2023-12", "2024-01"],
    "2024-01-03": ["2023-12", "2024-01"],
    "2024-01-20": ["2024-01"],
}


def tick(day: str, first_month: str, last_month: str | None) -> list[object]:
    moment = dt.datetime.fromisoformat(f"{day}T04:15:00+00:00")
    context = dg.build_schedule_context(scheduled_execution_time=moment)
    found = build_daily_refresh(list_months(LISTS, first_month, last_month))(context)
    assert isinstance(found, Iterator)
    return [*found]


def requests(
    day: str, first_month: str = "1995-01", last_month: str | None = None
) -> list[dg.RunRequest]:
    found = tick(day, first_month, last_month)
    return [request for request in found if isinstance(request, dg.RunRequest)]


@pytest.mark.parametrize(("day", "months"), TICKS.items())
def test_refresh_asks_for_the_month_before_until_the_third(day: str, months: list[str]) -> None:
    asked = [str(request.partition_key) for request in requests(day)]
    assert asked == [f"{name}|{month}" for month in months for name in LISTS]


def test_refresh_asks_for_no_month_before_the_first() -> None:
    asked = [str(request.partition_key) for request in requests("2024-03-01", "2024-03")]
    assert asked == ["harbor|2024-03", "pier|2024-03"]


def test_refresh_has_a_new_run_key_each_day() -> None:
    keys = [request.run_key for day in ("2024-04-01", "2024-04-02") for request in requests(day)]
    assert len({*keys}) == len(keys) == 8
    assert keys[0] == "harbor|2024-03@2024-04-01"


def test_refresh_ends_with_the_last_month_of_the_lists() -> None:
    asked = [str(request.partition_key) for request in requests("2024-05-03", last_month="2024-04")]
    assert asked == ["harbor|2024-04", "pier|2024-04"]
    [skipped] = tick("2024-05-04", "1995-01", "2024-04")
    assert isinstance(skipped, dg.SkipReason)
    assert "last_month" in str(skipped.skip_message)


def test_refresh_goes_before_backfills_and_is_limited() -> None:
    for request in requests("2024-04-01"):
        assert int(request.tags["dagster/priority"]) > 0
        assert int(request.tags["dagster/max_runtime"]) < 24 * 3600
