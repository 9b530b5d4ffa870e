"""Data that another major version of PostgreSQL has written, which no server but its own reads."""

import shlex
from pathlib import Path

from mail_assets.postgres.cluster_paths import PORT, ClusterPaths
from mail_assets.postgres.errors import PostgresError

_REMEDY = """\
{data} was written by PostgreSQL {old}; {binaries} is PostgreSQL {new} and cannot read it.
To stay with {old}, set MAIL_PG_BIN to the folder of its binaries. To take the data over to {new}, \
with OLD for that folder:
  export MAIL_PG_BIN=OLD; mail-assets up
  OLD/pg_dumpall -h {socket} -p {port} -U postgres --clean --if-exists -f {dump}
  mail-assets down; unset MAIL_PG_BIN
  mv {data} {kept}; mail-assets up
  {psql} -h {socket} -p {port} -U postgres -d template1 -f {dump}; mail-assets up
"""


def require_same_version(paths: ClusterPaths, binaries: Path) -> None:
    """Refuse to begin an empty cluster beside one that holds data of another major version.

    Raises:
        PostgresError: there is such data; the message has the commands that take it over.
    """
    if (paths.data / "PG_VERSION").exists():
        return
    others = [folder for folder in paths.root.glob("pg*") if _holds_data(folder)]
    if others:
        newest = max(others, key=lambda folder: int(folder.name.removeprefix("pg")))
        raise PostgresError(_describe(newest, paths, binaries))


def _holds_data(folder: Path) -> bool:
    """Return whether a folder is a data directory under its own name: not set aside, not begun."""
    version = folder / "PG_VERSION"
    major = folder.name.removeprefix("pg")
    return major.isdigit() and version.exists() and version.read_text().strip() == major


def _describe(data: Path, paths: ClusterPaths, binaries: Path) -> str:
    old = data.name.removeprefix("pg")
    places = {
        "data": data,
        "binaries": binaries,
        "socket": paths.socket_folder,
        "dump": paths.root / f"pg{old}.sql",
        "kept": paths.root / f"pg{old}.kept",
        "psql": binaries / "psql",
    }
    quoted = {name: shlex.quote(str(path)) for name, path in places.items()}
    return _REMEDY.format(**quoted, old=old, new=paths.major, port=PORT)
