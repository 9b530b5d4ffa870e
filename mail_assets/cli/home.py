"""What `mail-assets up`, `down` and `status` do: make the home ready, say what is there.

`python -m mail_assets.cli.home remove` deletes the embedded server with its data, which may lie
outside the home: see postgres/cluster.py.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg

from mail_assets.defs.dagster_home import use_dagster_home
from mail_assets.encoding.open import compute_fingerprint
from mail_assets.postgres.binaries import PostgresError
from mail_assets.postgres.database import embedded
from mail_assets.settings.environment import Settings, load_settings
from mail_assets.steps.vector_index import index_name


def server_up(settings: Settings) -> Iterator[str]:
    """Start and migrate the database, link dagster.yaml into the Dagster home."""
    settings.home.mkdir(parents=True, exist_ok=True)
    with settings.database.connect("up") as connection:
        version = connection.execute("select current_setting('server_version')").fetchone()
    yield f"postgres {version[0] if version else '?'}: {_where(settings)}"
    yield f"dagster home: {use_dagster_home(settings)}"


def server_down(settings: Settings) -> bool:
    """Stop the embedded server; say whether it was up."""
    return _has_cluster(settings) and embedded(settings.home).stop()


def server_remove(settings: Settings) -> None:
    """Stop the embedded server and delete its data."""
    if _has_cluster(settings):
        embedded(settings.home).remove()


def read_status(settings: Settings) -> dict[str, str]:
    """Return the settings in force and the state of what they name; starts nothing."""
    return {
        "home": str(settings.home),
        "lists": f"{settings.lists_file}: {', '.join(settings.lists)}",
        "postgres": _postgres(settings),
        "store": settings.store,
        "vectors": settings.vectors,
        "encoder": f"{settings.encoder} {settings.precision}",
        "fingerprint": compute_fingerprint(settings.encoder, settings.precision),
        "index": index_name(settings.encoder, settings.precision),
    }


def _postgres(settings: Settings) -> str:
    if not settings.pg_dsn and not _has_cluster(settings):
        return f"embedded in {_cluster_root(settings)}: not made yet, starts on demand"
    try:
        if not settings.pg_dsn:
            up = embedded(settings.home).running()
            return f"{_where(settings)}: {'running' if up else 'stopped, starts on demand'}"
        with psycopg.connect(settings.pg_dsn, connect_timeout=5):
            return f"{_where(settings)}: answers"
    except (PostgresError, psycopg.OperationalError) as error:
        return f"{_where(settings)}: {' '.join(str(error).split())}"


def _where(settings: Settings) -> str:
    if not settings.pg_dsn:
        return f"embedded in {embedded(settings.home).root}"
    facts = psycopg.conninfo.conninfo_to_dict(settings.pg_dsn)
    return f"{facts.get('host', 'local')}/{facts.get('dbname', '')}"


def _has_cluster(settings: Settings) -> bool:
    """Say whether there is an embedded server; to open one would make its folder."""
    return _cluster_root(settings).is_dir()


def _cluster_root(settings: Settings) -> Path:
    return settings.home / "postgres"


if __name__ == "__main__":
    if sys.argv[1:] != ["remove"]:
        sys.exit("usage: python -m mail_assets.cli.home remove")
    server_remove(load_settings())
