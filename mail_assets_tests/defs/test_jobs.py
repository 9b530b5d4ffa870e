"""The jobs: the chain as one, and the upkeep of the index."""

import json
import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from mail_assets.defs.partitions import asset_key
from mail_assets.tables.indexes import NewIndex, make_first_live, record_index
from mail_assets.vectors.lance import LanceIndex
from mail_assets.words.lance import LanceWordIndex
from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.defs.dagster_world import (
    CHAIN,
    DagsterWorld,
    failure,
    fill_live_index,
)
from mail_assets_tests.world import HARBOR, MARCH, mail

DAGSTER = Path(sys.executable).parent / "dagster"


def test_a_refresh_carries_a_month_from_the_archive_to_the_bucket(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"))
    job = world.defs.resolve_job_def("refresh_archives")
    result = job.execute_in_process(instance=world.instance, partition_key=f"{HARBOR}|{MARCH}")
    assert result.success
    assert {event.asset_key for event in result.get_asset_materialization_events()} == {
        asset_key(name) for name in CHAIN
    }
    assert len(result.get_asset_check_evaluations()) == 10
    maintain = world.defs.resolve_job_def("maintain_vectors")
    upkeep = maintain.execute_in_process(instance=world.instance)
    assert upkeep.success
    assert world.index.count() == 1


def test_the_live_index_is_maintained_beside_the_configured_one(
    world: DagsterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.archive(MARCH, mail("a"))
    world.chain(MARCH)
    live = fill_live_index(world, MARCH)
    maintained = []
    monkeypatch.setattr(LanceIndex, "maintain", lambda index: maintained.append(index.spec.name))
    result = world.defs.resolve_job_def("maintain_vectors").execute_in_process(
        instance=world.instance
    )
    assert result.success
    assert maintained == [live.index.spec.name, world.index.spec.name]


@pytest.mark.parametrize(
    ("little_changed", "due", "maintained"),
    [(False, False, True), (True, False, False), (True, True, True)],
)
def test_where_little_has_changed_only_what_is_due_is_maintained(
    world: DagsterWorld,
    monkeypatch: pytest.MonkeyPatch,
    little_changed: bool,
    due: bool,
    maintained: bool,
) -> None:
    world.archive(MARCH, mail("a"))
    world.chain(MARCH)
    done = []
    for kind in (LanceIndex, LanceWordIndex):
        monkeypatch.setattr(kind, "needs_upkeep", lambda index: due)
        monkeypatch.setattr(kind, "maintain", lambda index: done.append(type(index)))
    config = {"config": {"little_changed": little_changed}}
    world.defs.resolve_job_def("maintain_vectors").execute_in_process(
        instance=world.instance,
        run_config={"ops": {"maintain_index": config, "maintain_words": config}},
    )
    assert {*done} == ({LanceIndex, LanceWordIndex} if maintained else set())


def test_what_cannot_be_maintained_is_named(world: DagsterWorld) -> None:
    world.mail_words.index.ensure()
    with world.connect() as connection:
        gone = NewIndex("mail2-gone-0", "gone", "int8", "0")
        record_index(connection, world.bucket, gone)
        make_first_live(connection, world.bucket, gone.name)
    result = world.defs.resolve_job_def("maintain_vectors").execute_in_process(
        instance=world.instance, raise_on_error=False
    )
    assert "index mail2-gone-0 was filled by encoder gone" in failure(result).description


def test_a_run_of_everything_in_an_empty_instance_says_that_nothing_is_indexed(
    world: DagsterWorld,
) -> None:
    result = world.defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=world.instance, partition_key=f"{HARBOR}|{MARCH}"
    )
    found = [
        check for check in result.get_asset_check_evaluations() if check.check_name == "reconciled"
    ]
    assert {(one.passed, one.severity) for one in found} == {(False, dg.AssetCheckSeverity.WARN)}
    assert {one.description for one in found} == {
        f"no live index in {url} yet; run `mail-assets backfill`"
        for url in (world.bucket, world.words_url)
    }


def test_upkeep_of_a_bucket_without_an_index_names_it(world: DagsterWorld) -> None:
    job = world.defs.resolve_job_def("maintain_vectors")
    result = job.execute_in_process(instance=world.instance, raise_on_error=False)
    events = result.get_step_failure_events()
    assert [event.step_key for event in events] == ["maintain_index", "maintain_words"]
    assert all("does not exist" in str(event.step_failure_data.error) for event in events)


def materialize(world: DagsterWorld, select: str, key: str) -> subprocess.CompletedProcess[str]:
    lists = world.home / "lists.toml"
    lists.write_text(f"[{HARBOR}]\nsource = {json.dumps(str(world.folder()))}\n")
    home = world.home / "dagster-home"
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").touch()
    return subprocess.run(
        [DAGSTER, "asset", "materialize", "--select", select, "--partition", key],
        cwd=REPOSITORY,
        env={
            "PATH": os.defpath,
            "HOME": str(world.home),
            "MAIL_HOME": str(world.home),
            "MAIL_LISTS": str(lists),
            "MAIL_PG_DSN": world.dsn,
            "DAGSTER_HOME": str(home),
            "DAGSTER_MODULE_NAME": "mail_assets.defs.definitions",
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_command_line_exits_by_what_became_of_the_run(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"), mail("b"))
    done = materialize(world, "*", f"{HARBOR}|{MARCH}")
    assert done.returncode == 0, done.stderr
    assert len(world.rows("vectors", "key", "written")) == 2
    with world.connect() as connection:
        connection.execute("delete from messages where message_id = 'b@example.org'")
    before = world.rows("chunks", "key, xmin::text")
    failed = materialize(world, "key:mail/messages or key:mail/chunks", f"{HARBOR}|{MARCH}")
    assert failed.returncode == 1, "accounted_for blocks"
    assert "accounted_for" in failed.stderr
    assert world.rows("chunks", "key, xmin::text") == before
