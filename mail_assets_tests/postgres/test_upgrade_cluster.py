"""The data of another major version are taken over by dump and restore, and never lost."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from mail_assets.postgres import upgrade
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.errors import PostgresError
from mail_assets.postgres.programs import find_bindir, major_version
from mail_assets.postgres.upgrade import upgrade_cluster


@pytest.fixture
def old_binaries() -> Path:
    """The programs of an older version that a distribution has installed."""
    newest = major_version(find_bindir())
    for bindir in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (bindir / "postgres").exists() and major_version(bindir) < newest:
            return bindir
    pytest.skip("no server of an older version below /usr/lib/postgresql")


def fill(root: Path, old_binaries: Path) -> Cluster:
    """Leave a stopped cluster of an older version, with a role, two databases and a setting."""
    former = Cluster(root, old_binaries).start()
    with psycopg.connect(former.dsn("postgres"), autocommit=True) as connection:
        connection.execute("create role reader login")
        connection.execute("create database mail")
        connection.execute('create database "of somebody"')
    for name in ("mail", "of somebody"):
        with psycopg.connect(former.dsn(name)) as connection:
            connection.execute("create table kept (n) as select generate_series(1, 1000)")
            connection.execute("grant select on kept to reader")
    former.stop()
    return former


def kept(server: Cluster, name: str = "mail") -> tuple[object, ...] | None:
    with psycopg.connect(server.dsn(name)) as connection:
        return connection.execute(
            "select count(*), has_table_privilege('reader', 'kept', 'select') from kept"
        ).fetchone()


def rows_known(server: Cluster) -> object:
    """Return how many rows the planner thinks the table has; -1 where nobody has told it."""
    with psycopg.connect(server.dsn("mail")) as connection:
        query = "select reltuples from pg_class where relname = 'kept'"
        return connection.execute(query).fetchone()


def ignore(line: str) -> None:
    """Report nothing."""


@pytest.mark.slow
def test_all_databases_with_their_roles_are_taken_over_and_the_old_data_stay(
    folder: Path, old_binaries: Path
) -> None:
    root = folder / "pg"
    former = fill(root, old_binaries)
    with pytest.raises(PostgresError, match="`mail-assets upgrade`"):
        Cluster(root).start()

    done = upgrade_cluster(root, old_binaries, ignore)
    assert done is not None
    assert done.databases == ["mail", "of somebody", "postgres"]
    new = Cluster(root).start()
    for name in ("mail", "of somebody"):
        assert kept(new, name) == (1000, True)
    assert rows_known(new) == (1000,), "a dump has no statistics: they are taken"
    assert not (root / "upgrade").exists()
    new.stop()
    assert kept(former.start()) == (1000, True)
    former.stop()
    assert upgrade_cluster(root, old_binaries, ignore) is None


#: Upgrades argv[1] with the programs in argv[2], and dies when the first database is copied.
KILLED = """
import os, signal, sys
from pathlib import Path
from mail_assets.postgres.upgrade import upgrade_cluster
upgrade_cluster(
    Path(sys.argv[1]), Path(sys.argv[2]), lambda line: os.kill(os.getpid(), signal.SIGKILL)
)
"""


@pytest.mark.slow
def test_an_upgrade_that_was_killed_is_begun_anew(folder: Path, old_binaries: Path) -> None:
    root = folder / "pg"
    fill(root, old_binaries)
    command = [sys.executable, "-c", KILLED, str(root), str(old_binaries)]
    assert subprocess.run(command, env=os.environ, check=False).returncode == -signal.SIGKILL
    with pytest.raises(PostgresError, match="`mail-assets upgrade`"):
        Cluster(root).start()
    assert upgrade_cluster(root, old_binaries, ignore) is not None
    assert kept(Cluster(root).start()) == (1000, True)


def test_an_old_server_in_use_is_refused_and_goes_on(folder: Path, old_binaries: Path) -> None:
    root = folder / "pg"
    former = fill(root, old_binaries).start()
    with psycopg.connect(former.dsn("mail"), application_name="a backfill") as connection:
        with pytest.raises(PostgresError, match="in use: a backfill"):
            upgrade_cluster(root, old_binaries, ignore)
        assert connection.execute("select 1").fetchone() == (1,)
    former.stop()


def test_without_the_programs_of_the_old_version_it_says_how_to_get_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrade, "PLACES", ())
    data = folder / "pg" / "pg17"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("17\n")
    with pytest.raises(PostgresError, match="postgresql-17") as refused:
        upgrade_cluster(folder / "pg", None, ignore)
    assert "mail-assets upgrade --old-binaries" in str(refused.value)
    assert not (folder / "pg" / "pg18").exists()


def test_programs_of_a_third_version_are_refused(folder: Path) -> None:
    data = folder / "pg" / "pg9"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("9\n")
    with pytest.raises(PostgresError, match="not 9"):
        upgrade_cluster(folder / "pg", find_bindir(), ignore)
