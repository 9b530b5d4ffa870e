"""The metadata of a table in the UI: its name, columns and rows, and a few rows as a sample."""

from typing import Any

import dagster as dg
import pandas as pd
import psycopg

from mail_assets.month import ListMonth
from mail_assets.tables.catalog import declared_columns, full_name, sample


def table_columns(table: str) -> dict[str, dg.TableSchema]:
    """Return the metadata of an asset that is a table: its columns, the same in every run."""
    schema = [
        dg.TableColumn(
            column.name,
            column.type,
            column.description,
            dg.TableColumnConstraints(nullable=column.nullable),
        )
        for column in declared_columns(table)
    ]
    return {"dagster/column_schema": dg.TableSchema(schema)}


def table_metadata(connection: psycopg.Connection, table: str, rows: int) -> dict[str, Any]:
    """Return the metadata of a table after a run: its full name, and how many rows it has."""
    return {"dagster/table_name": full_name(connection, table), "dagster/row_count": rows}


def sample_metadata(
    connection: psycopg.Connection, table: str, month: ListMonth | None
) -> dict[str, dg.MarkdownMetadataValue]:
    """Return a few rows of a month, to read; of the whole table where it has no months."""
    return {"sample": rows_as_markdown(sample(connection, table, month))}


def rows_as_markdown(rows: pd.DataFrame) -> dg.MarkdownMetadataValue:
    """Return rows as the UI shows them."""
    return dg.MetadataValue.md(rows.to_markdown(index=False) if len(rows) else "no rows")
