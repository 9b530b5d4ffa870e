"""What every vector bucket must do alike, run against each backend."""

from __future__ import annotations

import multiprocessing
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mail_assets.store.binaries import vector_cpu_ok
from mail_assets.vectors.bucket import Bucket, open_bucket
from mail_assets.vectors.filters import Filter, FilterError, matches
from mail_assets.vectors.index import (
    Floats,
    IndexSpec,
    Metadata,
    MissingIndexError,
    Vector,
    VectorError,
    VectorIndex,
)
from mail_assets_tests.vectors.fake_s3vectors import FakeS3Vectors

BACKENDS = ("lance", "s3vectors", "supabase", "pgvector")
TOKEN = "a-service-key"
SPEC = IndexSpec(
    name="chunks-v1.minilm",
    dimension=8,
    fields={"list": "string", "month": "number", "sender": "string"},
    non_filterable=("subject",),
)


@dataclass(frozen=True)
class Place:
    """Where a bucket is, in terms that another process can open it by."""

    url: str
    environ: Mapping[str, str] = field(default_factory=dict)
    dsn: str | None = None

    def open(self) -> Bucket:
        return open_bucket(self.url, self.environ, dsn=self.dsn)


@pytest.fixture(params=BACKENDS)
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    kind = request.param
    if kind == "lance":
        yield Place(f"lance:{tmp_path / 'bucket'}")
    elif kind == "s3vectors":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "an-id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
        with FakeS3Vectors("aws") as fake:
            yield Place(f"s3vectors://mail?region=eu-central-1&endpoint={fake.url}")
    elif kind == "supabase":
        with FakeS3Vectors("supabase", token=TOKEN) as fake:
            url = f"supabase+http://127.0.0.1:{fake.port}/mail"
            yield Place(url, {"SUPABASE_SERVICE_KEY": TOKEN})
    elif not vector_cpu_ok():
        pytest.skip("this CPU cannot run the pgvector of the embedded server")
    else:
        yield Place("pgvector:", dsn=request.getfixturevalue("postgres_dsn"))


@pytest.fixture
def index(place: Place) -> VectorIndex:
    opened = place.open().index(SPEC)
    opened.ensure()
    return opened


def unit(seed: int, dimension: int = SPEC.dimension) -> Floats:
    values = np.random.default_rng(seed).standard_normal(dimension)
    return (values / np.linalg.norm(values)).astype(np.float32)


def vector(number: int, **metadata: str | int | float) -> Vector:
    return Vector(f"key-{number:04}", unit(number), dict(metadata))


def cosine_distance(a: Floats, b: Floats) -> float:
    x, y = a.astype(np.float64), b.astype(np.float64)
    return float(1 - x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))


def test_what_is_put_is_got_back(index: VectorIndex) -> None:
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


def test_values_come_only_when_asked_for(index: VectorIndex) -> None:
    index.put([vector(1, list="a")])
    found = index.get(["key-0001"])["key-0001"]
    assert found.values.shape == (0,)
    assert found.metadata == {"list": "a"}


def test_putting_again_overwrites_and_forgets_old_metadata(index: VectorIndex) -> None:
    index.put([vector(1, list="a", month=1), vector(2)])
    index.put([Vector("key-0001", unit(99), {"list": "b"})])
    found = index.get(["key-0001"], data=True)["key-0001"]
    assert found.metadata == {"list": "b"}
    np.testing.assert_allclose(found.values, unit(99), atol=5e-4)
    assert index.count() == 2


def test_the_last_of_equal_keys_wins_and_counts_once(index: VectorIndex) -> None:
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


def test_a_query_returns_the_nearest_first(index: VectorIndex) -> None:
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


def test_distances_run_from_same_to_opposite_whatever_the_length(index: VectorIndex) -> None:
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


LISTS = ("a", "b", "it's", "", "😀", "back\\slash", 'quo"te', "per%cent", "`tick`", "NULL")
MONTHS = (-1, 0, 0.5, 1, 202401, 202402, 2**53)
POPULATION = [
    Vector(
        f"key-{number:03}",
        unit(number),
        {
            **({"list": LISTS[number % len(LISTS)]} if number % 4 else {}),
            **({"month": MONTHS[number % len(MONTHS)]} if number % 3 else {}),
            **({"sender": f"s{number % 5}"} if number % 5 else {}),
            "subject": "not filterable",
        },
    )
    for number in range(90)
]

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


def test_filters_mean_what_the_reference_matcher_says(index: VectorIndex) -> None:
    index.put(POPULATION)

    @settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
    @given(filters_of_all_kinds)
    def holds(filter: Filter) -> None:
        expected = {stored.key for stored in POPULATION if matches(filter, stored.metadata)}
        found = [match.key for match in index.query(unit(5_000), 100, filter)]
        assert len(found) == len(set(found))
        assert set(found) == expected
        if index.caps.list_filter:
            assert set(index.find(filter)) == expected

    holds()


def test_only_backends_that_say_so_list_by_filter(index: VectorIndex) -> None:
    index.put(POPULATION)
    if index.caps.list_filter:
        assert set(index.find({"sender": "s1"})) == {
            stored.key for stored in POPULATION if stored.metadata.get("sender") == "s1"
        }
    else:
        with pytest.raises(VectorError, match=r"chunks-v1\.minilm.*cannot list"):
            index.find({"sender": "s1"})


