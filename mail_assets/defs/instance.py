"""The Dagster instance of the settings, and what is said where its storage fails.

Dagster retries and then raises errors of two libraries, hundreds of lines long.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from dagster_postgres.utils import DagsterPostgresException
from sqlalchemy import exc

from mail_assets.defs.dagster_home import use_dagster_home
from mail_assets.postgres.database import embedded
from mail_assets.postgres.server_log import find_last_failure
from mail_assets.settings.environment import Settings
from mail_assets.settings.errors import hide_secrets

#: What a server raises that is down, refuses, has no room, or ends meanwhile. Wrong SQL is none.
_FAILURES = (
    DagsterPostgresException,
    exc.OperationalError,
    exc.InterfaceError,
)


class DagsterStorageError(RuntimeError):
    """Dagster's storage fails: one line with the variable or the server's log, and the reason."""


@contextmanager
def open_instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """Open the instance of DAGSTER_HOME, which is set.

    Raises:
        DagsterStorageError: its storage cannot be opened, or fails while the instance is used.
    """
    use_dagster_home(settings)
    try:
        with dg.DagsterInstance.get() as instance:
            yield instance
    except _FAILURES as error:
        raise DagsterStorageError(_describe(settings, _reason(error))) from error


def _describe(settings: Settings, reason: str) -> str:
    if settings.dagster_url:
        url = hide_secrets(settings.dagster_url)
        return f"DAGSTER_POSTGRES_URL={url}, Dagster's storage, fails: {reason}"
    log = embedded(settings.home).paths.log
    said = find_last_failure(log)
    quoted = f"; {log} says: {said}" if said else ""
    return f"Dagster's storage in the embedded server fails: {reason}{quoted}"


def _reason(error: BaseException) -> str:
    """Return the server's or driver's own words, which have neither statements nor passwords."""
    cause: BaseException | None = error
    while cause:
        if isinstance(cause, exc.DBAPIError):
            return " ".join(str(cause.orig).split())
        cause = cause.__cause__
    return str(error)
