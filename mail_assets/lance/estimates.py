"""Estimates about an open table: how many rows match a condition, and which values a column has."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from lancedb.table import AsyncTable

# Rows, evenly spaced, whose values stand for all: a share is known to 0.03.
SAMPLE = 1_000
# They are read again when the table has grown by so much.
GROWTH = 0.1
# Conditions whose matches are kept counted; one can name hundreds of senders.
MAX_COUNTED = 100


class Estimates:
    """What is kept of a table of so many rows while it is open."""

    def __init__(self, table: AsyncTable, rows: int, former: Estimates | None = None) -> None:
        self.rows = rows
        self._table = table
        self._matching: dict[str, int] = {}
        self._samples: dict[str, npt.NDArray[np.float64]] = {}
        self._rows_of_samples = rows
        if former and abs(rows - former._rows_of_samples) <= GROWTH * rows:
            self._samples = former._samples
            self._rows_of_samples = former._rows_of_samples

    async def count(self, where: str) -> int:
        """Return how many rows match a condition, or did since the table was opened."""
        if where not in self._matching:
            if len(self._matching) >= MAX_COUNTED:
                self._matching.clear()
            self._matching[where] = await self._table.count_rows(where)
        return self._matching[where]

    async def read_sample(self, column: str) -> npt.NDArray[np.float64]:
        """Return values that stand for all of a column: NaN, which meets nothing, for a null."""
        if column not in self._samples:
            places = np.linspace(0, self.rows - 1, min(SAMPLE, self.rows)).astype(int)
            taken = await self._table.take_offsets(places.tolist()).select([column]).to_arrow()
            self._samples[column] = np.asarray(taken.column(column).to_numpy(), np.float64)
        return self._samples[column]
