"""Take a list out of the tables: month by month, its row in `lists` last."""

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import read_column, read_value, statement
from mail_assets.tables.hidden_ids import drop_ids, find_held
from mail_assets.tables.patch_series import discard_patches

#: The tables whose rows of a month go in one transaction, in their order.
TABLES = (
    *("messages", "patches", "commits", "commit_link_months", "commit_link_sources", "chunks"),
    *("archive_entries", "quarantine", "former_archives"),
    *("removed_upstream", "removed_messages", "cut_messages", "passed_checks", "mbox_archives"),
)
#: The statements about the list as a whole, in their order.
LAST = ("count_audit", "count_served", "delete_list")
#: The indexes by the tables of their manifests.
MANIFESTS = ("words", "vectors")


def find_months(connection: psycopg.Connection, name: str) -> list[ListMonth]:
    """Return the months of a list of which any table has rows."""
    query = statement("list_removal", "months")
    return [ListMonth(name, month) for month in read_column(connection, query, {"list": name})]


def is_recorded(connection: psycopg.Connection, name: str) -> bool:
    """Return whether a list is recorded: until it is removed to the end."""
    return bool(read_value(connection, statement("list_removal", "is_recorded"), {"list": name}))


def close_list(connection: psycopg.Connection, name: str) -> None:
    """Record that a list is not published."""
    connection.execute(statement("list_removal", "close"), {"list": name})


def read_keys(connection: psycopg.Connection, table: str, month: ListMonth) -> dict[str, list[str]]:
    """Return the keys of a month in a manifest, by the name of the index."""
    query = statement("list_removal", table)
    return dict(connection.execute(query, month.columns).fetchall())


def delete_month(connection: psycopg.Connection, month: ListMonth) -> int:
    """Delete the rows of a month in a transaction; return the number of messages.

    Ids that no other list has leave their threads and series, which are built again. Manifests
    stay: they say what is still in an index.
    """
    with connection.transaction():
        ids = {*read_column(connection, statement("list_removal", "ids"), month.columns)}
        deleted = [
            connection.execute(statement("list_removal", f"delete_{table}"), month.columns).rowcount
            for table in TABLES
        ]
        if gone := sorted(ids - find_held(connection, ids)):
            drop_ids(connection, gone)
            discard_patches(connection, gone)
    return deleted[0]


def delete_states(connection: psycopg.Connection, month: ListMonth) -> None:
    """Delete what runs have recorded of a month, unless an index still has keys of it."""
    connection.execute(statement("list_removal", "delete_partitions"), month.columns)


def delete_list(connection: psycopg.Connection, name: str) -> None:
    """Delete the last rows that name a list, in a transaction."""
    with connection.transaction():
        for one in LAST:
            connection.execute(statement("list_removal", one), {"list": name})
