"""What Dagster's records show of months, and how to be rid of it."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from mail_assets.defs.assets.months import clean_samples, delete_runs, find_samples
from mail_assets.defs.definitions import build_defs
from mail_assets.month import ListMonth
from mail_assets_tests.defs.dagster_world import DagsterWorld, dagster_world
from mail_assets_tests.world import APRIL, HARBOR, MARCH, mail

HERE, NEXT = ListMonth(HARBOR, MARCH), ListMonth(HARBOR, APRIL)
LOADED = ("mbox_archives", "messages")


@pytest.fixture
def world(
    tmp_path: Path, mail_dsn: str, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DagsterWorld]:
    with dagster_world(tmp_path, mail_dsn, model_cache, monkeypatch) as made:
        made.archive(MARCH, mail("a", "The Tuesday secret is kept.", subject="The Tuesday secret"))
        made.archive(APRIL, mail("b"))
        yield made


def shown(world: DagsterWorld, result: dg.ExecuteInProcessResult, asset: str) -> str:
    return repr([one.get("sample") for one in world.recorded(result, asset).values()])


def test_the_records_of_a_month_are_counted_and_go_with_their_runs(world: DagsterWorld) -> None:
    march = world.month(MARCH, select=LOADED)
    april = world.month(APRIL, select=LOADED)
    threads = world.month(MARCH, select=("threads", "thread_summaries"))
    assert "Tuesday secret" in shown(world, threads, "thread_summaries")
    assert "Tuesday secret" in shown(world, march, "messages")
    found = find_samples(world.instance, [HERE])
    assert found == (3, sorted([march.run_id, threads.run_id]))
    assert find_samples(world.instance, []) == (0, [])

    delete_runs(world.instance, found.runs)
    assert find_samples(world.instance, [HERE]) == (0, [])
    assert find_samples(world.instance, [NEXT]) == (1, [april.run_id])
    events = world.instance.get_records_for_run(march.run_id).records
    assert not events
    again = world.month(MARCH, select=LOADED)
    assert again.success
    assert world.recorded(again, "messages")[HERE.key]["written"] == 0


def test_no_sample_is_recorded_where_the_setting_says_so(
    world: DagsterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = world.settings()
    object.__setattr__(settings, "samples", False)
    off = build_defs(settings, encoder=world.encoder_resource)
    monkeypatch.setattr(DagsterWorld, "defs", off)
    for select in (LOADED, ("threads", "thread_summaries")):
        result = world.month(MARCH, select=select)
        assert result.success
        for asset in select:
            assert "sample" not in repr(world.recorded(result, asset))
    assert find_samples(world.instance, [HERE]) == (0, [])


def test_a_home_in_which_dagster_never_ran_is_left_alone(world: DagsterWorld) -> None:
    assert clean_samples(world.settings(), [HERE], delete=True) == (0, [])
    assert not (world.home / "dagster" / "dagster.yaml").exists()
