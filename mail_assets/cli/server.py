"""The embedded server as the commands up, down and status see it, and what to call a server."""

from pathlib import Path

import psycopg

from mail_assets.postgres.cluster import Cluster
from mail_assets.postgres.database import DAGSTER, MAIL, embedded, embedded_dsn
from mail_assets.postgres.errors import PostgresError
from mail_assets.settings.environment import Settings


def find_server(settings: Settings) -> Cluster | None:
    """Return the embedded server, None where it was never started; to open it makes its folder."""
    return embedded(settings.home) if _folder(settings).is_dir() else None


def describe_address(settings: Settings) -> str:
    """Return where the database is, without a password: a folder, or HOST/DATABASE."""
    if not settings.pg_dsn:
        return f"embedded in {embedded(settings.home).paths.root}"
    facts = psycopg.conninfo.conninfo_to_dict(settings.pg_dsn)
    return f"{facts.get('host', 'local')}/{facts.get('dbname', '')}"


def describe_state(settings: Settings) -> str:
    """Return where the database is and whether it runs or answers; starts nothing."""
    server = find_server(settings)
    if not settings.pg_dsn and not server:
        return f"embedded in {_folder(settings)}: not made yet, starts on demand"
    try:
        if not settings.pg_dsn and server:
            state = "running" if server.running() else "stopped, starts on demand"
        else:
            with psycopg.connect(settings.pg_dsn, connect_timeout=5):
                state = "answers"
    except (PostgresError, psycopg.OperationalError) as error:
        state = " ".join(str(error).split())
    return f"{describe_address(settings)}: {state}"


def database_urls(settings: Settings) -> dict[str, str]:
    """Return the URLs of the mail database and of Dagster's, for psycopg, by name.

    The embedded server is started for them, and makes them where they are missing.
    """
    return {
        MAIL: settings.database.url(),
        DAGSTER: settings.dagster_url.replace("postgresql+psycopg2://", "postgresql://", 1)
        or embedded_dsn(settings.home, DAGSTER),
    }


def _folder(settings: Settings) -> Path:
    return settings.home / "postgres"
