"""The columns that assets declare are those of the tables.

After a migration: UPDATE_COLUMNS=1 pytest mail_assets_tests/tables/test_declared_columns.py
"""

import json
import os

import psycopg

from mail_assets.reading.browsing import DECLARED, columns, declared_columns

TABLES = (
    *("mbox_archives", "messages", "words", "patches", "chunks", "vectors", "threads"),
    *("patch_series", "thread_summaries", "search_audit", "commits", "commit_links"),
)


def test_declared_columns_are_those_of_the_tables(migrated: psycopg.Connection) -> None:
    found = {table: columns(migrated, table) for table in TABLES}
    if os.environ.get("UPDATE_COLUMNS"):
        lines = (
            f"{json.dumps(table)}: [\n"
            + ",\n".join(f"  {json.dumps(column, ensure_ascii=False)}" for column in some)
            + "\n]"
            for table, some in found.items()
        )
        DECLARED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    assert {table: declared_columns(table) for table in TABLES} == found, (
        "write sql/columns.json again, as the first lines of this file say"
    )
