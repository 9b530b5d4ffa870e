"""The server's log has a bound, and an error still quotes what the server said last."""

from pathlib import Path

import psycopg
import pytest

from mail_assets.postgres import programs
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.errors import PostgresError
from mail_assets.postgres.programs import find_last_failure, former_log, read_tail, rotate_log


def test_a_log_within_its_bound_is_left(tmp_path: Path) -> None:
    log = tmp_path / "postgres.log"
    rotate_log(log)
    log.write_text("one\n")
    rotate_log(log)
    assert log.read_text() == "one\n"
    assert not former_log(log).exists()


def test_a_running_server_goes_on_in_an_empty_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Cluster(folder / "pg").start()
    log = server.paths.log
    monkeypatch.setattr(programs, "MAX_LOG", 10)
    for round_ in ("first", "second"):
        with (
            psycopg.connect(server.dsn("postgres")) as connection,
            pytest.raises(psycopg.errors.UndefinedTable),
        ):
            connection.execute(f"select * from {round_}".encode())
        assert round_ in log.read_text()
        server.start()
        assert log.stat().st_size == 0
        assert round_ in former_log(log).read_text()
    assert "first" not in former_log(log).read_text(), "more than two logs are kept"


def test_an_error_quotes_the_log_that_was_begun_for_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Cluster(folder / "pg").start()
    server.stop()
    monkeypatch.setattr(programs, "MAX_LOG", 10)
    with (server.paths.data / "postgresql.auto.conf").open("a") as settings:
        settings.write("no_such_setting = 1\n")
    with pytest.raises(PostgresError, match="no_such_setting"):
        server.start()


def test_the_tail_of_a_log_is_its_last_lines_whatever_its_size(tmp_path: Path) -> None:
    log = tmp_path / "postgres.log"
    lines = [f"line {n} é\n" for n in range(10_000)]
    log.write_text("".join(lines))
    assert read_tail(log) == "".join(lines[-programs.TAIL :])
    log.write_text("")
    assert read_tail(log) == ""


PANIC = "2024-05-01 10:00:00 UTC [7] PANIC:  could not write to file: No space left on device"
FATAL = "2024-05-01 10:00:09 UTC [9] FATAL:  could not create lock file: No space left on device"
RECOVERING = "2024-05-01 10:00:01 UTC [8] FATAL:  the database system is in recovery mode"
SHOUTED = "2024-05-01 10:00:02 UTC [8] LOG:  statement that says FATAL"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([], ""),
        ([SHOUTED], ""),
        ([PANIC, SHOUTED, RECOVERING], PANIC),
        ([PANIC, RECOVERING, FATAL, SHOUTED], FATAL),
    ],
)
def test_the_last_failure_is_what_ended_the_server_and_not_who_asked_meanwhile(
    tmp_path: Path, lines: list[str], found: str
) -> None:
    log = tmp_path / "postgres.log"
    assert find_last_failure(log) == ""
    log.write_text("".join(f"{line}\n" for line in lines))
    assert find_last_failure(log) == found
