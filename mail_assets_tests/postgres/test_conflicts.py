"""A transaction that another stands in the way of is made again, but not for ever."""

import psycopg
import pytest

from mail_assets.postgres.database import TRIES, retry_conflicts


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
def test_what_others_disturb_is_made_again(postgres_dsn: str, disturbed: int) -> None:
    adding = Adding(postgres_dsn, disturbed)
    assert retry_conflicts(adding) == 100 * disturbed + 1
    assert adding.tries == disturbed + 1


def test_what_others_disturb_every_time_fails_as_it_is(postgres_dsn: str) -> None:
    adding = Adding(postgres_dsn, TRIES)
    with pytest.raises(psycopg.errors.SerializationFailure, match="concurrent update"):
        retry_conflicts(adding)
    assert adding.tries == TRIES


def test_any_other_error_ends_it_at_once(postgres_dsn: str) -> None:
    tries = []

    def refused() -> None:
        tries.append(1)
        with psycopg.connect(postgres_dsn) as connection:
            connection.execute("select 1 / 0")

    with pytest.raises(psycopg.errors.DivisionByZero):
        retry_conflicts(refused)
    assert len(tries) == 1
