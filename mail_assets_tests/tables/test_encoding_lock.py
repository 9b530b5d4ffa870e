"""The lock of encoding: one process of a machine at a time, none that waits unseen."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

from mail_assets.tables.encoding_lock import encoding_lock


def fail() -> None:
    raise AssertionError("there is nobody to wait for")


@pytest.fixture
def other(migrated: psycopg.Connection, mail_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(mail_dsn, autocommit=True) as connection:
        yield connection


def test_a_second_process_waits_and_reports_it(
    migrated: psycopg.Connection, other: psycopg.Connection
) -> None:
    waits = threading.Event()
    entered = threading.Event()

    def second() -> None:
        with encoding_lock(other, "here", waits.set):
            entered.set()

    run = threading.Thread(target=second)
    with encoding_lock(migrated, "here", fail):
        run.start()
        assert waits.wait(30)
        assert not entered.is_set()
    run.join(30)
    assert entered.is_set()
    with encoding_lock(migrated, "here", fail):
        pass


def test_another_machine_does_not_wait(
    migrated: psycopg.Connection, other: psycopg.Connection
) -> None:
    with encoding_lock(migrated, "here", fail), encoding_lock(other, "there", fail):
        pass


def test_a_process_that_fails_or_dies_holds_nobody_up(
    migrated: psycopg.Connection, other: psycopg.Connection
) -> None:
    def encode(killed: bool) -> None:
        with encoding_lock(other, "here", fail):
            if killed:
                other.close()
            raise OSError("the encoder broke off")

    for killed in (False, True):
        with pytest.raises(OSError, match="broke off"):
            encode(killed)
        migrated.execute("set lock_timeout = '30s'")  # the server may take a moment to notice
        with encoding_lock(migrated, "here", lambda: None):
            pass
