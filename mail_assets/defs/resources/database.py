"""The mail database: the user's own server or the embedded one, which starts on demand."""

from contextlib import AbstractContextManager
from pathlib import Path

import dagster as dg
import psycopg
from pydantic import Field

from mail_assets.postgres.database import Database
from mail_assets.tables.forget_keys import KeySource, find_key


class DatabaseResource(dg.ConfigurableResource):
    """Connections to the mail database."""

    home: str = Field(description="MAIL_HOME; the folder of the embedded server where dsn is empty")
    dsn: str = Field(default="", description="MAIL_PG_DSN; empty for the embedded server")
    forget_key: str = Field(
        default="", description="MAIL_FORGET_KEY; empty where the key is in a file of home"
    )

    @property
    def database(self) -> Database:
        """The mail database, not opened."""
        return Database(Path(self.home), self.dsn)

    @property
    def key_source(self) -> KeySource:
        """Where the key of the digests of forgotten mail is."""
        return find_key(Path(self.home), self.dsn, self.forget_key)

    def connect(self, role: str, run: str = "") -> AbstractContextManager[psycopg.Connection]:
        """Open a connection that pg_stat_activity shows under the role and the run."""
        return self.database.connect(role, run[:8])
