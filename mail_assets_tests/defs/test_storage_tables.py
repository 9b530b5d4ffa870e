"""Dagster's tables: whole again, whatever a kill during their creation has left."""

import psycopg
import pytest
from dagster_postgres import DagsterPostgresStorage

from mail_assets.defs.instance_storage import complete_tables

#: Names of tables and indexes, and what is marked as done.
THINGS = """
select 'relation', relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'public' and c.relkind in ('r', 'i', 'S')
union all select 'done', name from secondary_indexes where migration_completed is not null
union all select 'version', version_num from alembic_version
"""


@pytest.fixture
def url(postgres_dsn: str) -> str:
    """The URL of an empty database, as Dagster takes it."""
    return postgres_dsn.replace("postgresql://", "postgresql+psycopg2://")


def read_things(dsn: str) -> set[tuple[str, str]]:
    with psycopg.connect(dsn) as connection:
        return {*connection.execute(THINGS).fetchall()}


def test_tables_that_are_whole_are_left_alone(postgres_dsn: str, url: str) -> None:
    storage = DagsterPostgresStorage(url)
    before = read_things(postgres_dsn)
    complete_tables(storage, url)
    assert read_things(postgres_dsn) == before


@pytest.mark.parametrize(
    "loss",
    [
        "drop table asset_check_executions",
        "drop table asset_check_executions, asset_keys, secondary_indexes",
        "drop table instance_info, runs, run_tags cascade",
        "drop index idx_step_key",
        "drop table bulk_actions; delete from alembic_version",
    ],
)
def test_what_is_missing_is_created(postgres_dsn: str, url: str, loss: str) -> None:
    storage = DagsterPostgresStorage(url)
    before = read_things(postgres_dsn)
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute(loss)
    complete_tables(DagsterPostgresStorage(url), url)
    assert read_things(postgres_dsn) == before
    assert storage.event_log_storage.get_asset_check_summary_records([]) == {}


def test_tables_of_another_version_are_left_to_dagster(postgres_dsn: str, url: str) -> None:
    storage = DagsterPostgresStorage(url)
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("drop table bulk_actions")
        connection.execute("update alembic_version set version_num = '7e2f3204cf8e'")
    complete_tables(storage, url)
    assert ("relation", "bulk_actions") not in read_things(postgres_dsn)


def test_a_creation_that_is_cut_off_creates_nothing(
    postgres_dsn: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    storage = DagsterPostgresStorage(url)
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("drop table bulk_actions, instance_info")
    monkeypatch.setattr("mail_assets.defs.instance_storage.stamp_alembic_rev", fail)
    with pytest.raises(KeyboardInterrupt):
        complete_tables(storage, url)
    assert ("relation", "bulk_actions") not in read_things(postgres_dsn)
