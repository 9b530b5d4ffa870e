"""The metadata of a table in the UI: its name, columns and rows, and a few rows as a sample."""

from typing import Any

import dagster as dg
import pandas as pd
import psycopg

from mail_assets.month import ListMonth
from mail_assets.tables.catalog import columns, full_name, sample


def table_metadata(connection: psycopg.Connection, table: str, rows: int) -> dict[str, Any]:
    """Return Dagster's own metadata of a table: name, columns, and how many rows it has."""
    schema = [
        dg.TableColumn(
            column.name,
            column.type,
            column.description,
            dg.TableColumnConstraints(nullable=column.nullable),
        )
        for column in columns(connection, table)
    ]
    return {
        "dagster/table_name": full_name(connection, table),
        "dagster/column_schema": dg.TableSchema(schema),
        "dagster/row_count": rows,
    }


def sample_metadata(
    connection: psycopg.Connection, table: str, month: ListMonth | None
) -> dict[str, dg.MarkdownMetadataValue]:
    """Return a few rows of a month, to read; of the whole table where it has no months."""
    return {"sample": rows_as_markdown(sample(connection, table, month))}


def rows_as_markdown(rows: pd.DataFrame) -> dg.MarkdownMetadataValue:
    """Return rows as the UI shows them."""
    return dg.MetadataValue.md(rows.to_markdown(index=False) if len(rows) else "no rows")
