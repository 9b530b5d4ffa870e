"""Dagster's own storage: the server of DAGSTER_POSTGRES_URL, else the embedded one.

dagster.yaml can read a variable but has no default for it, and cannot start a server. This
class does both, so that any `dagster` command with our DAGSTER_HOME just works. It stands on
private paths of Dagster (1.13.27); a test covers it.
"""

from collections.abc import Mapping
from typing import Any, Self

from dagster._core.storage.base_storage import DagsterStorage
from dagster._serdes import ConfigurableClass, ConfigurableClassData
from dagster_postgres import DagsterPostgresStorage

from mail_assets.postgres.database import DAGSTER, embedded_dsn
from mail_assets.settings.environment import load_settings


class MailStorage(DagsterStorage, ConfigurableClass):
    """What `storage: custom:` in dagster.yaml names; it hands over to DagsterPostgresStorage."""

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """Return nothing: the storage that is really made carries the data."""
        return None

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Return the configuration: none, the environment says it all."""
        return {}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> Self:
        """Return a Postgres storage, with a server behind it."""
        settings = load_settings()
        url = settings.dagster_url or embedded_dsn(
            settings.home, DAGSTER, scheme="postgresql+psycopg2"
        )
        return DagsterPostgresStorage(url, inst_data=inst_data)  # type: ignore[return-value]
