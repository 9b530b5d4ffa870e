"""Count the rows of a table by the values of some columns, which is one scan of those columns."""

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
from lancedb.table import AsyncTable


async def count_groups(table: AsyncTable, columns: Sequence[str]) -> Counter[tuple[object, ...]]:
    """Return how many rows have each combination of values."""
    counts: Counter[tuple[object, ...]] = Counter()
    async for batch in await table.query().select([*columns]).to_batches():
        groups = pa.Table.from_batches([batch]).group_by([*columns])
        for row in groups.aggregate([([], "count_all")]).to_pylist():
            counts[tuple(row[column] for column in columns)] += row["count_all"]
    return counts
