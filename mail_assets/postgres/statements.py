"""Named SQL statements, read from sql/NAME.sql.

What lives here: finding a statement by file and name. A file holds statements that each
begin with a line `-- name: NAME`; the comment lines below it belong to the statement.
What does not: SQL. In Python there is only what must run before there are tables.
"""

import functools
import re
from typing import LiteralString

from mail_assets.checkout import sql_folder

SQL = sql_folder()

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


@functools.cache
def _statements(file: str) -> dict[str, str]:
    _, *pieces = _NAME.split((SQL / f"{file}.sql").read_text(encoding="utf-8"))
    return {name: text.strip() for name, text in zip(pieces[::2], pieces[1::2], strict=True)}


def statement(file: str, name: str) -> LiteralString:
    """Return the statement `name` of sql/`file`.sql.

    The text is our own and constant: that is what psycopg's LiteralString stands for.

    Raises:
        KeyError: there is none of that name.
    """
    try:
        return _statements(file)[name]
    except KeyError:
        raise KeyError(f"sql/{file}.sql has no statement named {name}") from None
