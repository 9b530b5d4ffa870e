"""Search a LanceDB table: how much of its index is read, and how many vectors are read again.

IVF_RQ cuts the vectors into partitions, of which those nearest to a query are read (probes), and
estimates distances from one bit a number; the best are read again and ranked by exact distances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from lancedb.query import LanceVectorQueryBuilder
from lancedb.table import Table

from mail_assets.vectors.filter_sql import lance_sql
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.vector import Floats

PARTITION_ROWS = 8_192  # LanceDB's own target
# Probes are so many times the root of the number of partitions: 10 of 16, 20 of 62, 28 of 123.
PROBES = 2.5
# With a filter the number of probes must be able to grow, or rare values are not found:
# 1 % of 500,000 rows: 0.83 with a fixed 20, 1.0 so.
FILTERED_PROBES = 20
# Vectors that are read again for one query, and for one match.
REFINED, REFINE = 250, 10


class Search(NamedTuple):
    """What is searched for: a vector, so many matches, a filter, and the columns to return."""

    vector: Floats
    top_k: int
    filter: Filter | None
    columns: list[str]


def search_table(table: Table, wanted: Search, probes: int) -> list[Mapping[str, Any]]:
    """Return the rows nearest to a vector with their `_distance`, in no order."""
    search = cast(LanceVectorQueryBuilder, table.search(wanted.vector))
    search = search.distance_type("cosine").refine_factor(refine_factor(wanted.top_k))
    if wanted.filter is None:
        search = search.nprobes(probes)
    else:
        search = search.where(lance_sql(wanted.filter))
        search = search.minimum_nprobes(FILTERED_PROBES).maximum_nprobes(0)
    # Lance warns on stderr at each query whose columns leave out _distance.
    search = search.limit(wanted.top_k).select([*wanted.columns, "_distance"])
    rows: list[Mapping[str, Any]] = search.to_arrow().to_pylist()
    return rows


def choose_probes(rows: int) -> int:
    """Return how many partitions are read of an index of so many rows."""
    return max(1, math.ceil(PROBES * math.sqrt(rows / PARTITION_ROWS)))


def refine_factor(top_k: int) -> int:
    """Return how many vectors are read again for each match."""
    return max(2, min(REFINE, REFINED // top_k))
