"""Search a LanceDB table: how much of its index is read, and how many vectors are read again.

IVF_RQ cuts the vectors into partitions, of which those nearest to a query are read (probes), and
estimates distances from a few bits a number; the best are read again and ranked by exact distances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from heapq import nsmallest
from operator import itemgetter
from typing import Any, NamedTuple

from lancedb.query import AsyncVectorQuery

from mail_assets.lance.table import OpenTable
from mail_assets.vectors.filter_split import split_filter
from mail_assets.vectors.filter_sql import lance_sql
from mail_assets.vectors.filters import Filter, matches_filter
from mail_assets.vectors.vector import Floats

PARTITION_ROWS = 8_192  # LanceDB's own target
# Half of the partitions are read, and all of a few. A question is not near to what answers it (0.5,
# where the neighbours of a chunk have 0.9), so that its nearest are spread over many: of the true
# top 50 of 1,762,265 chunks, 215 partitions, 37 find 0.85, 74 0.91, 111 0.95 and all 0.98, in 7.5,
# 8.7, 10.0 and 12.6 ms. (python -m benchmarks.question_recall)
PROBES, MIN_PROBES = 0.5, 16
# Vectors that are read again for one query, most of its cost, and at most for one match.
REFINED, FILTERED_REFINED, REFINE = 100, 150, 10
# Vectors of which each is compared, without the index: exact, and of 540,000 those of 100 messages
# take 21 ms of the processor instead of 65, of 500 messages 43 instead of 84, of 2,000 99 of 87.
FEW = 1_000


class Search(NamedTuple):
    """What is searched for: a vector, so many matches, a filter, and the columns to return."""

    vector: Floats
    top_k: int
    filter: Filter | None
    columns: list[str]


async def search_table(kept: OpenTable, wanted: Search) -> list[Mapping[str, Any]]:
    """Return the rows of a table that are nearest, with their `_distance`, in no order."""
    split = await split_filter(wanted.filter, wanted.top_k, kept.estimates)
    if split.after is None:
        return await _search(kept, wanted)
    columns = list(dict.fromkeys([*wanted.columns, *split.fields]))
    found = await _search(kept, Search(wanted.vector, split.asked, split.before, columns))
    passing = [row for row in found if matches_filter(split.after, row)]
    if len(passing) < wanted.top_k:
        return await _search(kept, wanted)
    return nsmallest(wanted.top_k, passing, key=itemgetter("_distance"))


async def _search(kept: OpenTable, wanted: Search) -> list[Mapping[str, Any]]:
    """Do the same with the filter applied before the search."""
    if wanted.filter is None:
        refine = refine_factor(wanted.top_k, REFINED)
        return await _collect(_build(kept, wanted, refine).nprobes(choose_probes(kept.rows)))
    where = lance_sql(wanted.filter)
    search = _build(kept, wanted, refine_factor(wanted.top_k, FILTERED_REFINED)).where(where)
    if kept.rows > PARTITION_ROWS:
        matching = _count_named(wanted.filter) or await kept.estimates.count(where)
        if matching <= FEW:
            return await _collect(search.bypass_vector_index())
        found = await _collect(search.nprobes(choose_probes(kept.rows, matching)))
        if len(found) >= min(wanted.top_k, matching):
            return found
    # What matches may all be far from the query: as many probes as it takes. To allow that at once
    # takes half as long again for the others.
    return await _collect(search.maximum_nprobes(0).minimum_nprobes(1))


def _count_named(filter: Filter) -> int:
    """Return about how many vectors the messages have that a filter names; 0 for any other filter.

    To count those of many messages takes as long as to search among them. Most have one or two.
    """
    named = filter.get("message_id") if len(filter) == 1 else None
    return 2 * len(named.get("$in", ())) if isinstance(named, dict) else 0


def choose_probes(rows: int, matching: int | None = None) -> int:
    """Return how many partitions are read of an index of so many rows, of which so many match.

    The fewer match, the more partitions the nearest of them are spread over. `rows` may be from a
    minute ago, when an index that is being filled had none: of a small one, more than it has are
    asked for, which costs nothing.
    """
    partitions = max(MIN_PROBES, math.ceil(rows / PARTITION_ROWS))
    spread = 1.0 if matching is None else (rows / max(1, min(matching, rows))) ** 0.25
    return min(partitions, max(MIN_PROBES, math.ceil(PROBES * spread * partitions)))


def refine_factor(top_k: int, refined: int) -> int:
    """Return how many vectors are read again for each match, of `refined` in all."""
    return max(1, min(REFINE, refined // top_k))


def _build(kept: OpenTable, wanted: Search, refine: int) -> AsyncVectorQuery:
    search = kept.table.query().nearest_to(wanted.vector)
    # Lance warns on stderr at each query whose columns leave out _distance.
    columns = [*wanted.columns, "_distance"]
    search = search.distance_type("cosine").refine_factor(refine)
    return search.limit(wanted.top_k).select(columns)


async def _collect(search: AsyncVectorQuery) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = (await search.to_arrow()).to_pylist()
    return rows
