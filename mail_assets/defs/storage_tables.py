"""Dagster's tables, made whole: a kill while they are first created leaves some out for good.

Dagster (1.13.27) creates them one by one in autocommit mode, and only where the first table of a
storage is missing. It relies on private modules of Dagster; a test covers it.
"""

from dagster._core.storage.event_log.schema import SqlEventLogStorageMetadata
from dagster._core.storage.runs.schema import RunStorageSqlMetadata
from dagster._core.storage.schedules.schema import ScheduleStorageSqlMetadata
from dagster._core.storage.sql import check_alembic_revision, stamp_alembic_rev
from dagster_postgres import DagsterPostgresStorage, event_log
from dagster_postgres.utils import create_pg_engine, pg_alembic_config
from sqlalchemy import Connection, Engine, Index, Table, inspect

_METADATA = (
    RunStorageSqlMetadata,
    SqlEventLogStorageMetadata,
    ScheduleStorageSqlMetadata,
)


def complete_tables(storage: DagsterPostgresStorage, url: str) -> None:
    """Create the tables and indexes that are missing, all or none, and what Dagster does then.

    Those of another version of Dagster are left alone: `dagster instance migrate` adds to them.
    """
    engine = create_pg_engine(url)
    try:
        if not _create_missing(engine):
            return
    finally:
        engine.dispose()
    storage.run_storage.migrate()
    storage.run_storage.optimize()
    storage.event_log_storage.reindex_events()
    storage.event_log_storage.reindex_assets()
    storage.schedule_storage.migrate()
    storage.schedule_storage.optimize()


def _create_missing(engine: Engine) -> bool:
    """Return whether anything was created."""
    with engine.begin() as connection:
        missing = _find_missing(connection)
        if not missing:
            return False
        config = pg_alembic_config(event_log.__file__)
        version = check_alembic_revision(config, connection)
        if version[0] not in (None, version[1]):
            return False
        for one in missing:
            one.create(connection, checkfirst=True)
        stamp_alembic_rev(config, connection)
    return True


def _find_missing(connection: Connection) -> list[Table | Index]:
    """Return tables in the order of their foreign keys, then indexes of tables that there are."""
    there = {
        table: {index["name"] for index in indexes}
        for (_, table), indexes in inspect(connection).get_multi_indexes().items()
    }
    tables = [table for metadata in _METADATA for table in metadata.sorted_tables]
    return [
        *(table for table in tables if table.name not in there),
        *(
            index
            for table in tables
            for index in sorted(table.indexes, key=lambda one: str(one.name))
            if table.name in there and index.name not in there[table.name]
        ),
    ]
