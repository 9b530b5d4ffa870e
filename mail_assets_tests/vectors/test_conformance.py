"""Every backend stores, finds and filters vectors, keeps indexes and refuses bad input alike."""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from mail_assets.vectors.filters import Filter, FilterError, matches_filter
from mail_assets.vectors.index import (
    IndexSpec,
    Metadata,
    MissingIndexError,
    Vector,
    VectorError,
    VectorIndex,
)
from mail_assets_tests.vectors.filter_strategies import filters_of_all_kinds
from mail_assets_tests.vectors.processes import Place
from mail_assets_tests.vectors.samples import POPULATION, SPEC, cosine_distance, unit, vector


def test_get_returns_what_was_put(index: VectorIndex) -> None:
    metadata: Metadata = {
        "list": 'O\'Brien "x" \\ % ` 漢字 😀',
        "month": 202401,
        "sender": "",
        "subject": ["a", "b"],
    }
    full, bare = replace(vector(1), metadata=metadata), vector(2)
    assert index.put([full, bare]) == 2
    found = index.get(["key-0001", "key-0002", "absent"], data=True)
    assert list(found) == ["key-0001", "key-0002"]
    assert found["key-0001"].metadata == metadata
    assert found["key-0002"].metadata == {}
    for stored in (full, bare):
        # Half precision in one backend.
        np.testing.assert_allclose(found[stored.key].values, stored.values, atol=5e-4)
        assert found[stored.key].values.dtype == np.float32


def test_non_filterable_metadata_keep_value_and_type(index: VectorIndex) -> None:
    values: list[str | float | bool | list[str]]
    values = ["text", 7, 2.5, -1, True, False, ["one", "two"], [], "x" * 30_000]
    index.put(replace(vector(n), metadata={"subject": value}) for n, value in enumerate(values))
    found = index.get(f"key-{n:04}" for n in range(len(values)))
    got = [stored.metadata["subject"] for stored in found.values()]
    assert got == values
    assert list(map(type, got)) == list(map(type, values))


def test_whole_numbers_come_back_as_int(index: VectorIndex) -> None:
    index.put([vector(1, month=202401.0), vector(2, month=0.5), vector(3, month=2**53)])
    months = [stored.metadata["month"] for stored in index.get(sorted(index.keys())).values()]
    assert months == [202401, 0.5, 2**53]
    assert [type(month) for month in months] == [int, float, int]
    index.put([vector(4, subject=3.0)])
    assert type(index.get(["key-0004"])["key-0004"].metadata["subject"]) is int


def test_get_returns_values_only_when_asked(index: VectorIndex) -> None:
    index.put([vector(1, list="a")])
    found = index.get(["key-0001"])["key-0001"]
    assert found.values.shape == (0,)
    assert found.metadata == {"list": "a"}


def test_query_without_metadata_finds_the_same(index: VectorIndex) -> None:
    index.put([vector(n, list="ab"[n % 2], month=n, subject="s") for n in range(8)])
    for where in (None, {"list": "a"}):
        full = index.query(unit(3), 5, where)
        assert all(match.metadata for match in full)
        bare = index.query(unit(3), 5, where, metadata=False)
        assert bare == [replace(match, metadata={}) for match in full]


def test_putting_again_overwrites_and_forgets_old_metadata(index: VectorIndex) -> None:
    index.put([vector(1, list="a", month=1), vector(2)])
    index.put([Vector("key-0001", unit(99), {"list": "b"})])
    found = index.get(["key-0001"], data=True)["key-0001"]
    assert found.metadata == {"list": "b"}
    np.testing.assert_allclose(found.values, unit(99), atol=5e-4)
    assert index.count() == 2


def test_last_of_equal_keys_wins_and_counts_once(index: VectorIndex) -> None:
    assert index.put([vector(1, list="first"), vector(2), vector(1, list="last")]) == 2
    assert index.count() == 2
    assert index.get(["key-0001"])["key-0001"].metadata == {"list": "last"}


