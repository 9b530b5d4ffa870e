"""The filter language: what is refused, what it means, what each backend is sent."""

from __future__ import annotations

from typing import Any

import pytest

from mail_assets.vectors.filters import (
    FilterError,
    check_filter,
    check_length,
    count_constraints,
    lance_sql,
    matches_filter,
    nest_conditions,
    postgres_sql,
)
from mail_assets.vectors.index import IndexSpec

SPEC = IndexSpec("mail", 8, {"list": "string", "month": "number"}, ("subject",))


@pytest.mark.parametrize(
    ("filter", "reason"),
    [
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
    ],
)
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


@pytest.mark.parametrize(
    ("filter", "metadata", "answer"),
    [
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
    ],
)
def test_the_reference_matcher(filter: Any, metadata: dict[str, object], answer: bool) -> None:
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
def test_what_the_services_and_lance_are_sent(filter: Any, wire: object, lance: str) -> None:
    assert nest_conditions(filter) == wire
    assert lance_sql(filter) == lance


def test_postgres_is_sent_values_as_parameters_only() -> None:
    condition, parameters = postgres_sql(
        {"list": {"$in": ["a'; DROP TABLE x", "b"], "$ne": "c"}, "month": {"$lte": 3}}
    )
    assert condition.as_string() == (
        '("list" = ANY(%s) AND "list" <> %s AND "list" IS NOT NULL AND "month" <= %s)'
    )
    assert parameters == [["a'; DROP TABLE x", "b"], "c", 3.0]
