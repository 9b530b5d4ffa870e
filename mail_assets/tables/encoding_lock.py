"""Let one process of a machine encode at a time.

Two encoders beside each other take the cores from one another and need the memory twice. Processes
of other machines go on: the lock carries the machine's name.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from mail_assets.postgres.statements import statement


@contextmanager
def encoding_lock(
    connection: psycopg.Connection, machine: str, report_wait: Callable[[], None]
) -> Iterator[None]:
    """Hold the lock of a machine while the block runs; `report_wait` is called before waiting."""
    parameters = {"machine": machine}
    row = connection.execute(statement("encoding_lock", "try_lock"), parameters).fetchone()
    if row != (True,):
        report_wait()
        connection.execute(statement("encoding_lock", "lock"), parameters)
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute(statement("encoding_lock", "unlock"), parameters)