def test_putting_and_deleting_nothing_is_allowed(index: VectorIndex) -> None:
    assert index.put([]) == 0
    assert index.delete([]) == 0
    assert index.get([]) == {}
    assert list(index.keys()) == []
    assert index.query(unit(1), 10) == []


def test_more_than_a_batch_goes_in_and_out(index: VectorIndex) -> None:
    vectors = [vector(number, month=number % 3) for number in range(1_203)]
    keys = {stored.key for stored in vectors}
    assert index.put(iter(vectors)) == 1_203
    assert index.count() == 1_203
    listed = list(index.keys())
    assert len(listed) == 1_203
    assert set(listed) == keys
    assert index.get(keys).keys() == keys
    assert index.delete(iter([*listed[:1_100], "absent"])) == 1_101
    assert set(index.keys()) == set(listed[1_100:])


def test_deleting_missing_keys_changes_nothing(index: VectorIndex) -> None:
    index.put([vector(1), vector(2)])
    assert index.delete(["absent", "key-0002", "key-0002", "it's"]) == 3
    assert index.delete(["key-0002"]) == 1
    assert list(index.keys()) == ["key-0001"]


def test_any_text_within_limits_is_a_key(index: VectorIndex) -> None:
    keys = ["a", "k" * 1_024, "ü" * 512, "it's", 'a"b\\c`d%s{}', "😀 #1", "--", "$1", "NULL"]
    index.put(Vector(key, unit(n), {}) for n, key in enumerate(keys))
    assert list(index.get(keys)) == keys
    assert [index.query(unit(n), 1)[0].key for n in range(len(keys))] == keys
    for n, key in enumerate(keys, start=1):
        index.delete([key])
        assert list(index.get(keys)) == keys[n:]


def test_query_returns_the_nearest_first(index: VectorIndex) -> None:
    vectors = {stored.key: stored for stored in (vector(n, month=n) for n in range(150))}
    index.put(vectors.values())
    query = unit(1_000)
    true = {key: cosine_distance(query, stored.values) for key, stored in vectors.items()}
    for top_k in (1, 7, 100):
        found = index.query(query, top_k)
        distances = [match.distance for match in found]
        assert distances == pytest.approx(sorted(true.values())[:top_k], abs=1e-3)
        assert distances == sorted(distances)
        for match in found:
            assert match.distance == pytest.approx(true[match.key], abs=1e-3)
            assert match.metadata == vectors[match.key].metadata
        estimated = index.query(query, top_k, metadata=False, estimate=True)
        assert index.measure(query, estimated) == pytest.approx(
            {match.key: true[match.key] for match in found}, abs=1e-3
        )


def test_distances_run_from_same_to_opposite_at_any_length(index: VectorIndex) -> None:
    axis = np.eye(8, dtype=np.float32)
    index.put(
        [
            Vector("same", axis[0] * 3, {}),
            Vector("across", axis[1] * np.float32(0.02), {}),
            Vector("opposite", -axis[0] * 5_000, {}),
        ]
    )
    found = index.query(axis[0] * 7, 3)
    assert [match.key for match in found] == ["same", "across", "opposite"]
    assert [match.distance for match in found] == pytest.approx([0, 1, 2], abs=1e-4)
    assert all(0 <= match.distance <= 2 for match in found)


def test_equal_distances_come_in_key_order(index: VectorIndex) -> None:
    index.put([Vector(key, unit(1), {}) for key in ("c", "a", "d", "b")])
    assert [match.key for match in index.query(unit(1), 4)] == ["a", "b", "c", "d"]


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


def test_unfit_filter_is_refused(index: VectorIndex) -> None:
    unfit: list[Filter] = [{}, {"subject": "x"}, {"month": "x"}, {"list": {"$gt": "a"}}]
    for filter in unfit:
        with pytest.raises(FilterError):
            index.query(unit(1), 1, filter)


