"""The definitions load without settings, and have exactly the expected assets and checks."""

import datetime as dt
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace

import dagster as dg
import pytest
import yaml
from dagster._core.definitions.freshness import TimeWindowFreshnessPolicy

from mail_assets.defs.definitions import build_defs
from mail_assets.defs.jobs import JOBS
from mail_assets.defs.partitions import MONTHLY, asset_key
from mail_assets.settings.settings import load_settings
from mail_assets_tests.conftest import REPOSITORY

#: Every asset: layer, kinds, dependencies, partitioned. Keys are names of tables and of metadata
#: series: changing one affects every installation.
SPECS = {
    "mbox_source": ("outside", {"file"}, set(), False),
    "mbox_archives": ("ingest", {"file", "postgres"}, {"mbox_source"}, True),
    "messages": ("ingest", {"postgres"}, {"mbox_archives"}, True),
    "threads": ("text", {"postgres"}, {"messages"}, False),
    "thread_summaries": ("text", {"postgres"}, {"messages", "threads"}, False),
    "words": ("index", {"lance"}, {"messages"}, True),
    "patches": ("patches", {"postgres"}, {"messages"}, True),
    "patch_series": ("patches", {"postgres"}, {"messages", "patches"}, False),
    "patch_health": ("links", {"dagster"}, {"patch_series"}, True),
    "commits": ("patches", {"git", "postgres"}, set(), True),
    "commit_links": ("links", {"postgres"}, {"commits", "patches", "threads"}, False),
    "commit_health": ("links", {"dagster"}, {"commit_links"}, True),
    "chunks": ("text", {"postgres"}, {"messages"}, True),
    "embeddings": ("index", {"onnx", "parquet"}, {"chunks"}, True),
    "vectors": ("index", {"lance"}, {"messages", "embeddings"}, True),
    "search_quality": ("search", {"dagster"}, {"words", "vectors", "threads"}, False),
    "search_audit": ("search", {"postgres"}, {"words", "vectors"}, False),
}

#: Every check: its asset, and True if it blocks the assets after it.
CHECKS = {
    *((asset, "months_made", False) for asset in MONTHLY),
    ("mbox_archives", "dialect_fits", False),
    ("messages", "accounted_for", True),
    ("messages", "few_quarantined", False),
    ("messages", "few_undated", False),
    ("threads", "few_unthreaded", False),
    ("thread_summaries", "sentences_stand", True),
    ("thread_summaries", "summaries_current", False),
    ("words", "keys_agree", True),
    ("patches", "patches_accounted_for", True),
    ("patches", "few_malformed", False),
    ("patch_series", "series_complete", True),
    ("commits", "commits_counted", True),
    ("commit_links", "links_stand", True),
    ("chunks", "spans_point_into_bodies", True),
    ("chunks", "tokens_in_range", False),
    ("embeddings", "one_fingerprint", True),
    ("vectors", "keys_agree", True),
    ("vectors", "forgotten_stay_forgotten", True),
    ("search_quality", "search_quality_holds", False),
}


@pytest.fixture(scope="module")
def defs() -> dg.Definitions:
    return build_defs(load_settings({}))


def name_of(key: dg.AssetKey) -> str:
    """Return the name of an asset, without the common prefix of keys."""
    assert key == asset_key(key.path[-1])
    return key.path[-1]


