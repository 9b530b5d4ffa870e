"""Dagster's own storage: the server of DAGSTER_POSTGRES_URL, else the embedded one.

dagster.yaml can read a variable but has no default for it, and cannot start a server. This class
does both, so that any `dagster` command with our DAGSTER_HOME works. It reads only the settings it
needs: a mistake in lists.toml is the code location's error, which the webserver shows.
It relies on private modules of Dagster (1.13.27); a test covers it.
"""

import os
from collections.abc import Mapping
from typing import Any, Self

from dagster._core.storage.base_storage import DagsterStorage
from dagster._serdes import ConfigurableClass, ConfigurableClassData
from dagster_postgres import DagsterPostgresStorage
from dagster_postgres.utils import create_pg_engine
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from mail_assets.defs.event_log import MailEventLog
from mail_assets.defs.storage_tables import complete_tables
from mail_assets.postgres.database import DAGSTER, embedded_dsn
from mail_assets.settings.dagster import load_dagster_settings
from mail_assets.settings.errors import SettingsError, hide_secrets

#: The materializations of a run's months are stored together: a statement for a year, not 12.
_EVENT_BATCH = ("DAGSTER_EVENT_BATCH_SIZE", "100")


class MailStorage(DagsterStorage, ConfigurableClass):
    """The class that dagster.yaml names; it makes a DagsterPostgresStorage."""

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """Return None: the DagsterPostgresStorage carries the data."""
        return None

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Return an empty schema: the configuration is in the environment."""
        return {}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> Self:
        """Return a Postgres storage; the embedded server is started where none is configured.

        Raises:
            SettingsError: MAIL_HOME or DAGSTER_POSTGRES_URL is wrong.
        """
        settings = load_dagster_settings()
        _check_url(settings.postgres_url)
        url = settings.postgres_url or embedded_dsn(
            settings.home, DAGSTER, scheme="postgresql+psycopg2"
        )
        os.environ.setdefault(*_EVENT_BATCH)
        storage = DagsterPostgresStorage(url, inst_data=inst_data)
        storage._event_log_storage = MailEventLog(url, should_autocreate_tables=False)
        keep_connection(storage, url)
        complete_tables(storage, url)
        return storage  # type: ignore[return-value]


def _check_url(url: str) -> None:
    """Refuse what SQLAlchemy cannot read, which the settings would have to import to know."""
    try:
        if url:
            make_url(url)
    except (ArgumentError, ValueError):  # its message may repeat the password
        rule = "must be postgresql+psycopg2://USER:PASSWORD@HOST:PORT/DATABASE"
        raise SettingsError("DAGSTER_POSTGRES_URL", hide_secrets(url), rule) from None


def keep_connection(storage: DagsterPostgresStorage, url: str) -> None:
    """Make the storage keep one connection for all that it does; threads open more beside it.

    As Dagster makes it, each event opens one or two. The kept one is asked whether its server is
    still there before it is used, which costs a tenth of opening one.
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
