"""Dagster's storage as configured by dagster.yaml: its server, events and tables."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import dagster as dg
import psycopg
import pytest
from dagster import EventLogEntry
from dagster_postgres import DagsterPostgresStorage, PostgresEventLogStorage
from sqlalchemy import event
from sqlalchemy.engine import Engine, make_url

from mail_assets.defs.instance import write_dagster_yaml
from mail_assets.defs.instance_storage import complete_tables
from mail_assets.defs.partitions import YEAR, months
from mail_assets.postgres.database import embedded
from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.databases import dagster_url
from mail_assets_tests.defs.dagster_world import range_tags


@pytest.fixture
def own_server(home: Path, home_dsn: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a database with Dagster's tables."""
    url = dagster_url(home_dsn)
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url)
    return url


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A MAIL_HOME whose Dagster home links to the repository's dagster.yaml."""
    for name in ("MAIL_PG_DSN", "DAGSTER_POSTGRES_URL", "MAIL_LISTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MAIL_HOME", str(tmp_path))
    dagster_home = tmp_path / "dagster"
    write_dagster_yaml(dagster_home)
    assert (dagster_home / "dagster.yaml").is_symlink()
    monkeypatch.setenv("DAGSTER_HOME", str(dagster_home))
    yield tmp_path
    if (tmp_path / "postgres").exists():
        embedded(tmp_path).remove()


@dg.asset
def thing() -> None:
    """An asset to record."""


@dg.asset(partitions_def=months("2024-01", "2024-12"), backfill_policy=YEAR)
def monthly() -> None:
    """An asset with months to record."""


YEAR_2024 = range_tags("2024-01", "2024-12")


def record() -> str:
    """Record a materialization in the instance of DAGSTER_HOME; return its storage's URL."""
    with dg.DagsterInstance.get() as instance:
        storage = instance.event_log_storage
        assert isinstance(storage, PostgresEventLogStorage)
        instance.report_runless_asset_event(dg.AssetMaterialization("thing"))
        assert instance.get_latest_materialization_event(dg.AssetKey("thing"))
        url = make_url(storage.postgres_url).difference_update_query(["connect_timeout"])
        return url.render_as_string(hide_password=False).replace("%2F", "/")


@pytest.mark.slow
def test_embedded_server_keeps_runs_by_default(home: Path) -> None:
    url = record()
    assert url.startswith("postgresql+psycopg2://")
    assert embedded(home).running()
    assert record() == url


def test_configured_server_is_used(home: Path, own_server: str) -> None:
    assert record() == own_server
    assert not (home / "postgres").exists()