def test_definitions_are_loadable(defs: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(defs)


def test_every_asset_is_as_expected(defs: dg.Definitions) -> None:
    specs = {name_of(spec.key): spec for spec in defs.resolve_all_asset_specs()}
    found = {
        name: (
            spec.tags["layer"],
            spec.kinds,
            {name_of(dep.asset_key) for dep in spec.deps},
            spec.partitions_def is not None,
        )
        for name, spec in specs.items()
    }
    assert found == SPECS
    assert {spec.group_name for spec in specs.values()} == {"mail"}, "the UI shows it unfolded"
    for name, spec in specs.items():
        assert spec.description, name
        if name not in (
            "mbox_source",
            "patch_health",
            "commit_health",
        ):  # made by nobody here, or by others
            assert spec.code_version, name
        assert not spec.owners, name
        assert spec.automation_condition is None, name


def test_partitioned_assets_share_one_definition_and_one_policy(defs: dg.Definitions) -> None:
    graph = defs.resolve_asset_graph()
    nodes = [graph.get(asset_key(name)) for name, spec in SPECS.items() if spec[3]]
    assert len({node.partitions_def for node in nodes}) == 1
    assert {node.backfill_policy for node in nodes if node.is_executable} == {
        dg.BackfillPolicy.multi_run(max_partitions_per_run=12)
    }
    assert nodes[0].partitions_def is not None
    keys = nodes[0].partitions_def.get_partition_keys()
    assert keys == [
        f"{name}|2024-{month}" for name in ("harbor-dev", "harbor-users") for month in ("03", "04")
    ]


def test_every_check_is_as_expected(defs: dg.Definitions) -> None:
    graph = defs.resolve_asset_graph()
    found = {
        (name_of(key.asset_key), key.name, graph.get(key).blocking)
        for key in graph.asset_check_keys
    }
    assert found == CHECKS


def test_owners_are_set_for_all_assets_at_once() -> None:
    settings = load_settings({"MAIL_OWNERS": "team:mail, ann@example.org"})
    for spec in build_defs(settings).resolve_all_asset_specs():
        assert [*spec.owners] == ["team:mail", "ann@example.org"], spec.key


@pytest.mark.parametrize(
    ("hours", "last_month", "window"),
    [(48, None, dt.timedelta(days=2)), (0, None, None), (48, "2024-04", None)],
)
def test_only_open_archives_can_be_overdue(
    hours: int, last_month: str | None, window: dt.timedelta | None
) -> None:
    settings = replace(load_settings({}), fresh_hours=hours, last_month=last_month)
    policies = {
        name_of(spec.key): spec.freshness_policy
        for spec in build_defs(settings).resolve_all_asset_specs()
        if spec.freshness_policy
    }
    assert {*policies} == ({"mbox_archives", "threads"} if window else set())
    for policy in policies.values():
        assert isinstance(policy, TimeWindowFreshnessPolicy)
        assert policy.fail_window.to_timedelta() == window
        assert policy.warn_window
        assert policy.warn_window.to_timedelta() < window


def test_jobs_schedules_and_sensors_are_described_and_off(defs: dg.Definitions) -> None:
    repository = defs.get_repository_def()
    jobs = [job for job in repository.get_all_jobs() if not job.name.startswith("__")]
    assert {job.name for job in jobs} == {
        *(job.name for job in JOBS),
        *("refresh_commits", "upkeep"),
    }
    for job in jobs:
        assert job.description, job.name
    for schedule in repository.schedule_defs:
        assert schedule.description, schedule.name
        assert schedule.default_status == dg.DefaultScheduleStatus.STOPPED
        assert schedule.execution_timezone == "UTC"
    assert {one.name: one.job_name for one in repository.schedule_defs} == {
        "daily_refresh": "refresh_archives",
        "weekly_upkeep": "upkeep",
    }
    for sensor in repository.sensor_defs:
        assert sensor.description, sensor.name
        # the sensor for threads requests nothing before mail is loaded
        running = sensor.name == "new_threads"
        assert (sensor.default_status == dg.DefaultSensorStatus.RUNNING) == running, sensor.name


def test_no_step_waits_for_a_pool(defs: dg.Definitions) -> None:
    """An in-process step that waits for a pool uses a whole core; see encoder_lock."""
    graph = defs.resolve_asset_graph()
    assert [key for key in graph.materializable_asset_keys if graph.get(key).pools] == []


BROKEN = {"PATH": os.defpath, "MAIL_LISTS": "/nowhere/lists.toml"}


def test_import_reads_no_setting_and_loading_names_wrong_ones() -> None:
    code = """
import os
import mail_assets.definitions, mail_assets.defs.definitions
from mail_assets.settings.values import SettingsError
try:
    mail_assets.definitions.defs()
except SettingsError as error:
    print(error)
del os.environ["MAIL_LISTS"]
print(len(mail_assets.definitions.defs().resolve_all_asset_specs()))
"""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=REPOSITORY,
        env=BROKEN,
        capture_output=True,
        text=True,
        check=False,
    )
    line, count = result.stdout.splitlines()
    assert count == str(len(SPECS)), result.stderr
    assert line.startswith("MAIL_LISTS='/nowhere/lists.toml': no such file"), result.stderr


SERVER = {"MAIL_ENCODER": "openai:some-model", "MAIL_ENCODER_URL": "http://127.0.0.1:1/v1"}


@pytest.mark.parametrize(
    ("environ", "asset", "kinds"),
    [
        *(
            ({"MAIL_VECTORS": url}, "vectors", {kind})
            for url, kind in (
                ("lance:/srv/vectors", "lance"),
                ("lance:s3://bucket/prefix", "lance"),
                ("s3vectors://bucket?region=eu-central-1", "s3vectors"),
                ("supabase://project.supabase.co/bucket", "supabase"),
                ("supabase+http://127.0.0.1:5000/bucket", "supabase"),
                ("pgvector:", "pgvector"),
            )
        ),
        (SERVER, "embeddings", {"openai", "parquet"}),
    ],
)
def test_asset_has_the_kinds_of_its_storage_and_model(
    environ: dict[str, str], asset: str, kinds: set[str]
) -> None:
    settings = load_settings({"PATH": os.environ["PATH"], **environ})
    node = build_defs(settings).resolve_asset_graph().get(asset_key(asset))
    assert node.kinds == kinds


def test_code_location_has_one_name_everywhere() -> None:
    """A module given with -m is a code location with the name of the module."""
    tool = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]
    project = tool["dg"]["project"]
    [of_dagster] = yaml.safe_load((REPOSITORY / "workspace.yaml").read_text())["load_from"]
    celery = yaml.safe_load((REPOSITORY / "deploy/celery/workspace.yaml").read_text())
    values = yaml.safe_load((REPOSITORY / "deploy/kubernetes/values.yaml").read_text())
    [server] = values["dagsterWebserver"]["workspace"]["servers"]
    [deployment] = values["dagster-user-deployments"]["deployments"]
    assert (server["host"], server["port"]) == (deployment["name"], deployment["port"])
    assert {
        project["code_location_target_module"],
        project["code_location_name"],
        tool["dagster"]["module_name"],
        of_dagster["python_module"]["module_name"],
        of_dagster["python_module"]["location_name"],
        celery["load_from"][0]["grpc_server"]["location_name"],
        server["name"],
    } == {"mail_assets.definitions"}
    pages = [REPOSITORY / name for name in ("README.md", "Makefile", "compose.yaml", ".ci/run")]
    pages += [*(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "mail_assets").rglob("*.py")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    named = re.findall(r"dagster[ \w-]*? -m (\S+?)[`'\"\s]", text)
    assert named, "the commands of README"
    assert {*named} == {"mail_assets.definitions"}
