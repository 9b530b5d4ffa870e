"""The assets of repositories: made by month, with other assets by one key, or by the sensor."""

from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from mail_assets.defs.assets.figures import FIGURES
from mail_assets.defs.checks.mail import commits_counted, links_stand, series_complete
from mail_assets.defs.definitions import build_defs, build_repositories
from mail_assets.defs.partitions import asset_key, list_months
from mail_assets.defs.resources import DatabaseResource
from mail_assets.defs.sensors import build_new_commits
from mail_assets.settings.lists import Repository
from mail_assets.settings.settings import Settings
from mail_assets_tests.crane import Crane
from mail_assets_tests.defs.dagster_world import DagsterWorld
from mail_assets_tests.world import APRIL, HARBOR, MARCH

BOTH = ("commits", "commit_links")


class CraneWorld(DagsterWorld):
    """A world whose lists.toml names a repository."""

    def settings(self) -> Settings:
        source = str(self.home / "crane.git")
        named = {"crane": Repository("crane", source, "", (HARBOR,))}
        return replace(super().settings(), repositories=named)


@pytest.fixture
def world(world: DagsterWorld) -> CraneWorld:
    models = Path(world.encoder_resource.cache)
    return CraneWorld(world.home, world.dsn, world.instance, models)


@pytest.fixture
def crane(world: CraneWorld) -> Crane:
    return Crane(world)


def test_commits_and_links_are_materialized(crane: Crane, world: CraneWorld) -> None:
    sha = crane.commit()
    world.load(crane.mail("v1", sha), last="patches")
    world.threads()
    job = world.defs.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(
        instance=world.instance,
        partition_key=f"{HARBOR}|{MARCH}",
        asset_selection=[asset_key(name) for name in BOTH],
        raise_on_error=False,
    )
    assert result.success
    assert world.recorded(result, "commits")[f"{HARBOR}|{MARCH}"]["commits"] == 2
    assert crane.links(sha) == ["applied v1"]
    [health] = world.recorded(result, "commit_health").items()
    assert health[0] == f"{HARBOR}|{MARCH}"
    assert {name: health[1][name] for name in ("commits", "linked", "by_patch_id")} == {
        "commits": 2, "linked": 1, "by_patch_id": 1,
    }  # fmt: skip
    assert health[1]["share_linked"] == 0.5
    assert health[1].keys() == FIGURES["commit_health"].keys()


def test_health_is_recorded_where_figures_have_changed(crane: Crane, world: CraneWorld) -> None:
    world.load(crane.mail("v1", crane.commit()), last="patches")
    crane.read()

    def run(*names: str) -> dg.ExecuteInProcessResult:
        job = world.defs.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=world.instance,
            partition_key=f"{HARBOR}|{APRIL}",
            asset_selection=[asset_key(name) for name in names],
        )

    first = run("patch_series", "commit_links")
    [figures] = world.recorded(first, "patch_health").values()
    assert figures.keys() == FIGURES["patch_health"].keys()
    assert (figures["patches"], figures["open"], figures["share_open"]) == (1, 1, 1.0)
    again = run("patch_series", "commit_links")
    for name in ("patch_health", "commit_health"):
        assert world.recorded(first, name), name
        assert not world.recorded(again, name), name


def test_links_that_were_lost_fail_their_check(crane: Crane, world: CraneWorld) -> None:
    sha = crane.commit()
    world.load(crane.mail("v1", sha), last="patches")
    crane.read()
    crane.link()
    world.series()
    assert world.check(links_stand).passed
    assert world.check(series_complete).passed
    with world.connect() as connection:
        connection.execute("delete from commit_links")
        connection.execute("delete from patch_series")
        connection.execute("update partitions set updated_at = now() + interval '1 s'")
    assert not world.check(links_stand).passed
    assert not world.check(series_complete).passed
    crane.link(rebuild=True)
    world.series(rebuild=True)
    assert world.check(links_stand).passed
    assert world.check(series_complete).passed


def test_all_assets_are_made_by_one_key(crane: Crane, world: CraneWorld) -> None:
    graph = world.defs.resolve_asset_graph()
    nodes = [graph.get(key) for key in graph.materializable_asset_keys]
    assert {key.path[-1] for key in graph.materializable_asset_keys} > {*BOTH}
    assert len({node.partitions_def for node in nodes if node.partitions_def}) == 1


def test_assets_of_repositories_need_a_repository(world: CraneWorld) -> None:
    defs = build_defs(replace(world.settings(), repositories={}))
    names = {key.path[-1] for key in defs.resolve_asset_graph().get_all_asset_keys()}
    assert not names & {*BOTH}
    assert "new_commits" not in {one.name for one in defs.sensors or ()}


def test_refresh_reads_commits_and_leaves_links_to_threads(crane: Crane, world: CraneWorld) -> None:
    jobs = ("refresh_archives", "build_threads", "refresh_commits")
    layers = {name: world.defs.resolve_job_def(name).asset_layer for name in jobs}
    chosen = {
        name: {key.path[-1] for key in layer.selected_asset_keys} for name, layer in layers.items()
    }
    assert "commits" in chosen["refresh_archives"]
    assert "commit_links" not in chosen["refresh_archives"]
    assert "commit_links" in chosen["build_threads"]
    assert chosen["refresh_commits"] == {"commits"}


def tick(world: CraneWorld, cursor: str | None = None) -> dg.SensorResult | dg.SkipReason:
    settings = world.settings()
    context = dg.build_sensor_context(
        instance=world.instance,
        cursor=cursor,
        resources={
            "database": DatabaseResource(home=str(world.home), dsn=world.dsn),
            "repositories": build_repositories(settings),
        },
    )
    with context:
        result = build_new_commits(list_months((*settings.lists,), "2024-01"))(context)
    assert isinstance(result, dg.SensorResult | dg.SkipReason)
    return result


def test_sensor_requests_the_months_of_new_commits(crane: Crane, world: CraneWorld) -> None:
    crane.commit()
    crane.made.commit({"a": b"1\n"}, "april", committed=1_712_000_000)
    first = tick(world)
    assert isinstance(first, dg.SensorResult)
    keys = [str(one.partition_key) for one in first.run_requests or []]
    assert keys == [f"{HARBOR}|{MARCH}", f"{HARBOR}|{APRIL}"]
    crane.read(MARCH)
    crane.read(APRIL)
    assert isinstance(tick(world), dg.SkipReason)
    crane.commit("again", b"int other;\n")
    again = tick(world)
    assert isinstance(again, dg.SensorResult)
    assert [str(one.partition_key) for one in again.run_requests or []] == [f"{HARBOR}|{MARCH}"]


def test_sensor_names_a_repository_that_is_not_there(crane: Crane, world: CraneWorld) -> None:
    crane.made.folder.rename(world.home / "elsewhere.git")
    result = tick(world)
    assert isinstance(result, dg.SkipReason)
    assert "there is no folder" in str(result.skip_message)


def test_check_finds_commits_that_were_lost(crane: Crane, world: CraneWorld) -> None:
    crane.read()
    assert world.check(commits_counted).passed
    with world.connect() as connection:
        connection.execute("delete from commits")
        connection.execute("update partitions set updated_at = now() + interval '1 s'")
    assert not world.check(commits_counted).passed
