"""Every backend gives a filter the meaning of the reference matcher."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from mail_assets.vectors.filters import Filter, FilterError, matches_filter
from mail_assets.vectors.index import VectorError, VectorIndex
from mail_assets_tests.vectors.filter_strategies import filters_of_all_kinds
from mail_assets_tests.vectors.samples import POPULATION, unit


def test_filters_mean_what_the_reference_matcher_says(index: VectorIndex) -> None:
    index.put(POPULATION)

    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(filters_of_all_kinds)
    def holds(filter: Filter) -> None:
        expected = {stored.key for stored in POPULATION if matches_filter(filter, stored.metadata)}
        found = [match.key for match in index.query(unit(5_000), 100, filter)]
        assert len(found) == len(set(found))
        assert set(found) == expected
        if index.capabilities.list_filter:
            assert set(index.find(filter)) == expected

    holds()


def test_only_capable_backends_list_by_filter(index: VectorIndex) -> None:
    index.put(POPULATION)
    if index.capabilities.list_filter:
        assert set(index.find({"sender": "s1"})) == {
            stored.key for stored in POPULATION if stored.metadata.get("sender") == "s1"
        }
        assert {*index.find_values("month", {"sender": "s1", "month": {"$exists": True}})} == {
            (one.key, one.metadata["month"])
            for one in POPULATION
            if one.metadata.get("sender") == "s1" and "month" in one.metadata
        }
    else:
        with pytest.raises(VectorError, match=r"chunks-v1\.minilm.*cannot list"):
            index.find({"sender": "s1"})


def test_an_unfit_filter_is_refused(index: VectorIndex) -> None:
    unfit: list[Filter] = [{}, {"subject": "x"}, {"month": "x"}, {"list": {"$gt": "a"}}]
    for filter in unfit:
        with pytest.raises(FilterError):
            index.query(unit(1), 1, filter)


def test_a_filter_may_use_all_constraints_of_the_backend(index: VectorIndex) -> None:
    index.put(POPULATION)
    most = index.capabilities.max_constraints
    senders = [f"s{number}" for number in range(most)]
    expected = {one.key for one in POPULATION if one.metadata.get("sender") in senders}
    found = index.query(unit(5_000), 100, {"sender": {"$in": senders}})
    assert {match.key for match in found} == expected != set()
    longer: Filter = {"sender": {"$in": senders}, "month": 1}
    with pytest.raises(FilterError, match=rf"has {most + 1} constraints .* takes {most}:"):
        index.query(unit(5_000), 1, longer)