def test_an_unfit_filter_is_refused(index: VectorIndex) -> None:
    unfit: list[Filter] = [{}, {"subject": "x"}, {"month": "x"}, {"list": {"$gt": "a"}}]
    for filter in unfit:
        with pytest.raises(FilterError):
            index.query(unit(1), 1, filter)


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
]


def test_bad_vectors_are_refused_before_anything_of_their_batch_is_written(
    index: VectorIndex,
) -> None:
    for bad, reason in BAD_VECTORS:
        with pytest.raises(VectorError, match=reason) as caught:
            index.put([vector(1), bad])
        assert SPEC.name in str(caught.value)
    assert index.count() == 0


def test_metadata_at_the_limits_are_taken(index: VectorIndex) -> None:
    widest = "x" * (2_048 - len('{"list":""}'))
    longest = "ü" * ((40_960 - 2_048 - len(',"subject":""')) // 2)
    index.put([vector(1, list=widest, subject=longest)])
    assert index.get(["key-0001"])["key-0001"].metadata == {"list": widest, "subject": longest}


def test_a_bad_query_vector_is_refused(index: VectorIndex) -> None:
    for bad in (unit(1, 9), NAN, INFINITE, np.zeros(8, np.float32)):
        with pytest.raises(VectorError, match="the query vector"):
            index.query(bad, 1)


def test_top_k_outside_the_caps_is_refused(index: VectorIndex) -> None:
    for top_k in (0, -1, index.caps.max_top_k + 1):
        with pytest.raises(VectorError, match=f"top_k is {top_k}; ask for 1 to"):
            index.query(unit(1), top_k)


def test_a_reopened_bucket_holds_what_was_put(place: Place, index: VectorIndex) -> None:
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


def test_indexes_of_a_bucket_are_listed_and_apart(place: Place, index: VectorIndex) -> None:
    other = place.open().index(replace(SPEC, name="another"))
    other.ensure()
    other.put([vector(7)])
    assert place.open().indexes() == ["another", "chunks-v1.minilm"]
    assert index.count() == 0
    other.drop()
    assert place.open().indexes() == ["chunks-v1.minilm"]


def test_an_empty_bucket_lists_no_indexes(place: Place) -> None:
    assert place.open().indexes() == []


def test_dropping_forgets_everything_and_may_be_repeated(index: VectorIndex) -> None:
    index.put([vector(1)])
    index.drop()
    index.drop()
    with pytest.raises(MissingIndexError, match=r"chunks-v1\.minilm.*ensure"):
        index.count()
    index.ensure()
    assert index.count() == 0


def test_a_missing_index_is_named_by_every_operation(place: Place) -> None:
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


def test_a_description_names_backend_and_shape(index: VectorIndex) -> None:
    facts = index.describe()
    assert facts["backend"] in ("lance", "s3vectors", "pgvector")
    assert (facts["index"], facts["dimension"], facts["metric"]) == (SPEC.name, 8, "cosine")
    assert facts["search"] in ("exact", "service")


def test_maintaining_changes_no_answer(index: VectorIndex) -> None:
    index.maintain()
    index.put(POPULATION)
    before = index.query(unit(1), 20, {"month": {"$gte": 0}})
    index.maintain()
    assert index.query(unit(1), 20, {"month": {"$gte": 0}}) == before
    assert index.count() == len(POPULATION)


def run_together(work: Callable[..., None], arguments: Sequence[tuple[object, ...]]) -> None:
    """Call `work` in a new process for each of `arguments`, with a barrier as the last one."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(arguments), timeout=60)
    processes = [context.Process(target=work, args=(*each, barrier)) for each in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(arguments)


def write_from_another_process(place: Place, first: int, barrier: Barrier) -> None:
    index = place.open().index(SPEC)
    barrier.wait()
    index.ensure()
    for start in range(first, first + 40, 10):
        barrier.wait()
        index.put(vector(number, month=first) for number in range(start, start + 10))
    index.delete([f"key-{first + 39:04}"])


@pytest.mark.slow
def test_processes_writing_different_keys_lose_nothing(place: Place) -> None:
    starts = [0, 100]
    run_together(write_from_another_process, [(place, start) for start in starts])
    index = place.open().index(SPEC)
    expected = {f"key-{start + n:04}" for start in starts for n in range(39)}
    listed = list(index.keys())
    assert len(listed) == len(expected)
    assert set(listed) == expected
    match = index.query(unit(105), 1, {"month": 100})[0]
    assert (match.key, match.metadata) == ("key-0105", {"month": 100})


def test_messages_hold_no_credentials(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = f"hidden-{secrets.token_hex(4)}"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    dsn = f"postgresql://someone:{secret}@127.0.0.1:1/mail" if place.dsn else None
    other = replace(place, environ={"SUPABASE_SERVICE_KEY": secret}, dsn=dsn)
    with pytest.raises(VectorError) as caught:
        other.open().index(SPEC).count()
    assert secret not in repr(caught.value)
    assert secret not in repr(caught.value.__cause__)
