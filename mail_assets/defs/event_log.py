"""Dagster's event log: the months of a run stand in order, and its columns are asked for once.

Dagster (1.13.27) records the months of a step in no order and mostly within one millisecond. Its UI
shows one event of each run and millisecond, and calls the one that was stored last the latest.
It also has the server list the columns of a table with each event, to know whether it was migrated.
It relies on private modules of Dagster; a test covers it.
"""

from collections.abc import Sequence
from typing import Any

import dagster as dg
from dagster_postgres import PostgresEventLogStorage
from sqlalchemy import Connection

#: The UI tells times apart by whole milliseconds.
_MILLISECONDS = 1_000


class MailEventLog(PostgresEventLogStorage):
    """The event log on PostgreSQL."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._columns_there: set[str] = set()
        super().__init__(*arguments, **options)

    def store_event_batch(self, events: Sequence[dg.EventLogEntry]) -> None:
        """Store events by partition, each a millisecond after the one before it.

        The last one is not later than it was recorded.
        """
        ordered = sorted(events, key=_partition)
        last = int(max(event.timestamp for event in events) * _MILLISECONDS)
        # half, so that no rounding moves one into the millisecond of another
        times = [(last - later - 0.5) / _MILLISECONDS for later in reversed(range(len(ordered)))]
        super().store_event_batch(
            [event._replace(timestamp=at) for event, at in zip(ordered, times, strict=True)]
        )

    def _has_asset_key_col_on_connection(self, conn: Connection, column_name: str) -> bool:
        """Ask until the column is there: migrations add some, and take none away."""
        if column_name not in self._columns_there:
            if not super()._has_asset_key_col_on_connection(conn, column_name):
                return False
            self._columns_there.add(column_name)
        return True


def _partition(event: dg.EventLogEntry) -> str:
    return event.get_dagster_event().partition or ""
