"""Dagster's own storage: the server of DAGSTER_POSTGRES_URL, else the embedded one.

dagster.yaml can read a variable but has no default for it, and cannot start a server. This class
does both, so that any `dagster` command with our DAGSTER_HOME works. It reads only the settings it
needs: a mistake in lists.toml is the code location's error, which the webserver shows.
It relies on private modules of Dagster (1.13.27); a test covers it.
"""

from collections.abc import Mapping
from typing import Any, Self

from dagster._core.storage.base_storage import DagsterStorage
from dagster._serdes import ConfigurableClass, ConfigurableClassData
from dagster_postgres import DagsterPostgresStorage

from mail_assets.postgres.database import DAGSTER, embedded_dsn
from mail_assets.settings.dagster import load_dagster_settings


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
        url = settings.postgres_url or embedded_dsn(
            settings.home, DAGSTER, scheme="postgresql+psycopg2"
        )
        return DagsterPostgresStorage(url, inst_data=inst_data)  # type: ignore[return-value]
