"""The filter language: refusals, meaning, compiled forms, and when a search applies a filter."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from lancedb.table import AsyncTable

from mail_assets.lance.table import Estimates
from mail_assets.vectors import lance_filters
from mail_assets.vectors.filters import (
    Filter,
    FilterError,
    check_filter,
    check_length,
    count_constraints,
    matches_filter,
    nest_conditions,
)
from mail_assets.vectors.index import IndexSpec, Vector, VectorIndex
from mail_assets.vectors.lance import LanceIndex
from mail_assets.vectors.lance_filters import Split, lance_sql, split_filter
from mail_assets.vectors.pgvector import postgres_sql
from mail_assets_tests.vectors.samples import MAIL, make_index, unit

SPEC = IndexSpec("mail", 8, {"list": "string", "month": "number"}, ("subject",))


@pytest.mark.parametrize(("filter", "reason"), [
    ({}, "at least one condition"),
    ([], "is not a filter"),
    ("list", "is not a filter"),
    ({"subject": "x"}, "'subject' is not a filterable field of index mail; it has list, month"),
    ({"other": "x"}, "'other' is not a filterable field"),
    ({"$not": {"list": "a"}}, r"'\$not' is not a filterable field"),
    ({"list": {}}, "list: the condition is empty"),
    ({"list": {"$startsWith": "a"}}, r"unknown operator '\$startsWith'; use one of \$eq"),
    ({"list": {"in": ["a"]}}, "unknown operator 'in'"),
    ({"list": 1}, r"list: \$eq takes a string, not 1"),
    ({"list": None}, "takes a string, not None"),
    ({"list": ["a"]}, "takes a string"),
    ({"list": "nul\0"}, "takes a string"),
    ({"list": "\ud800"}, "takes a string"),
    ({"list": {"$gt": "a"}}, r"\$gt compares numbers"),
    ({"list": {"$in": "a"}}, r"\$in takes a non-empty list, each a string"),
    ({"list": {"$in": []}}, "non-empty list"),
    ({"list": {"$nin": ["a", 1]}}, "each a string"),
    ({"month": "202401"}, r"month: \$eq takes a number"),
    ({"month": True}, "takes a number, not True"),
    ({"month": {"$gte": float("nan")}}, "takes a number, not nan"),
    ({"month": float("-inf")}, "takes a number, not -inf"),
    ({"month": 2**53 + 1}, "takes a number"),
    ({"month": 10**400}, "takes a number"),
    ({"month": {"$exists": 1}}, r"\$exists takes true or false, not 1"),
    ({"$and": []}, r"\$and: use a non-empty list"),
    ({"$or": {"list": "a"}}, r"\$or: use a non-empty list"),
    ({"$or": [{"list": "a"}, {}]}, "at least one condition"),
    ({"$and": [{"$or": [{"list": 1}]}]}, "takes a string"),
])  # fmt: skip
def test_unfit_filters_are_refused_with_the_reason(filter: Any, reason: str) -> None:
    with pytest.raises(FilterError, match=reason):
        check_filter(filter, SPEC)


@pytest.mark.parametrize(
    ("filter", "count"),
    [
        ({"list": "a"}, 1),
        ({"list": "a", "month": {"$gte": 1, "$lt": 3}}, 3),
        ({"list": {"$in": ["a", "b", "c"]}}, 3),
        ({"list": {"$nin": ["a", "b"]}}, 3),  # and it exists, as the services are told
        ({"$or": [{"list": "a"}, {"$and": [{"month": 1}, {"list": {"$in": ["b", "c"]}}]}]}, 4),
    ],
)
def test_each_value_of_a_filter_is_a_constraint(filter: Any, count: int) -> None:
    assert count_constraints(filter) == count
    check_length(filter, SPEC, count)
    with pytest.raises(FilterError, match=rf"has {count} constraints .* mail takes {count - 1}:"):
        check_length(filter, SPEC, count - 1)


@pytest.mark.parametrize(("filter", "metadata", "answer"), [
    ({"list": "a"}, {"list": "a"}, True),
    ({"list": "a"}, {"list": "A"}, False),
    ({"list": "a"}, {}, False),
    ({"list": {"$ne": "a"}}, {"list": "b"}, True),
    ({"list": {"$ne": "a"}}, {}, False),
    ({"list": {"$nin": ["a"]}}, {}, False),
    ({"list": {"$nin": ["a"]}}, {"list": "b"}, True),
    ({"list": {"$in": ["a", "b"]}}, {"list": "b"}, True),
    ({"list": {"$exists": False}}, {}, True),
    ({"list": {"$exists": True}}, {}, False),
    ({"list": {"$exists": True}}, {"list": ""}, True),
    ({"month": {"$gte": 1, "$lt": 3}}, {"month": 3}, False),
    ({"month": {"$gt": 1, "$lte": 3}}, {"month": 3}, True),
    ({"month": 1}, {"month": 1.0}, True),
    ({"flag": 1}, {"flag": True}, False),
    ({"month": {"$gt": 0}}, {"month": "1"}, False),
    ({"tags": "x"}, {"tags": ["y", "x"]}, True),
    ({"tags": {"$ne": "x"}}, {"tags": ["y", "x"]}, False),
    ({"list": "a", "month": 1}, {"list": "a", "month": 2}, False),
    ({"$or": [{"list": "a"}, {"month": 1}]}, {"month": 1}, True),
    ({"$and": [{"list": "a"}, {"month": 1}]}, {"month": 1}, False),
    ({"list": "a", "$or": [{"month": 1}, {"month": 2}]}, {"list": "a", "month": 2}, True),
])  # fmt: skip
def test_reference_matcher_decides(filter: Any, metadata: dict[str, object], answer: bool) -> None:
    assert matches_filter(filter, metadata) is answer


@pytest.mark.parametrize(
    ("filter", "wire", "lance"),
    [
        ({"list": "it's"}, {"list": {"$eq": "it's"}}, "`list` = 'it''s'"),
        (
            {"month": {"$gte": 202401, "$lt": 202501}},
            {"$and": [{"month": {"$gte": 202401}}, {"month": {"$lt": 202501}}]},
            "(`month` >= 202401.0 AND `month` < 202501.0)",
        ),
        (
            {"list": {"$nin": ["a", "b"]}},
            {"$and": [{"list": {"$nin": ["a", "b"]}}, {"list": {"$exists": True}}]},
            "(`list` NOT IN ('a', 'b') AND `list` IS NOT NULL)",
        ),
        (
            {"$or": [{"list": "a"}, {"list": "b", "month": 1}], "month": {"$exists": False}},
            {
                "$and": [
                    {
                        "$or": [
                            {"list": {"$eq": "a"}},
                            {"$and": [{"list": {"$eq": "b"}}, {"month": {"$eq": 1}}]},
                        ]
                    },
                    {"month": {"$exists": False}},
                ]
            },
            "((`list` = 'a' OR (`list` = 'b' AND `month` = 1.0)) AND `month` IS NULL)",
        ),
    ],
)
def test_filters_are_compiled_for_services_and_lance(filter: Any, wire: object, lance: str) -> None:
    assert nest_conditions(filter) == wire
    assert lance_sql(filter) == lance


def test_postgres_gets_values_as_parameters_only() -> None:
    condition, parameters = postgres_sql(
        {"list": {"$in": ["a'; DROP TABLE x", "b"], "$ne": "c"}, "month": {"$lte": 3}}
    )
    assert condition.as_string() == (
        '("list" = ANY(%s) AND "list" <> %s AND "list" IS NOT NULL AND "month" <= %s)'
    )
    assert parameters == [["a'; DROP TABLE x", "b"], "c", 3.0]


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


@pytest.mark.parametrize(("filter", "after", "before", "asked"), [
    (NEARLY_ALL, [{"day": {"$gte": 100}}], None, 39),
    ({"day": {"$lt": 500}}, [{"day": {"$lt": 500}}], None, 62),
    ({"day": {"$gte": 100, "$lt": 900}}, [{"day": {"$gte": 100}}, {"day": {"$lt": 900}}], None, 43),
    ({"$and": [LIST, {"$and": [NEARLY_ALL]}]}, [{"day": {"$gte": 100}}],
     [{"list": {"$eq": "tide"}}], 39),
])  # fmt: skip
def test_common_condition_is_applied_after_the_search(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    filter: Filter,
    after: list[Filter],
    before: list[Filter] | None,
    asked: int,
) -> None:
    monkeypatch.setattr(lance_filters, "LISTED_WHILE_ONE_IS_READ", 10)
    found = split(tmp_path, filter)
    assert found.after == {"$and": after}
    assert found.before == (before and {"$and": before})
    assert found.fields == ("day",)
    assert found.asked == pytest.approx(asked, abs=1)


@pytest.mark.parametrize(("filter", "top_k"), [
    (None, 20),
    (LIST, 20),
    ({"day": {"$gte": 900}}, 20),
    ({"day": 7}, 20),
    ({"day": {"$ne": 7}}, 20),
    ({"day": {"$exists": True}}, 20),
    ({"day": {"$gte": 2_000}}, 20),
    ({"$or": [NEARLY_ALL, LIST]}, 20),
    (NEARLY_ALL, 500),
])  # fmt: skip
def test_other_conditions_are_applied_before_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filter: Filter | None, top_k: int
) -> None:
    monkeypatch.setattr(lance_filters, "LISTED_WHILE_ONE_IS_READ", 10)
    assert split(tmp_path, filter, top_k) == Split(filter)


def test_small_table_is_asked_only_for_the_wanted_rows(tmp_path: Path) -> None:
    assert split(tmp_path, NEARLY_ALL) == Split(NEARLY_ALL)


def test_estimate_ignores_deleted_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lance_filters, "LISTED_WHILE_ONE_IS_READ", 10)

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
    return make_index(f"lance:{tmp_path}")


@pytest.mark.parametrize("odd", ["a b", "it's", "a\\nb", "a\nb", "", ", ", "x'), y", "\u2028"])
def test_many_texts_are_found_as_few_are(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    texts = [f"{number}" for number in range(lance_filters.MANY_TEXTS)]
    rows = [*texts[:20], odd, "a", "b", "x", "others"]
    index.put(
        Vector(f"{n}", unit(n, MAIL.dimension), {"sender": row}) for n, row in enumerate(rows)
    )
    for named in ([odd, *texts], texts):
        found = {*index.find({"sender": {"$in": named}})}
        assert found == {f"{n}" for n, row in enumerate(rows) if row in named}
        assert len(named) >= lance_filters.MANY_TEXTS


@pytest.mark.parametrize("nearest_are_early", [True, False])
def test_matches_are_found_if_condition_and_distance_correlate(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch, nearest_are_early: bool
) -> None:
    monkeypatch.setattr(lance_filters, "LISTED_WHILE_ONE_IS_READ", 0)
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
