"""Estimates about an open table, and when they are read again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from lancedb.table import AsyncTable

from mail_assets.lance import table
from mail_assets.lance.table import Estimates

ROWS = 1_000


async def make_table(folder: Path) -> AsyncTable:
    """A table whose days are 0 to 999, in no order."""
    days = np.random.default_rng(0).permutation(ROWS).astype(float)
    database = await lancedb.connect_async(folder)
    return await database.create_table("days", pa.table({"day": days}))


def test_counts_of_few_conditions_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_COUNTED", 2)

    async def run() -> None:
        table = await make_table(tmp_path)
        kept = Estimates(table, ROWS)
        assert await kept.count("day < 500") == 500
        await table.delete("day = 7 OR day = 8")
        assert await kept.count("day < 500") == 500
        assert await kept.count("day > 8") == 991
        assert await kept.count("day < 8") == 7
        assert await kept.count("day < 500") == 498
        assert await Estimates(table, ROWS, kept).count("day > 8") == 991

    asyncio.run(run())


def test_values_are_read_again_when_the_table_has_grown(tmp_path: Path) -> None:
    async def run() -> list[float]:
        table = await make_table(tmp_path)
        first = Estimates(table, ROWS)
        means = [float((await first.read_sample("day")).mean())]
        await table.add(pa.table({"day": [5.0] * 1_000}))
        for rows in (1_050, 2_000):
            later = Estimates(table, rows, first)
            means.append(float((await later.read_sample("day")).mean()))
        return means

    assert asyncio.run(run()) == [499.5, 499.5, pytest.approx(252, abs=25)]
