"""Partition keys: LIST|YYYY-MM, including the current month; reversed ranges are refused."""

import datetime as dt
from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._serdes import deserialize_value, serialize_value

from mail_assets.defs.partitions import (
    YEAR,
    list_months,
    list_names,
    months,
    months_of_run,
    partition_key,
)
from mail_assets.month import ListMonth
from mail_assets_tests.defs.dagster_world import range_tags

LISTS = ("zeta", "alpha", "mid.dle-list")
PARTITIONS = list_months(LISTS, "2024-01")


@dg.asset(partitions_def=PARTITIONS, backfill_policy=YEAR)
def seen(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    return dg.MaterializeResult(metadata={"keys": [month.key for month in months_of_run(context)]})


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def materialize(instance: dg.DagsterInstance, tags: dict[str, str]) -> dg.ExecuteInProcessResult:
    return dg.materialize([seen], instance=instance, tags=tags, raise_on_error=False)


def keys_of(result: dg.ExecuteInProcessResult) -> list[str]:
    materializations = result.asset_materializations_for_node("seen")
    keys = materializations[0].metadata["keys"].value
    assert isinstance(keys, list)
    return keys


def test_partition_key_is_list_then_month() -> None:
    month = ListMonth("zeta", "2024-03")
    key = partition_key(month)
    assert str(key) == month.key == "zeta|2024-03"
    assert key.keys_by_dimension == {"list": "zeta", "month": "2024-03"}
    assert month.key in PARTITIONS.get_partition_keys()


def test_lists_are_sorted() -> None:
    assert list_names(PARTITIONS) == ["alpha", "mid.dle-list", "zeta"]


@pytest.mark.parametrize(
    ("now", "last"),
    [("2024-05-01", "2024-05"), ("2024-05-31", "2024-05"), ("2024-12-31", "2024-12")],
)
def test_months_run_from_the_first_to_the_running_one(now: str, last: str) -> None:
    moment = dt.datetime.fromisoformat(now).replace(hour=12, tzinfo=dt.UTC)
    keys = months("1997-01").get_partition_keys(current_time=moment)
    assert keys[0] == "1997-01"
    assert keys[-1] == last
    assert keys == sorted(set(keys))


@pytest.mark.parametrize(("last", "count"), [("2024-03", 1), ("2024-12", 10), ("2025-01", 11)])
def test_months_run_to_the_last_one_where_there_is_one(last: str, count: int) -> None:
    keys = months("2024-03", last).get_partition_keys()
    assert (keys[0], keys[-1], len(keys)) == ("2024-03", last, count)


def test_future_last_month_adds_no_future_months() -> None:
    moment = dt.datetime(2024, 5, 12, tzinfo=dt.UTC)
    assert months("2024-03", "2099-12").get_partition_keys(current_time=moment)[-1] == "2024-05"


def test_partitions_of_the_same_settings_are_the_same() -> None:
    assert list_months(LISTS, "2024-01") is PARTITIONS
    assert list_months(("alpha",), "2024-01") != PARTITIONS


def test_run_of_one_partition_has_its_key(instance: dg.DagsterInstance) -> None:
    result = dg.materialize([seen], instance=instance, partition_key="zeta|2024-02")
    assert keys_of(result) == ["zeta|2024-02"]


@pytest.mark.parametrize("name", ["alpha", "mid.dle-list", "zeta"])
def test_run_of_a_range_has_the_months_in_order(instance: dg.DagsterInstance, name: str) -> None:
    result = materialize(instance, range_tags(f"{name}|2024-02", f"{name}|2024-04"))
    assert result.success
    assert keys_of(result) == [f"{name}|2024-02", f"{name}|2024-03", f"{name}|2024-04"]


def test_range_across_lists_has_all_of_them(instance: dg.DagsterInstance) -> None:
    result = materialize(instance, range_tags("alpha|2024-02", "zeta|2024-03"))
    names = ("alpha", "mid.dle-list", "zeta")
    assert keys_of(result) == [f"{n}|{m}" for n in names for m in ("2024-02", "2024-03")]


@pytest.mark.parametrize(
    ("first", "last"), [("alpha|2024-04", "alpha|2024-02"), ("zeta|2024-02", "alpha|2024-02")]
)
def test_reversed_range_fails_and_says_so(
    instance: dg.DagsterInstance, first: str, last: str
) -> None:
    result = materialize(instance, range_tags(first, last))
    assert not result.success
    failure = result.failure_data_for_node("seen")
    assert failure is not None
    assert failure.user_failure_data is not None
    assert "is it reversed?" in str(failure.user_failure_data.description)


def test_policy_is_one_run_only_for_the_command_line() -> None:
    """Dagster stores the policy by its class name, and the daemon reads it from there."""
    asked = "policy.policy_type.name"
    assert eval(asked, {"policy": YEAR, "__name__": "dagster._cli.asset"}) == "SINGLE_RUN"
    assert eval(asked, {"policy": YEAR, "__name__": "dagster._daemon"}) == "MULTI_RUN"
    stored = deserialize_value(serialize_value(YEAR), dg.BackfillPolicy)
    assert stored == dg.BackfillPolicy.multi_run(max_partitions_per_run=12)
    assert type(stored) is dg.BackfillPolicy
