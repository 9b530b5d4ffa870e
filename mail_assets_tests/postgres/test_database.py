"""Connections start, create and migrate what is missing; conflicts are retried."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mail_assets.postgres.database import (
    DAGSTER,
    MAIL,
    TRIES,
    Database,
    embedded,
    embedded_dsn,
    retry_conflicts,
)
from mail_assets.postgres.embedded import Cluster
from mail_assets_tests.waits import LONG

CONNECT = """
import sys
from pathlib import Path
from mail_assets.postgres.database import Database

with Database(Path(sys.argv[1])).connect("test") as connection:
    print(connection.execute("select count(*) from messages").fetchone()[0])
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A home whose embedded server is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="mail-assets-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        embedded(Path(folder)).remove()


def test_the_first_connection_makes_everything(home: Path) -> None:
    command = [sys.executable, "-c", CONNECT, str(home)]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = [process.communicate(timeout=LONG) for process in processes]
    assert [out for out, _ in answers] == ["0\n"] * 3, answers
    with psycopg.connect(embedded(home).dsn("postgres")) as connection:
        rows = connection.execute("select datname from pg_database").fetchall()
    assert {MAIL, DAGSTER} <= {name for (name,) in rows}


def test_a_stopped_server_starts_on_demand_with_its_data(home: Path) -> None:
    with Database(home).connect("test") as connection:
        connection.execute("insert into partitions values ('a', 'l', 'm', 'i', 'd', '{}')")
    embedded(home).stop()
    with Database(home).connect("test") as connection:
        assert connection.execute("select count(*) from partitions").fetchone() == (1,)


def test_a_running_server_is_asked_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(home)
    opened: list[str] = []
    connect = psycopg.connect

    def open_another(dsn: str, **options: Any) -> psycopg.Connection:
        opened.append(dsn)
        return connect(dsn, **options)

    with database.connect("test"):
        monkeypatch.setattr(Cluster, "_answer", lambda _: pytest.fail("it is looked at again"))
        monkeypatch.setattr(psycopg, "connect", open_another)
        for _ in range(5):
            with database.connect("test"):
                pass
    monkeypatch.undo()  # to remove it, it is looked at
    assert len(opened) == 5


@pytest.mark.parametrize("end", ["killed", "removed"])
def test_a_server_that_has_ended_is_started_again(home: Path, end: str) -> None:
    database, server = Database(home), embedded(home)
    with database.connect("test") as connection:
        connection.execute("insert into partitions values ('a', 'l', 'm', 'i', 'd', '{}')")
    if end == "killed":
        pid = int((server.paths.data / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
    else:
        server.remove()
    with database.connect("test") as connection:
        rows = connection.execute("select count(*) from partitions").fetchone()
    assert rows == (1 if end == "killed" else 0,)


def test_dagsters_url_names_its_driver(home: Path) -> None:
    dsn = embedded_dsn(home, DAGSTER, scheme="postgresql+psycopg2")
    assert dsn.startswith("postgresql+psycopg2://postgres@/dagster?host=")
    with psycopg.connect(dsn.replace("+psycopg2", "")) as connection:
        assert connection.info.dbname == DAGSTER


def test_a_users_own_server_is_migrated(tmp_path: Path, postgres_dsn: str) -> None:
    with Database(tmp_path / "home", postgres_dsn).connect("test") as connection:
        assert connection.execute("select count(*) from messages").fetchone() == (0,)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("role", "run", "name"),
    [
        ("messages", "1a2b3c4d", "mail_assets/messages/1a2b3c4d"),
        ("search", "", "mail_assets/search"),
        ("x" * 100, "", f"mail_assets/{'x' * 51}"),
    ],
)
def test_a_connection_says_who_it_is(
    tmp_path: Path, postgres_dsn: str, role: str, run: str, name: str
) -> None:
    with Database(tmp_path, postgres_dsn).connect(role, run) as connection:
        shown = connection.execute("select current_setting('application_name')").fetchone()
        assert shown == (name,)


def test_a_connection_commits_each_statement_and_closes(tmp_path: Path, postgres_dsn: str) -> None:
    database = Database(tmp_path, postgres_dsn)
    with database.connect("test") as first, database.connect("test") as second:
        first.execute("insert into partitions values ('a', 'l', 'm', 'i', 'd', '{}')")
        assert second.execute("select count(*) from partitions").fetchone() == (1,)
    assert first.closed
    assert second.closed


def test_a_missing_server_is_an_operational_error(tmp_path: Path) -> None:
    dsn = f"postgresql://postgres@/mail?host={tmp_path}"
    with (
        pytest.raises(psycopg.OperationalError, match="connection"),
        Database(tmp_path, dsn).connect("test"),
    ):
        pass


class Adding:
    """Adds 1 to a row in a snapshot, while another changes it in the first `disturbed` tries."""

    def __init__(self, dsn: str, disturbed: int) -> None:
        self.dsn, self.disturbed, self.tries = dsn, disturbed, 0
        self._execute("create table counter as select 0 as value")

    def __call__(self) -> int:
        self.tries += 1
        with psycopg.connect(self.dsn, autocommit=True) as connection, connection.transaction():
            connection.execute("set transaction isolation level repeatable read")
            connection.execute("select from counter")
            if self.tries <= self.disturbed:
                self._execute("update counter set value = value + 100")
            query = "update counter set value = value + 1 returning value"
            [(value,)] = connection.execute(query).fetchall()
        return int(value)

    def _execute(self, query: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(query.encode())


@pytest.mark.parametrize("disturbed", [0, 1, TRIES - 1])
def test_a_conflict_is_retried(postgres_dsn: str, disturbed: int) -> None:
    adding = Adding(postgres_dsn, disturbed)
    assert retry_conflicts(adding) == 100 * disturbed + 1
    assert adding.tries == disturbed + 1


def test_a_conflict_in_every_try_is_raised(postgres_dsn: str) -> None:
    adding = Adding(postgres_dsn, TRIES)
    with pytest.raises(psycopg.errors.SerializationFailure, match="concurrent update"):
        retry_conflicts(adding)
    assert adding.tries == TRIES


def test_other_errors_are_not_retried(postgres_dsn: str) -> None:
    tries = []

    def refused() -> None:
        tries.append(1)
        with psycopg.connect(postgres_dsn) as connection:
            connection.execute("select 1 / 0")

    with pytest.raises(psycopg.errors.DivisionByZero):
        retry_conflicts(refused)
    assert len(tries) == 1
