"""Filters of all kinds over the fields of the sample index, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from mail_assets.vectors.filters import Filter
from mail_assets_tests.vectors.samples import LISTS, MONTHS

texts = st.sampled_from(LISTS) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8
)
numbers = st.sampled_from(MONTHS) | st.integers(-(2**53), 2**53) | st.floats(-1e6, 1e6)


def conditions(values: st.SearchStrategy[object], ordered: bool) -> st.SearchStrategy[object]:
    some = st.lists(values, min_size=1, max_size=4)
    operators: dict[str, st.SearchStrategy[object]] = {
        "$eq": values,
        "$ne": values,
        "$in": some,
        "$nin": some,
        "$exists": st.booleans(),
    }
    if ordered:
        operators |= dict.fromkeys(("$gt", "$gte", "$lt", "$lte"), values)
    many = st.fixed_dictionaries({}, optional=operators).filter(bool)
    return values | many


leaves = st.fixed_dictionaries(
    {},
    optional={
        "list": conditions(texts, ordered=False),
        "month": conditions(numbers, ordered=True),
        "sender": conditions(st.sampled_from(["s1", "s2", "x"]), ordered=False),
    },
).filter(bool)
filters_of_all_kinds: st.SearchStrategy[Filter] = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda beside, logic, parts: {**beside, logic: parts},
        st.just({}) | leaves,
        st.sampled_from(["$and", "$or"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)
