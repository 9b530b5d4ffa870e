"""Which conditions are applied to what a search finds, and that nothing is lost by it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from lancedb.table import AsyncTable

from mail_assets.lance.table import Estimates
from mail_assets.vectors import filters
from mail_assets.vectors.filters import Filter, Split, split_filter
from mail_assets.vectors.index import Vector, VectorIndex
from mail_assets.vectors.lance import LanceIndex
from mail_assets.vectors.open import open_bucket
from mail_assets_tests.vectors.samples import MAIL, unit

ROWS = 1_000
NEARLY_ALL: Filter = {"day": {"$gte": 100}}
LIST: Filter = {"list": "tide"}


async def make_table(folder: Path) -> AsyncTable:
    """A table whose days are 0 to 999, in no order, and whose list is `tide` in every other row."""
    days = np.random.default_rng(0).permutation(ROWS).astype(float)
    lists = ["tide" if number % 2 else "moor" for number in range(ROWS)]
    database = await lancedb.connect_async(folder)
    return await database.create_table("days", pa.table({"day": days, "list": lists}))


def split(folder: Path, filter: Filter | None, top_k: int = 20) -> Split:
    async def run() -> Split:
        return await split_filter(filter, top_k, Estimates(await make_table(folder), ROWS))

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("filter", "after", "before", "asked"),
    [
        (NEARLY_ALL, [{"day": {"$gte": 100}}], None, 39),
        ({"day": {"$lt": 500}}, [{"day": {"$lt": 500}}], None, 62),
        (
            {"day": {"$gte": 100, "$lt": 900}},
            [{"day": {"$gte": 100}}, {"day": {"$lt": 900}}],
            None,
            43,
        ),
        (
            {"$and": [LIST, {"$and": [NEARLY_ALL]}]},
            [{"day": {"$gte": 100}}],
            [{"list": {"$eq": "tide"}}],
            39,
        ),
    ],
)
def test_a_condition_that_most_rows_meet_is_applied_to_what_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    filter: Filter,
    after: list[Filter],
    before: list[Filter] | None,
    asked: int,
) -> None:
    monkeypatch.setattr(filters, "LISTED_WHILE_ONE_IS_READ", 10)
    found = split(tmp_path, filter)
    assert found.after == {"$and": after}
    assert found.before == (before and {"$and": before})
    assert found.fields == ("day",)
    assert found.asked == pytest.approx(asked, abs=1)


@pytest.mark.parametrize(
    ("filter", "top_k"),
    [
        (None, 20),
        (LIST, 20),
        ({"day": {"$gte": 900}}, 20),
        ({"day": 7}, 20),
        ({"day": {"$ne": 7}}, 20),
        ({"day": {"$exists": True}}, 20),
        ({"day": {"$gte": 2_000}}, 20),
        ({"$or": [NEARLY_ALL, LIST]}, 20),
        (NEARLY_ALL, 500),
    ],
)
def test_any_other_is_applied_before_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filter: Filter | None, top_k: int
) -> None:
    monkeypatch.setattr(filters, "LISTED_WHILE_ONE_IS_READ", 10)
    assert split(tmp_path, filter, top_k) == Split(filter)


def test_a_small_table_is_never_asked_for_more_than_is_wanted(tmp_path: Path) -> None:
    assert split(tmp_path, NEARLY_ALL) == Split(NEARLY_ALL)


def test_rows_that_were_deleted_since_the_table_was_opened_count_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "LISTED_WHILE_ONE_IS_READ", 10)

    async def run() -> tuple[Split, Split]:
        table = await make_table(tmp_path)
        some, none = Estimates(table, ROWS), Estimates(table, ROWS)
        await table.delete("day >= 200")
        left = await split_filter(NEARLY_ALL, 20, some)
        await table.delete("day >= 0")
        return left, await split_filter(NEARLY_ALL, 20, none)

    left, nothing = asyncio.run(run())
    assert left.asked == pytest.approx(62, abs=1)
    assert nothing == Split(NEARLY_ALL)


@pytest.fixture
def index(tmp_path: Path) -> VectorIndex:
    opened = open_bucket(f"lance:{tmp_path}").index(MAIL)
    opened.ensure()
    return opened


@pytest.mark.parametrize("nearest_are_early", [True, False])
def test_the_nearest_that_match_are_found_where_the_condition_goes_with_the_distance(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch, nearest_are_early: bool
) -> None:
    monkeypatch.setattr(filters, "LISTED_WHILE_ONE_IS_READ", 0)
    assert isinstance(index, LanceIndex)
    query = unit(1, MAIL.dimension)
    values = np.stack([query + unit(n, MAIL.dimension) * n / 50 for n in range(2, 202)])
    months = range(200) if nearest_are_early else range(200, 0, -1)
    index.put(
        Vector(f"{n:03}", value, {"month": month})
        for n, (value, month) in enumerate(zip(values, months, strict=True))
    )
    distances = 1 - values @ query / np.linalg.norm(values, axis=1)
    passing = [n for n, month in enumerate(months) if month >= 60]
    nearest = sorted(passing, key=lambda n: distances[n])[:15]
    found = index.query(query, 15, {"month": {"$gte": 60}})
    assert [match.key for match in found] == [f"{n:03}" for n in nearest]
    assert all(match.metadata.keys() == {"month"} for match in found)
    bare = index.query(query, 15, {"month": {"$gte": 60}}, metadata=False)
    assert [(match.key, match.metadata) for match in bare] == [(one.key, {}) for one in found]
