"""Dagster's event log, in which the months that a run has made stand in order, one after the other.

Dagster (1.13.27) records the months of a step in no order and mostly within one millisecond. Its UI
shows one event of each run and millisecond, and calls the one that was stored last the latest.
It relies on private modules of Dagster; a test covers it.
"""

from collections.abc import Sequence

import dagster as dg
from dagster_postgres import PostgresEventLogStorage

#: The UI tells times apart by whole milliseconds.
_MILLISECONDS = 1_000


class MonthsInOrder(PostgresEventLogStorage):
    """The event log on PostgreSQL."""

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


def _partition(event: dg.EventLogEntry) -> str:
    return event.get_dagster_event().partition or ""
