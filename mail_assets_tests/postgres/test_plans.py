"""The plans of statements on the connections of searches follow the block that they are sent in."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import psycopg
import pytest
from psycopg.rows import dict_row

from mail_assets.postgres.plans import PlannedConnection, planned_once
from mail_assets.postgres.statements import read_value

SHOW = "show plan_cache_mode"
FOR_VALUES, ONCE = "force_custom_plan", "force_generic_plan"


@pytest.fixture
def connection(mail_dsn: str) -> Iterator[psycopg.Connection]:
    with PlannedConnection.connect(mail_dsn, autocommit=True) as connection:
        yield connection


def check_plans(connection: psycopg.Connection) -> None:
    """Check that statements have the plans of their blocks."""
    assert read_value(connection, SHOW) == FOR_VALUES
    with planned_once(connection):
        with planned_once(connection):
            assert read_value(connection, SHOW) == ONCE
        assert read_value(connection, SHOW) == ONCE
    assert read_value(connection, SHOW) == FOR_VALUES
    with connection.pipeline():
        before = connection.execute(SHOW)
        with planned_once(connection):
            rows = connection.cursor(row_factory=dict_row).execute(SHOW)
        after = connection.execute(SHOW)
    assert before.fetchone() == after.fetchone() == (FOR_VALUES,)
    assert rows.fetchone() == {"plan_cache_mode": ONCE}


def test_statements_have_the_plans_of_their_blocks(connection: psycopg.Connection) -> None:
    check_plans(connection)


@pytest.mark.parametrize("plans", [lambda _: nullcontext(), planned_once])
def test_plans_are_right_after_an_error(
    connection: psycopg.Connection,
    plans: Callable[[psycopg.Connection], AbstractContextManager[None]],
) -> None:
    connection.execute(SHOW)
    with planned_once(connection):
        connection.execute(SHOW)
    with plans(connection), pytest.raises(psycopg.errors.DivisionByZero):
        fail(connection)
    check_plans(connection)


def fail(connection: psycopg.Connection) -> None:
    """Switch the plans, and fail in the same round trip, with which the switch is taken back."""
    with connection.pipeline():
        connection.execute(SHOW)
        connection.execute("select 1 / 0")


def test_plans_are_right_after_a_rollback(connection: psycopg.Connection) -> None:
    with connection.transaction(force_rollback=True), planned_once(connection):
        connection.execute(SHOW)
    check_plans(connection)


def test_other_connections_plan_as_their_server_does(mail_dsn: str) -> None:
    with psycopg.connect(mail_dsn) as connection, planned_once(connection):
        assert read_value(connection, SHOW) == "auto"
