"""The jobs: a refresh of a month, and the upkeep of a home."""

import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from mail_assets.defs.partitions import MONTHLY, asset_key
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
