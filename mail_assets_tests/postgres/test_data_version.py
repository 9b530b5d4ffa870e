"""Data of another major version of PostgreSQL are never passed over for an empty database."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from mail_assets.postgres.binaries import find_bindir, major_version
from mail_assets.postgres.cluster import Cluster
from mail_assets.postgres.errors import PostgresError


def write_data(folder: Path, version: str) -> None:
    """Leave what tells of a cluster of a version."""
    folder.mkdir(parents=True)
    (folder / "PG_VERSION").write_text(f"{version}\n")


def test_data_of_another_version_are_refused_with_the_remedy(folder: Path) -> None:
    server = Cluster(folder / "pg")
    new = server.paths.major
    write_data(folder / "pg" / f"pg{new - 2}", f"{new - 2}")
    write_data(folder / "pg" / f"pg{new - 1}", f"{new - 1}")
    with pytest.raises(PostgresError) as refused:
        server.start()
    message = str(refused.value)
    assert f"{folder}/pg/pg{new - 1}' was written by PostgreSQL {new - 1}" in message
    assert f"is PostgreSQL {new} and cannot read it" in message
    assert "MAIL_PG_BIN" in message
    assert "pg_dumpall" in message
    assert not server.paths.data.exists(), "an empty cluster was begun"


@pytest.mark.parametrize(
    ("name", "version"),
    [("pg17.kept", "17"), ("pg17.new", "17"), ("pg_17", "17"), ("pg9.6", "9.6")],
)
def test_data_set_aside_or_never_finished_are_no_hindrance(
    folder: Path, name: str, version: str
) -> None:
    write_data(folder / "pg" / name, version)
    assert Cluster(folder / "pg").start().running()


def test_data_taken_over_already_are_used(folder: Path) -> None:
    server = Cluster(folder / "pg").start()
    server.stop()
    write_data(folder / "pg" / "pg9", "9")
    assert server.start().running()


def other_binaries() -> Path | None:
    """Return binaries of an older server that a distribution has installed, if there are any."""
    newest = major_version(find_bindir())
    for bindir in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (bindir / "postgres").exists() and major_version(bindir) < newest:
            return bindir
    return None


def test_the_remedy_takes_the_data_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = other_binaries()
    if old is None:
        pytest.skip("no server of an older version below /usr/lib/postgresql")
    monkeypatch.setenv("MAIL_PG_BIN", str(old))
    former = Cluster(folder / "pg").start()
    with psycopg.connect(former.dsn("postgres"), autocommit=True) as connection:
        connection.execute("create database mail")
    with psycopg.connect(former.dsn("mail")) as connection:
        connection.execute("create table kept (n) as select 1")
    former.stop()
    monkeypatch.delenv("MAIL_PG_BIN")
    with pytest.raises(PostgresError) as refused:
        Cluster(folder / "pg").start()

    commands = re.findall(r"^  (.*)$", str(refused.value), re.MULTILINE)
    script = "\n".join(commands).replace("OLD", str(old))
    script = script.replace("mail-assets up", "start").replace("mail-assets down", "stop")
    server = '"$PYTHON" -c "import sys; from pathlib import Path; from mail_assets.postgres.cluster'
    server += ' import Cluster; Cluster(Path(sys.argv[1])).%s()" "$ROOT"'
    functions = f"start() {{ {server % 'start'}; }}\nstop() {{ {server % 'stop'}; }}\n"
    place = {"PYTHON": sys.executable, "ROOT": str(folder / "pg")}
    done = subprocess.run(
        ["bash", "-c", functions + script],
        env={**os.environ, **place},
        capture_output=True,
        text=True,
        check=False,
    )
    with psycopg.connect(Cluster(folder / "pg").start().dsn("mail")) as connection:
        found = connection.execute("select n from kept").fetchall()
    assert found == [(1,)], done.stdout + done.stderr
