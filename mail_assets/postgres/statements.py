"""The named SQL statements of sql/NAME.sql, and reading a value, a column or rows, now or later.

The file of a module has its name. Each statement begins with a line `-- name: NAME`; the comment
lines below that line belong to the statement. SQL in Python is only what must run before there are
tables.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, LiteralString, TypeVar

import psycopg
from psycopg import sql

from mail_assets.checkout import sql_folder

SQL = sql_folder()

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


def statement(file: str, name: str) -> LiteralString:
    """Return the statement `name` of sql/`file`.sql.

    The text is ours and constant, as LiteralString requires.
    """
    try:
        return _statements(file)[name]
    except KeyError:
        raise KeyError(f"sql/{file}.sql has no statement named {name}") from None


@functools.cache
def _statements(file: str) -> dict[str, LiteralString]:
    _, *pieces = _NAME.split((SQL / f"{file}.sql").read_text(encoding="utf-8"))
    return {name: text.strip() for name, text in zip(pieces[::2], pieces[1::2], strict=True)}


Query = LiteralString | sql.Composed


def read_value(
    connection: psycopg.Connection, query: Query, parameters: Mapping[str, Any] | None = None
) -> Any:
    """Return the first value of the first row, None if there is no row."""
    row = connection.execute(query, parameters).fetchone()
    return row[0] if row else None


def read_column(
    connection: psycopg.Connection, query: Query, parameters: Mapping[str, Any] | None = None
) -> list[Any]:
    """Return the first value of each row."""
    return [row[0] for row in connection.execute(query, parameters).fetchall()]


T = TypeVar("T")


def read_as(
    connection: psycopg.Connection,
    make: Callable[..., T],
    query: Query,
    parameters: Mapping[str, Any] | None = None,
) -> list[T]:
    """Return what `make` makes of the columns of each row."""
    return [make(*row) for row in connection.execute(query, parameters).fetchall()]


@contextmanager
def planned_once(connection: psycopg.Connection) -> Iterator[None]:
    """Give statements the plan that they have for any values, on a connection of a search.

    For statements that read rows by their keys: planning takes longer than such a statement. Others
    are planned for their values. In a pipeline PostgreSQL takes the setting back after an error.
    """
    connection.execute("set plan_cache_mode = force_generic_plan")
    try:
        yield
    finally:
        with suppress(psycopg.Error):
            connection.execute("set plan_cache_mode = force_custom_plan")


T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


@dataclass(frozen=True)
class Pending(Generic[T_co]):
    """The answer of a statement that was sent in a pipeline.

    `read` returns it. Read after the pipeline has ended: within it, the first answer that is read
    costs a round trip of its own.
    """

    read: Callable[[], T_co]

    @staticmethod
    def known(value: U) -> "Pending[U]":
        """Return an answer that needs no statement."""
        return Pending(lambda: value)

    def then(self, convert: Callable[[T_co], U]) -> "Pending[U]":
        """Return what `convert` makes of the answer once it is read."""
        return Pending(lambda: convert(self.read()))
