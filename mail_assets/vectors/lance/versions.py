"""Old versions of a LanceDB table: how long its readers need them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from lancedb.table import Table

# A reader stays on the version that it began with: a query for a second, keys() of 3 million for a
# quarter of a minute. What upkeep has compacted stays on the disk for as long.
LONGEST_READ = dt.timedelta(minutes=2)
# Every version but the newest goes. Lance counts milliseconds, and warns of 0.
AT_ONCE = dt.timedelta(milliseconds=1)
# No version is as old.
NEVER = dt.timedelta(days=36_500)


def compact_table(table: Table, *, erase: bool = False) -> None:
    """Compact a table of vectors, then delete the versions that no reader needs any more.

    With `erase` every version but the newest goes. Lance deletes behind compacting, in one call,
    what is older by then: the time that compacting takes must not make versions look older.
    """
    if not erase:
        table.optimize(cleanup_older_than=NEVER)
    table.optimize(cleanup_older_than=AT_ONCE if erase else cleanup_age(table))


def cleanup_age(table: Table) -> dt.timedelta:
    """Return the age from which versions of a table have no reader any more."""
    # Lance gives local times without a zone.
    written = (version["timestamp"].astimezone(dt.UTC) for version in table.list_versions())
    now = dt.datetime.now(dt.UTC)
    return now - oldest_in_use(written, now - LONGEST_READ) + AT_ONCE


def oldest_in_use(written: Iterable[dt.datetime], began: dt.datetime) -> dt.datetime:
    """Return when the oldest version was written that a reader who `began` then may be on.

    That is the version which was the newest at the time, however long it had been.
    """
    times = sorted(written)
    return max((time for time in times if time <= began), default=times[0])
