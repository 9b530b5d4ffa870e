"""Transactions that the server ends for the sake of another: they are made again."""

import contextlib
from collections.abc import Callable
from typing import TypeVar

import psycopg

_T = TypeVar("_T")

#: What another transaction is the cause of; where this one is made again, that one is over.
CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)

#: The other may be followed by more of its kind: a busy backfill commits a month every few seconds.
TRIES = 5


def retry_conflicts(transact: Callable[[], _T]) -> _T:
    """Call a function whose one transaction can be made again, until no other stands in its way.

    Raises:
        psycopg.OperationalError: others stood in its way `TRIES` times; this is the last of them.
    """
    for _ in range(TRIES - 1):
        with contextlib.suppress(*CONFLICTS):
            return transact()
    return transact()
