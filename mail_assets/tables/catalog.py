"""Describe the tables for people: full name, columns with their descriptions, sample rows."""

import json
from typing import NamedTuple

import pandas as pd
import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import SQL, statement

#: The figure of a month that counts its rows, by table.
ROW_FIGURES = {"messages": "stored", "chunks": "chunks", "vectors": "chunks", "words": "documents"}


class Column(NamedTuple):
    """A column of a table; `description` is its comment in the database (sql/007_comments.sql)."""

    name: str
    type: str
    nullable: bool
    description: str | None


#: Every table that is an asset, with its columns; `declared_columns` reads it.
DECLARED = SQL / "columns.json"


def declared_columns(table: str) -> list[Column]:
    """Return the columns of a table in order, as they are declared without a database."""
    return [Column(*column) for column in json.loads(DECLARED.read_text())[table]]


def columns(connection: psycopg.Connection, table: str) -> list[Column]:
    """Return the columns of a table in order."""
    rows = connection.execute(statement("catalog", "columns"), {"table": table}).fetchall()
    return [Column(*row) for row in rows]


def full_name(connection: psycopg.Connection, table: str) -> str:
    """Return "database.schema.table"."""
    row = connection.execute(statement("catalog", "name"), {"table": table}).fetchone()
    return str(row[0]) if row else table


def row_count(connection: psycopg.Connection, table: str) -> int:
    """Return the number of rows of an asset's table, as its months recorded it.

    Of `vectors` and `words` those of the index that each month was last written to.
    """
    if table in ROW_FIGURES:
        query, asked = "rows_recorded", {"table": table, "figure": ROW_FIGURES[table]}
    else:
        query, asked = f"rows_{table}", {}
    row = connection.execute(statement("catalog", query), asked).fetchone()
    return int(row[0]) if row else 0


def sample(connection: psycopg.Connection, table: str, month: ListMonth | None) -> pd.DataFrame:
    """Return a few rows of a month (of the whole corpus for threads), as a reader wants them."""
    with connection.cursor() as cursor:
        cursor.execute(statement(table, "sample"), month.columns if month else {})
        names = [column.name for column in cursor.description or ()]
        return pd.DataFrame(cursor.fetchall(), columns=names)
