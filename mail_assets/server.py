"""What `mail-assets up` and `status` do: make the home ready, say what is there."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psycopg

from mail_assets.encoding.encoder import fingerprint
from mail_assets.settings import PROJECT, Settings
from mail_assets.steps.vectors import index_spec
from mail_assets.store.binaries import PostgresError
from mail_assets.store.database import Database, embedded


def server_up(settings: Settings) -> Iterator[str]:
    """Start and migrate the database, link dagster.yaml into the Dagster home."""
    settings.home.mkdir(parents=True, exist_ok=True)
    with Database(settings.home, settings.pg_dsn).connect("up") as connection:
        version = connection.execute("select current_setting('server_version')").fetchone()
    yield f"postgres {version[0] if version else '?'}: {_where(settings)}"
    yield f"dagster home: {link_dagster_home(settings.dagster_home)}"


def link_dagster_home(home: Path) -> Path:
    """Make a DAGSTER_HOME whose dagster.yaml is the project's."""
    home.mkdir(parents=True, exist_ok=True)
    link, target = home / "dagster.yaml", PROJECT / "dagster.yaml"
    if not link.is_symlink() and link.exists():
        return home  # the user's own
    if not link.exists() or link.resolve() != target:
        with contextlib.suppress(FileExistsError):  # two commands at once
            link.unlink(missing_ok=True)
            link.symlink_to(target)
    return home


def read_status(settings: Settings) -> dict[str, str]:
    """Return the settings in force and the state of what they name; starts nothing."""
    return {
        "home": str(settings.home),
        "lists": f"{settings.lists_file}: {', '.join(settings.lists)}",
        "postgres": _postgres(settings),
        "store": settings.store,
        "vectors": settings.vectors,
        "encoder": f"{settings.encoder} {settings.precision}",
        "fingerprint": fingerprint(settings.encoder, settings.precision),
        "index": index_spec(settings.encoder, settings.precision).name,
    }


def _postgres(settings: Settings) -> str:
    try:
        if settings.pg_dsn:
            with psycopg.connect(settings.pg_dsn, connect_timeout=5):
                return f"{_where(settings)}: answers"
        up = embedded(settings.home).running()
        return f"{_where(settings)}: {'running' if up else 'stopped, starts on demand'}"
    except (PostgresError, psycopg.OperationalError) as error:
        return f"{_where(settings)}: {error}".strip()


def _where(settings: Settings) -> str:
    if not settings.pg_dsn:
        return f"embedded in {embedded(settings.home).root}"
    facts = psycopg.conninfo.conninfo_to_dict(settings.pg_dsn)
    return f"{facts.get('host', 'local')}/{facts.get('dbname', '')}"