def test_filter_may_use_all_constraints_of_the_backend(index: VectorIndex) -> None:
    index.put(POPULATION)
    most = index.capabilities.max_constraints
    senders = [f"s{number}" for number in range(most)]
    expected = {one.key for one in POPULATION if one.metadata.get("sender") in senders}
    found = index.query(unit(5_000), 100, {"sender": {"$in": senders}})
    assert {match.key for match in found} == expected != set()
    longer: Filter = {"sender": {"$in": senders}, "month": 1}
    with pytest.raises(FilterError, match=rf"has {most + 1} constraints .* takes {most}:"):
        index.query(unit(5_000), 1, longer)


def test_reopened_bucket_holds_what_was_put(place: Place, index: VectorIndex) -> None:
    index.put([vector(1, list="a", month=202401)])
    fields = dict(reversed(list(SPEC.fields.items())))
    again = place.open().index(replace(SPEC, fields=fields))
    again.ensure()
    again.put([vector(2, list="b", month=202402), vector(1, list="c", month=202403)])
    assert {key: stored.metadata for key, stored in index.get(index.keys()).items()} == {
        "key-0001": {"list": "c", "month": 202403},
        "key-0002": {"list": "b", "month": 202402},
    }


@pytest.mark.parametrize(
    "other",
    [replace(SPEC, dimension=16), replace(SPEC, non_filterable=("title",))],
    ids=["dimension", "non_filterable"],
)
def test_ensure_refuses_an_index_made_for_another_spec(
    place: Place, index: VectorIndex, other: IndexSpec
) -> None:
    index.put([vector(1)])
    with pytest.raises(VectorError, match=r"chunks-v1\.minilm.*exists as .*, wanted .*drop"):
        place.open().index(other).ensure()
    assert index.count() == 1


def test_indexes_of_a_bucket_are_listed_and_separate(place: Place, index: VectorIndex) -> None:
    other = place.open().index(replace(SPEC, name="another"))
    other.ensure()
    other.put([vector(7)])
    assert place.open().indexes() == ["another", "chunks-v1.minilm"]
    assert index.count() == 0
    other.drop()
    assert place.open().indexes() == ["chunks-v1.minilm"]


def test_empty_bucket_lists_no_indexes(place: Place) -> None:
    assert place.open().indexes() == []


def test_dropping_forgets_everything_and_may_be_repeated(index: VectorIndex) -> None:
    index.put([vector(1)])
    index.drop()
    index.drop()
    with pytest.raises(MissingIndexError, match=r"chunks-v1\.minilm.*`mail-assets backfill`"):
        index.count()
    index.ensure()
    assert index.count() == 0


def test_missing_index_is_named_by_every_operation(place: Place) -> None:
    missing = place.open().index(SPEC)
    for operation in (
        lambda: missing.put([vector(1)]),
        lambda: missing.delete(["a"]),
        lambda: missing.get(["a"]),
        lambda: missing.query(unit(1), 1),
        lambda: missing.query(unit(1), 1, {"list": "a"}),
        lambda: list(missing.keys()),
        missing.count,
        missing.describe,
    ):
        with pytest.raises(MissingIndexError, match=r"chunks-v1\.minilm.*does not exist"):
            operation()


def test_description_names_backend_and_shape(index: VectorIndex) -> None:
    facts = index.describe()
    assert facts["backend"] in ("lance", "s3vectors", "pgvector")
    assert (facts["index"], facts["dimension"], facts["metric"]) == (SPEC.name, 8, "cosine")
    assert facts["search"] in ("exact", "service")


def test_description_has_the_stored_dimension(place: Place, index: VectorIndex) -> None:
    index.put([vector(1)])
    assert place.open().index(replace(SPEC, dimension=16)).describe()["dimension"] == 8


def test_maintaining_changes_no_result(index: VectorIndex) -> None:
    index.maintain()
    index.put(POPULATION)
    before = index.query(unit(1), 20, {"month": {"$gte": 0}})
    index.maintain()
    assert index.query(unit(1), 20, {"month": {"$gte": 0}}) == before
    assert index.count() == len(POPULATION)


