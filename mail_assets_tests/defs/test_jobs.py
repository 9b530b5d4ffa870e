"""The jobs and the daily schedule: a refresh of a month, and the upkeep of a home."""

import datetime as dt
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from mail_assets.defs.jobs import build_daily_refresh
from mail_assets.defs.partitions import MONTHLY, asset_key, list_months
from mail_assets.tables.indexes import NewIndex, make_first_live, record_index
from mail_assets.vectors.lance import LanceIndex
from mail_assets.words.lance import LanceWordIndex
from mail_assets_tests.defs.dagster_world import CHAIN, DagsterWorld, failure, fill_live_index
from mail_assets_tests.world import HARBOR, MARCH, mail

DAGSTER = Path(sys.executable).parent / "dagster"


def test_refresh_carries_a_month_to_both_indexes(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"))
    job = world.defs.resolve_job_def("refresh_archives")
    result = job.execute_in_process(instance=world.instance, partition_key=f"{HARBOR}|{MARCH}")
    assert result.success
    assert {event.asset_key for event in result.get_asset_materialization_events()} == {
        asset_key(name) for name in MONTHLY
    }
    assert len(result.get_asset_check_evaluations()) == 12 + len(MONTHLY)


def test_run_leaves_nothing_beside_the_indexes(world: DagsterWorld) -> None:
    world.archive(MARCH, *(mail(f"m{n}", f"word{n}") for n in range(20)))
    assert world.month(MARCH, select=("mbox_archives", "messages")).success
    query = (
        "select gin_clean_pending_list(indexrelid) from pg_index"
        " join pg_class c on c.oid = indexrelid join pg_am a on a.oid = c.relam"
        " where indrelid = 'messages'::regclass and amname = 'gin'"
    )
    with world.connect() as connection:
        pages = [count for (count,) in connection.execute(query).fetchall()]
    assert len(pages) > 1
    assert not any(pages)


def run_upkeep(world: DagsterWorld, *ops: str, **options: Any) -> dg.ExecuteInProcessResult:
    return world.defs.resolve_job_def("upkeep").execute_in_process(
        instance=world.instance, op_selection=[*ops] or None, raise_on_error=False, **options
    )


def test_upkeep_does_everything_even_if_one_op_fails(world: DagsterWorld) -> None:
    """Pruning fails here, because the ephemeral instance is not in PostgreSQL."""
    world.archive(MARCH, mail("a"))
    assert world.month(MARCH, select=(*CHAIN, "threads", "thread_summaries")).success
    upkeep = run_upkeep(world)
    assert [event.step_key for event in upkeep.get_step_failure_events()] == ["prune_old"]
    done = [event.step_key for event in upkeep.all_events if event.is_step_success]
    asked = ["count_searches", "measure_quality", "check_all_months", "find_damage"]
    assert done[-4:] == asked
    others = {"maintain_index", "maintain_words", "sweep_archives", "find_damage"}
    assert {*done} == {*done[-4:], *others}
    assert world.instance.get_latest_materialization_event(asset_key("search_audit"))
    found = world.checks()
    assert len(found) == 16 + len(CHAIN)
    assert all(check.passed for check in found.values())


def test_upkeep_maintains_the_live_and_the_configured_index(
    world: DagsterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.load(mail("a"), last="vectors")
    live = fill_live_index(world, MARCH)
    maintained = []
    monkeypatch.setattr(LanceIndex, "maintain", lambda index: maintained.append(index.spec.name))
    assert run_upkeep(world, "maintain_index").success
    assert maintained == [live.index.spec.name, world.index.spec.name]


@pytest.mark.parametrize(
    ("little_changed", "due", "maintained"),
    [(False, False, True), (True, False, False), (True, True, True)],
)
def test_upkeep_skips_an_index_that_is_not_due(
    world: DagsterWorld,
    monkeypatch: pytest.MonkeyPatch,
    little_changed: bool,
    due: bool,
    maintained: bool,
) -> None:
    world.load(mail("a"), last="vectors")
    done = []
    for kind in (LanceIndex, LanceWordIndex):
        monkeypatch.setattr(kind, "needs_upkeep", lambda index: due)
        monkeypatch.setattr(kind, "maintain", lambda index: done.append(type(index)))
    config = {"config": {"little_changed": little_changed}}
    ops = ("maintain_index", "maintain_words")
    assert run_upkeep(world, *ops, run_config={"ops": dict.fromkeys(ops, config)}).success
    assert {*done} == ({LanceIndex, LanceWordIndex} if maintained else set())


def test_upkeep_names_an_index_of_an_unknown_encoder(world: DagsterWorld) -> None:
    world.mail_words.index.ensure()
    with world.connect() as connection:
        gone = NewIndex("mail2-gone-0", "gone", "int8", "0")
        record_index(connection, world.bucket, gone)
        make_first_live(connection, world.bucket, gone.name)
    result = run_upkeep(world, "maintain_index", "maintain_words")
    assert "index mail2-gone-0 was filled by encoder gone" in failure(result).description
    found = failure(run_upkeep(world, "find_damage")).description
    assert "mail2-gone-0" in found
    assert "encoder of the live vector index" in found


def test_upkeep_names_an_index_that_does_not_exist(world: DagsterWorld) -> None:
    events = run_upkeep(world, "maintain_index", "maintain_words").get_step_failure_events()
    assert [event.step_key for event in events] == ["maintain_index", "maintain_words"]
    assert all("does not exist" in str(event.step_failure_data.error) for event in events)


def test_run_of_a_month_makes_no_search_assets(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"))
    result = world.defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=world.instance, partition_key=f"{HARBOR}|{MARCH}"
    )
    assert result.success
    made = {
        event.materialization.asset_key.path[-1]
        for event in result.get_asset_materialization_events()
    }
    assert made == {*MONTHLY, "threads", "thread_summaries", "patch_series"}
    assert world.rows("threads", "message_id") == [("a@example.org",)]
    checked = {check.check_name for check in result.get_asset_check_evaluations()}
    assert "search_quality_holds" not in checked


# --- months of the daily schedule ----------------------------------------------------------------

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
