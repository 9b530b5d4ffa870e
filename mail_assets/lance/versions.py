"""Old versions of a LanceDB table: how long its readers need them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from lancedb.table import Table

# A reader stays on the version that it began with: a query for a second, keys() of 3 million for a
# quarter of a minute. What upkeep has replaced stays on the disk for as long.
LONGEST_READ = dt.timedelta(minutes=2)
# Lance compacts and deletes in one call, and what is old by the end of it goes: the time that
# compacting takes must not make versions look older. After upkeep there is little to compact.
COMPACTING = dt.timedelta(minutes=1)
# Every version but the newest goes. Lance counts milliseconds, and warns of 0.
AT_ONCE = dt.timedelta(milliseconds=1)


def cleanup_age(table: Table) -> dt.timedelta:
    """Return the age from which `optimize` may delete versions: no reader has them any more."""
    return dt.datetime.now(dt.UTC) - find_oldest_kept(table)


def count_old_versions(table: Table) -> int:
    """Count the versions that no reader can be on any more."""
    oldest = find_oldest_kept(table)
    return sum(time < oldest for time in _read_times(table))


def find_oldest_kept(table: Table) -> dt.datetime:
    """Return the time before which the versions of a table were written that may be deleted."""
    began = dt.datetime.now(dt.UTC) - LONGEST_READ
    return oldest_in_use(_read_times(table), began) - COMPACTING


def oldest_in_use(written: Iterable[dt.datetime], began: dt.datetime) -> dt.datetime:
    """Return when the oldest version was written that a reader who `began` then may be on.

    That is the version which was the newest at the time, however long it had been.
    """
    times = sorted(written)
    return max((time for time in times if time <= began), default=times[0])


def _read_times(table: Table) -> list[dt.datetime]:
    # Lance gives local times without a zone.
    return [version["timestamp"].astimezone(dt.UTC) for version in table.list_versions()]
