"""States of partitions: one row each, one run at a time."""

import threading

import psycopg
import pytest

from mail_assets.month import ListMonth
from mail_assets.tables.partitions import (
    Counts,
    Partition,
    State,
    digest_of,
    locked,
    read_state,
    write_state,
)
from mail_assets_tests.waits import LONG

MARCH, APRIL = ListMonth("dev", "2024-03"), ListMonth("dev", "2024-04")
HERE = Partition("messages", MARCH)
#: How many there are in this database.
LOCKS = (
    "select count(*) from pg_locks join pg_database on oid = database"
    " where locktype = 'advisory' and datname = current_database()"
)
STATE = State("inputs", "digest", {"found": 3, "seconds": 0.25})


def updated(connection: psycopg.Connection) -> object:
    return connection.execute("select updated_at, ctid from partitions").fetchone()


def test_state_is_read_as_written(migrated: psycopg.Connection) -> None:
    assert read_state(migrated, HERE) is None
    write_state(migrated, HERE, STATE)
    assert read_state(migrated, HERE) == STATE
    for other in [
        Partition("chunks", MARCH),
        Partition("messages", APRIL),
        Partition("messages", ListMonth("d", "2024-03")),
        Partition("messages", None),
    ]:
        assert read_state(migrated, other) is None


@pytest.mark.parametrize(("change", "rewritten"), [
    ({"counts": {"found": 4}}, False),
    ({"inputs": "others"}, True),
    ({"digest": "another"}, True),
])  # fmt: skip
def test_state_is_rewritten_when_inputs_or_digest_change(
    migrated: psycopg.Connection, change: dict[str, str | Counts], rewritten: bool
) -> None:
    write_state(migrated, HERE, STATE)
    before = updated(migrated)
    fresh = STATE._replace(**change)  # type: ignore[arg-type]
    write_state(migrated, HERE, fresh)
    assert (updated(migrated) != before) is rewritten
    assert read_state(migrated, HERE) == (fresh if rewritten else STATE)


def test_digest_tells_where_each_part_ends() -> None:
    assert digest_of("a", 1, b"x") == digest_of("a", "1", "x")
    digests = [digest_of(*parts) for parts in [("ab", "c"), ("a", "bc"), ("abc",), ("abc", "")]]
    assert len(set(digests)) == 4


def test_one_run_holds_a_partition(migrated: psycopg.Connection, mail_dsn: str) -> None:
    entered = threading.Event()

    def second() -> None:
        with psycopg.connect(mail_dsn, autocommit=True) as other, locked(other, HERE):
            entered.set()

    waiting = f"{LOCKS} and not granted"
    run = threading.Thread(target=second)
    with locked(migrated, HERE):
        run.start()
        while migrated.execute(waiting).fetchone() != (1,):
            assert run.is_alive()
        assert not entered.is_set()
    run.join(LONG)
    assert entered.is_set()


def test_other_partitions_go_on_meanwhile(migrated: psycopg.Connection, mail_dsn: str) -> None:
    with (
        psycopg.connect(mail_dsn, autocommit=True) as other,
        locked(migrated, HERE),
        locked(other, HERE._replace(month=APRIL)),
        locked(other, HERE._replace(asset="chunks")),
    ):
        assert other.execute(f"{LOCKS} and granted").fetchone() == (3,)


@pytest.mark.parametrize("killed", [False, True])
def test_failed_run_frees_lock(migrated: psycopg.Connection, mail_dsn: str, killed: bool) -> None:
    def fails() -> None:
        with (
            psycopg.connect(mail_dsn, autocommit=True) as other,
            locked(other, HERE),
            other.transaction(),
        ):
            if killed:
                pid = other.info.backend_pid
                migrated.execute("select pg_terminate_backend(%s, 10000)", (pid,))
            other.execute("select 1 / 0")

    expected = psycopg.OperationalError if killed else psycopg.errors.DivisionByZero
    with pytest.raises(expected):
        fails()
    with locked(migrated, HERE):
        pass
