"""Dagster's storage in PostgreSQL: the server of DAGSTER_POSTGRES_URL, or the embedded one.

dagster.yaml cannot give a variable a default, and cannot start a server. MailStorage does both, so
that any `dagster` command with our DAGSTER_HOME works. It reads only the settings it needs, so that
the webserver starts with a wrong lists.toml, and shows an error of the code location.

Two shortcomings of Dagster (1.13.27) are worked around. MailEventLog orders the months of a run.
complete_tables creates tables that are missing because a process was killed.

This module uses private modules of Dagster; a test covers each.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import dagster as dg
from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.event_log.schema import SqlEventLogStorageMetadata
from dagster._core.storage.runs.schema import RunStorageSqlMetadata
from dagster._core.storage.schedules.schema import ScheduleStorageSqlMetadata
from dagster._core.storage.sql import check_alembic_revision, stamp_alembic_rev
from dagster._serdes import ConfigurableClass, ConfigurableClassData
from dagster_postgres import DagsterPostgresStorage, PostgresEventLogStorage, event_log
from dagster_postgres.utils import create_pg_engine, pg_alembic_config
from sqlalchemy import Connection, Engine, Index, Table, inspect, make_url
from sqlalchemy.exc import ArgumentError, OperationalError

from mail_assets.environment import VARIABLES, set_default
from mail_assets.postgres.database import CONNECT_TIMEOUT, DAGSTER, embedded_dsn
from mail_assets.settings.settings import load_dagster_settings
from mail_assets.settings.values import SettingsError, hide_secrets

#: Events stored with one statement: those of a year's 12 months together.
_EVENT_BATCH = ("DAGSTER_EVENT_BATCH_SIZE", "100")


class MailStorage(DagsterStorage, ConfigurableClass):
    """The class that dagster.yaml names; it makes a DagsterPostgresStorage."""

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """Return None: the DagsterPostgresStorage has the data."""
        return None

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Return an empty schema: the configuration is in the environment."""
        return {}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> Self:
        """Return a PostgreSQL storage; start the embedded server if none is configured."""
        settings = load_dagster_settings()
        _check_url(settings.postgres_url)
        url = (
            _with_timeout(settings.postgres_url)
            if settings.postgres_url
            else embedded_dsn(settings.home, DAGSTER, scheme="postgresql+psycopg2")
        )
        set_default(*_EVENT_BATCH)
        storage = DagsterPostgresStorage(url, inst_data=inst_data)
        storage._event_log_storage = MailEventLog(url, should_autocreate_tables=False)
        keep_connection(storage, url)
        complete_tables(storage, url)
        return storage  # type: ignore[return-value]


def _check_url(url: str) -> None:
    # checked here, because the settings do not import SQLAlchemy
    try:
        if url:
            make_url(url)
    except (ArgumentError, ValueError):  # its message may repeat the password
        rule = "must be postgresql+psycopg2://USER:PASSWORD@HOST:PORT/DATABASE"
        raise SettingsError("DAGSTER_POSTGRES_URL", hide_secrets(url), rule) from None


def _with_timeout(url: str) -> str:
    """Return a URL with a connect timeout, after one attempt to connect.

    Without it Dagster tries six times, and libpq waits for two minutes each time.

    Raises:
        sqlalchemy.exc.OperationalError: the server did not answer in time.
    """
    parsed = make_url(url)
    if "connect_timeout" not in parsed.query and "PGCONNECT_TIMEOUT" not in VARIABLES:
        parsed = parsed.update_query_dict({"connect_timeout": str(CONNECT_TIMEOUT)})
    limited = parsed.render_as_string(hide_password=False)
    engine = create_pg_engine(limited)
    try:
        engine.connect().close()
    except OperationalError as error:
        if "timeout expired" in str(error):
            raise
        # Dagster tries again and then reports other errors: the server may be starting
    finally:
        engine.dispose()
    return limited


def keep_connection(storage: DagsterPostgresStorage, url: str) -> None:
    """Make the storage keep one connection open; threads open more.

    Otherwise each event opens one or two connections. The connection is tested before each use,
    which costs a tenth of opening one.
    """
    engine = create_pg_engine(
        url, isolation_level="AUTOCOMMIT", pool_size=1, max_overflow=-1, pool_pre_ping=True
    )
    parts: tuple[Any, ...] = (
        storage.event_log_storage,
        storage.run_storage,
        storage.schedule_storage,
    )
    for part in parts:
        part._engine = engine


#: Milliseconds in a second; the UI shows events of a run in the same millisecond as one event.
_MILLISECONDS = 1_000


class MailEventLog(PostgresEventLogStorage):
    """Event log in PostgreSQL that stores the months of a run in order.

    Dagster stores the months of a step in arbitrary order, mostly within one millisecond. Its UI
    shows one event per run and millisecond, and shows the event stored last as the latest one.
    Dagster also lists the columns of a table for each event, to find out whether it was migrated.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._columns_there: set[str] = set()
        super().__init__(*arguments, **options)

    def store_event_batch(self, events: Sequence[dg.EventLogEntry]) -> None:
        """Store events by partition, one millisecond apart; the last one keeps its time."""
        ordered = sorted(events, key=lambda event: event.get_dagster_event().partition or "")
        last = int(max(event.timestamp for event in events) * _MILLISECONDS)
        # in the middle of a millisecond, so that no rounding moves it into the next
        times = [(last - later - 0.5) / _MILLISECONDS for later in reversed(range(len(ordered)))]
        super().store_event_batch(
            [event._replace(timestamp=at) for event, at in zip(ordered, times, strict=True)]
        )

    def _has_asset_key_col_on_connection(self, conn: Connection, column_name: str) -> bool:
        """Query until the column exists, then remember it, because migrations only add columns."""
        if column_name not in self._columns_there:
            if not super()._has_asset_key_col_on_connection(conn, column_name):
                return False
            self._columns_there.add(column_name)
        return True


_METADATA = (RunStorageSqlMetadata, SqlEventLogStorageMetadata, ScheduleStorageSqlMetadata)


def complete_tables(storage: DagsterPostgresStorage, url: str) -> None:
    """Create missing tables and indexes in one transaction, and then migrate as Dagster does.

    Dagster creates them one by one in autocommit mode, and only if the first table of a storage is
    missing. So if the process is killed, some are never created. Tables of another version of
    Dagster are not changed: `dagster instance migrate` does that.
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
    """Return missing tables in the order of foreign keys, then missing indexes of other tables."""
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
