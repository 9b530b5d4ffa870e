"""The indexes of a LanceDB table: what state each is in."""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple, cast

from lancedb.table import Table


class IndexState(NamedTuple):
    """An index: its kind in small letters, rows in it and beside it, its segments, and its age.

    `bits` are those that one of vectors keeps of each number, None where it does not say.
    """

    kind: str
    rows: int
    unindexed_rows: int
    segments: int
    made_at: dt.datetime | None = None
    bits: int | None = None

    def lacks(self, rows: int, share: float, least: int) -> bool:
        """Tell whether it lacks so many rows, and this share, of a table of so many."""
        return self.unindexed_rows >= max(least, rows * share)

    def is_outdated(self, age: dt.timedelta, least: int) -> bool:
        """Tell whether it lacks so many rows and was made so long ago.

        One that does not say when it was made is old.
        """
        if self.unindexed_rows < least:
            return False
        return self.made_at is None or dt.datetime.now(dt.UTC) - self.made_at >= age


class TableSize(NamedTuple):
    """The rows of a table, and the fragments with too few of them."""

    rows: int
    small_fragments: int


def read_size(table: Table) -> TableSize:
    """Return the size of a table, from its manifest alone."""
    found = cast(dict[str, Any], table.stats())  # the type that LanceDB declares is another
    return TableSize(int(found["num_rows"]), int(found["fragment_stats"]["num_small_fragments"]))


def read_index_states(table: Table) -> dict[str, IndexState]:
    """Return the state of each index by its column."""
    return {
        index.columns[0]: IndexState(
            kind=index.index_type.lower(),
            rows=index.num_indexed_rows or 0,
            unindexed_rows=index.num_unindexed_rows or 0,
            segments=index.num_segments or 0,
            made_at=index.created_at,
            bits=_read_bits(index),
        )
        for index in table.list_indices()
    }


def _read_bits(index: Any) -> int | None:
    details = cast(dict[str, Any], index.index_details or {})
    return cast(int | None, details.get("compression", {}).get("num_bits"))