def test_messages_hold_no_credentials(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = f"hidden-{secrets.token_hex(4)}"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    dsn = f"postgresql://someone:{secret}@127.0.0.1:1/mail" if place.dsn else None
    other = replace(place, environ={"SUPABASE_SERVICE_KEY": secret}, dsn=dsn)
    with pytest.raises(VectorError) as caught:
        other.open().index(SPEC).count()
    assert secret not in repr(caught.value)
    assert secret not in repr(caught.value.__cause__)


NAN, INFINITE = unit(1), unit(1)
NAN[3], INFINITE[0] = np.nan, -np.inf


BAD_VECTORS: list[tuple[Vector, str]] = [
    (Vector("bad", unit(1, 7), {}), r"'bad' has shape \(7,\), the index \(8,\)"),
    (Vector("bad", unit(1, 8).reshape(2, 4), {}), "shape"),
    (Vector("bad", NAN, {}), "'bad' holds NaN or Inf"),
    (Vector("bad", INFINITE, {}), "'bad' holds NaN or Inf"),
    (Vector("bad", np.zeros(8, np.float32), {}), "'bad' is the zero vector"),
    (Vector("bad", unit(1) * np.float32(1e-6), {}), "length 1e-06"),
    (Vector("bad", unit(1) * np.float32(1e6), {}), r"length 1e\+06"),
    (Vector("", unit(1), {}), "1 to 1024 bytes"),
    (Vector("k" * 1_025, unit(1), {}), "1 to 1024 bytes"),
    (Vector("ü" * 513, unit(1), {}), "1 to 1024 bytes"),
    (Vector("nul\0", unit(1), {}), "without NUL"),
    (Vector("lone \ud800", unit(1), {}), "UTF-8"),
    (Vector("bad", unit(1), {"list": "x" * 2_040}), "2051 of them filterable"),
    (Vector("bad", unit(1), {"list": "ü" * 1_020}), "2051 of them filterable"),
    (Vector("bad", unit(1), {"subject": "x" * 40_960}), "40974 bytes of metadata"),
    (Vector("bad", unit(1), {"text": "x"}), "'text': the index has no such field"),
    (Vector("bad", unit(1), {"list": 1}), "1 is not a string"),
    (Vector("bad", unit(1), {"list": ["a"]}), "is not a string"),
    (Vector("bad", unit(1), {"list": "nul\0"}), "'list'"),
    (Vector("bad", unit(1), {"subject": ["lone \ud800"]}), "'subject'"),
    (Vector("bad", unit(1), {"month": "x"}), "'x' is not a finite number"),
    (Vector("bad", unit(1), {"month": True}), "True is not a finite number"),
    (Vector("bad", unit(1), {"month": float("inf")}), "inf is not a finite number"),
    (Vector("bad", unit(1), {"month": 2**53 + 1}), "is not a finite number"),
    (Vector("bad", unit(1), {"month": -(10**400)}), "is not a finite number"),
]


def test_bad_vector_stops_its_whole_batch(index: VectorIndex) -> None:
    for bad, reason in BAD_VECTORS:
        with pytest.raises(VectorError, match=reason) as caught:
            index.put([vector(1), bad])
        assert SPEC.name in str(caught.value)
    assert index.count() == 0


def test_metadata_at_the_limits_is_stored(index: VectorIndex) -> None:
    widest = "x" * (2_048 - len('{"list":""}'))
    longest = "ü" * ((40_960 - 2_048 - len(',"subject":""')) // 2)
    index.put([vector(1, list=widest, subject=longest)])
    assert index.get(["key-0001"])["key-0001"].metadata == {"list": widest, "subject": longest}


def test_bad_query_vector_is_refused(index: VectorIndex) -> None:
    for bad in (unit(1, 9), NAN, INFINITE, np.zeros(8, np.float32)):
        with pytest.raises(VectorError, match="the query vector"):
            index.query(bad, 1)


def test_top_k_outside_the_caps_is_refused(index: VectorIndex) -> None:
    for top_k in (0, -1, index.capabilities.max_top_k + 1):
        with pytest.raises(VectorError, match=f"top_k is {top_k}; ask for 1 to"):
            index.query(unit(1), top_k)