def test_storage_opens_despite_a_mistake_in_lists_toml(
    home: Path, own_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = home / "lists.toml"
    lists.write_text('[harbor]\nsource = "archives"\ndialect = "mbx"\n')
    monkeypatch.setenv("MAIL_LISTS", str(lists))
    assert record() == own_server  # the webserver and the daemon open this storage at their start
    dagster = Path(sys.executable).parent / "dagster"
    loaded = subprocess.run(
        [dagster, "definitions", "validate"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert loaded.returncode == 1
    assert "Validation failed for code location mail_assets" in loaded.stdout
    assert f"MAIL_LISTS {lists} [harbor] dialect='mbx': " in loaded.stdout


@pytest.mark.usefixtures("own_server")
def test_queue_leaves_room_for_schedules_and_ends_hung_runs() -> None:
    with dg.DagsterInstance.get() as instance:  # Dagster knows every key
        runs = instance.get_concurrency_config().run_queue_config
        assert runs is not None
        assert runs.max_concurrent_runs == 3
        assert [*runs.tag_concurrency_limits] == [{"key": "dagster/backfill", "limit": 2}]
        assert instance.run_monitoring_max_runtime_seconds == 86400
        assert instance.run_retries_max_retries == 2
        assert not instance.run_retries_retry_on_asset_or_op_failure
        assert instance.event_log_storage.get_pool_limits() == []


def test_events_open_no_connection_each(own_server: str) -> None:
    with dg.DagsterInstance.get() as instance:
        opened: list[str] = []
        event.listen(Engine, "do_connect", lambda *_: opened.append("connection"))
        for number in range(10):
            materialized = dg.AssetMaterialization("thing", metadata={"number": number})
            instance.report_runless_asset_event(materialized)
        assert len(instance.get_runs()) == 0
        assert len(opened) <= 2, "none for each event"


def test_columns_of_the_event_log_are_listed_once(own_server: str) -> None:
    listed: list[str] = []

    def note(_connection: object, _cursor: object, text: str, *_rest: object) -> None:
        if "pg_attribute" in text:
            listed.append(text)

    with dg.DagsterInstance.get() as instance:
        instance.report_runless_asset_event(dg.AssetMaterialization("thing"))
        instance.get_asset_records([dg.AssetKey("thing")])
        event.listen(Engine, "before_cursor_execute", note)
        try:
            for _ in range(3):
                instance.report_runless_asset_event(dg.AssetMaterialization("thing"))
                instance.get_asset_records([dg.AssetKey("thing")])
        finally:
            event.remove(Engine, "before_cursor_execute", note)
    assert listed == []


def test_restarted_server_is_connected_to_again(own_server: str, home_dsn: str) -> None:
    with dg.DagsterInstance.get() as instance:
        instance.report_runless_asset_event(dg.AssetMaterialization("thing"))
        with psycopg.connect(home_dsn, autocommit=True) as connection:
            ended = connection.execute(
                "select pg_terminate_backend(pid, 60000) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            ).fetchall()
        assert {*ended} == {(True,)}  # a closed session may not have ended yet
        instance.report_runless_asset_event(dg.AssetMaterialization("thing"))
        assert instance.get_latest_materialization_event(dg.AssetKey("thing"))


def test_months_of_a_run_are_stored_together(
    own_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[int] = []
    store = PostgresEventLogStorage.store_event_batch

    def count(storage: PostgresEventLogStorage, events: Sequence[EventLogEntry]) -> None:
        if events[0].dagster_event_type == dg.DagsterEventType.ASSET_MATERIALIZATION:
            stored.append(len(events))
        store(storage, events)

    monkeypatch.setattr(PostgresEventLogStorage, "store_event_batch", count)
    with dg.DagsterInstance.get() as instance:
        assert dg.materialize([monthly], instance=instance, tags=YEAR_2024).success
        assert len(instance.get_materialized_partitions(monthly.key)) == 12
    assert stored == [12]


def test_ui_shows_each_month_of_a_run_in_order(own_server: str) -> None:
    with dg.DagsterInstance.get() as instance:
        done = dg.materialize([monthly], instance=instance, tags=YEAR_2024)
        stored = instance.fetch_materializations(monthly.key, limit=100).records
        latest = instance.get_latest_materialization_event(monthly.key)
        ended = instance.get_run_record_by_id(done.run_id)
    assert [one.partition_key for one in stored] == [
        f"2024-{month:02}" for month in range(12, 0, -1)
    ]
    # as in the UI, which shows one event per run and millisecond
    assert len({int(one.timestamp * 1000) for one in stored}) == 12
    assert latest
    assert latest.asset_materialization
    assert latest.asset_materialization.partition == "2024-12"
    assert ended
    assert ended.end_time
    assert stored[0].timestamp < ended.end_time


#: Names of tables and indexes, and the migrations marked as done.
THINGS = """
select 'relation', relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'public' and c.relkind in ('r', 'i', 'S')
union all select 'done', name from secondary_indexes where migration_completed is not null
union all select 'version', version_num from alembic_version
"""


@pytest.fixture
def url(home_dsn: str) -> str:
    """The URL of a database with Dagster's tables."""
    return dagster_url(home_dsn)


def read_things(dsn: str) -> set[tuple[str, str]]:
    with psycopg.connect(dsn) as connection:
        return {*connection.execute(THINGS).fetchall()}


def test_complete_tables_are_not_changed(home_dsn: str, url: str) -> None:
    storage = DagsterPostgresStorage(url)
    before = read_things(home_dsn)
    complete_tables(storage, url)
    assert read_things(home_dsn) == before


@pytest.mark.parametrize("loss", [
    "drop table asset_check_executions",
    "drop table asset_check_executions, asset_keys, secondary_indexes",
    "drop table instance_info, runs, run_tags cascade", "drop index idx_step_key",
    "drop table bulk_actions; delete from alembic_version",
])  # fmt: skip
def test_missing_tables_are_created(home_dsn: str, url: str, loss: str) -> None:
    storage = DagsterPostgresStorage(url)
    before = read_things(home_dsn)
    with psycopg.connect(home_dsn) as connection:
        connection.execute(loss)
    complete_tables(DagsterPostgresStorage(url), url)
    assert read_things(home_dsn) == before
    assert storage.event_log_storage.get_asset_check_summary_records([]) == {}


def test_tables_of_another_version_are_not_changed(home_dsn: str, url: str) -> None:
    storage = DagsterPostgresStorage(url)
    with psycopg.connect(home_dsn) as connection:
        connection.execute("drop table bulk_actions")
        connection.execute("update alembic_version set version_num = '7e2f3204cf8e'")
    complete_tables(storage, url)
    assert ("relation", "bulk_actions") not in read_things(home_dsn)


def test_interrupted_creation_creates_no_table(
    home_dsn: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    storage = DagsterPostgresStorage(url)
    with psycopg.connect(home_dsn) as connection:
        connection.execute("drop table bulk_actions, instance_info")
    monkeypatch.setattr("mail_assets.defs.instance_storage.stamp_alembic_rev", fail)
    with pytest.raises(KeyboardInterrupt):
        complete_tables(storage, url)
    assert ("relation", "bulk_actions") not in read_things(home_dsn)
