"""LanceDB: its indexes, searches, concurrent upserts of one key, S3-like storage."""

from __future__ import annotations

from asyncio import run_coroutine_threadsafe
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from lancedb.background_loop import LOOP
from lancedb.table import AsyncTable, Table

from mail_assets.lance import table
from mail_assets.vectors import lance, lance_filters
from mail_assets.vectors.filters import Filter, matches_filter
from mail_assets.vectors.index import IndexSpec, MissingIndexError, Vector, VectorError, VectorIndex
from mail_assets.vectors.lance import LanceIndex, choose_probes, refine_factor
from mail_assets.vectors.open import open_bucket
from mail_assets_tests.forks import FORKS, start_process
from mail_assets_tests.limits import change_limits
from mail_assets_tests.s3 import serve_bucket
from mail_assets_tests.vectors.filter_strategies import filters_of_all_kinds
from mail_assets_tests.vectors.interrupted import ERASED, fails_once
from mail_assets_tests.vectors.processes import (
    Place,
    catch_up_for_ever,
    put_the_same_keys,
    run_together,
    write_for_ever,
)
from mail_assets_tests.vectors.samples import (
    MAIL,
    POPULATION,
    SPEC,
    clustered,
    mail_vectors,
    make_index,
)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VectorIndex:
    change_limits(monkeypatch, lance, least=4_000, indexed_from=4_000)
    return make_index(f"lance:{tmp_path}")


def test_below_the_threshold_no_index_is_built(index: VectorIndex) -> None:
    index.put(mail_vectors(clustered(3_999)))
    index.maintain()
    assert index.describe()["search"] == "exact"


def test_indexed_search_finds_what_an_exact_one_finds(index: VectorIndex) -> None:
    values = clustered(5_000)
    index.put(mail_vectors(values[:4_500]))
    index.maintain()
    index.put(mail_vectors(values[4_500:], start=4_500))
    facts = index.describe()
    assert (facts["search"], facts["rows"]) == ("ivfrq", 5_000)
    assert facts["unindexed_rows"] == 500
    months = np.array([200001 + n % 300 for n in range(5_000)])
    rare = np.flatnonzero(months == 200007)
    recalls = []
    for query in clustered(40, seed=1):
        distances = 1 - values @ query
        nearest = {f"key-{n:05}" for n in np.argsort(distances)[:20]}
        found = index.query(query, 20)
        recalls.append(len({match.key for match in found} & nearest) / 20)
        # Exact distances, not the index's estimates.
        assert [match.distance for match in found] == pytest.approx(
            [distances[int(match.key[4:])] for match in found], abs=1e-5
        )
        found = index.query(query, 20, {"month": 200007})
        assert {match.key for match in found} == {f"key-{n:05}" for n in rare}
    # Lance draws the centres of an index at random: a query of 40 may lose 3 of 20, their mean not.
    assert np.mean(recalls) >= 0.95
    index.maintain()
    assert index.describe()["unindexed_rows"] == 0


def test_few_values_give_a_bitmap_and_the_key_no_index(index: VectorIndex) -> None:
    index.put(mail_vectors(clustered(4_000)))
    index.maintain()
    index.maintain()
    assert isinstance(index, LanceIndex)
    kinds = {tuple(x.columns): x.index_type for x in index._table.open().list_indices()}
    assert kinds == {
        ("vector",): "IvfRq",
        ("list",): "Bitmap",
        ("sender",): "BTree",
        ("month",): "BTree",
    }


def test_dimension_unfit_for_ivf_rq_gets_another_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_limits(monkeypatch, lance, least=300, indexed_from=300)
    index = make_index(f"lance:{tmp_path}", IndexSpec("odd", 10, {}))
    values = np.random.default_rng(0).standard_normal((400, 10)).astype(np.float32)
    index.put(Vector(str(n), row, {}) for n, row in enumerate(values))
    index.maintain()
    assert index.describe()["search"] == "ivfsq"
    assert index.query(values[7], 1)[0].key == "7"


@pytest.mark.parametrize("listed", [600, 0])
def test_filters_mean_the_same_before_and_after_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: int
) -> None:
    monkeypatch.setattr(lance_filters, "LISTED_WHILE_ONE_IS_READ", listed)
    change_limits(monkeypatch, lance, least=60, indexed_from=60)
    index = make_index(f"lance:{tmp_path}", SPEC)
    index.put(POPULATION[:70])
    index.maintain()
    index.put(POPULATION[70:])
    assert index.describe()["search"] == "ivfrq"

    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(filters_of_all_kinds)
    def holds(filter: Filter) -> None:
        expected = {stored.key for stored in POPULATION if matches_filter(filter, stored.metadata)}
        assert {match.key for match in index.query(POPULATION[0].values, 100, filter)} == expected
        assert set(index.find(filter)) == expected

    holds()


def test_query_of_another_dimension_is_refused(tmp_path: Path, index: VectorIndex) -> None:
    index.put(mail_vectors(clustered(3)))
    other = replace(MAIL, dimension=MAIL.dimension - 1)
    query = clustered(1)[0][: other.dimension]
    reader = open_bucket(f"lance:{tmp_path}").index(other)
    wanted = rf"has vectors of {MAIL.dimension} numbers, wanted {other.dimension}; encode with the"
    with pytest.raises(VectorError, match=wanted):
        reader.query(query, 1)


@pytest.mark.slow
def test_kills_during_upkeep_lose_and_double_no_row(tmp_path: Path) -> None:
    place = Place(f"lance:{tmp_path}")
    index = place.open().index(MAIL)
    index.ensure()
    processes, heard = [], []
    for work in (write_for_ever, catch_up_for_ever):
        hears, told = FORKS.Pipe(duplex=False)
        processes.append(start_process(work, place, told))
        told.close()  # so that a process that ends otherwise ends the waiting
        heard.append(hears)
    try:
        for _ in range(4):
            heard[1].recv()
    finally:
        for process in reversed(processes):
            process.kill()
            process.join()
    count = 0
    with suppress(EOFError):
        while True:
            count = heard[0].recv()
    keys = sorted(index.keys())
    assert len(keys) in (count, count + 50)
    assert keys == [f"key-{number:05}" for number in range(len(keys))]
    index.maintain()
    held = index.get(keys, data=True)
    expected = np.concatenate([clustered(50, step) for step in range(len(keys) // 50)])
    np.testing.assert_array_equal(np.stack([held[key].values for key in keys]), expected)


def test_maintaining_gives_up_after_repeated_conflicts(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.put(mail_vectors(clustered(10)))
    assert isinstance(index, LanceIndex)
    kind = type(index._table.open())
    optimize, conflicts = kind.optimize, 2

    def interrupted(table: Table, cleanup_older_than: timedelta) -> object:
        nonlocal conflicts
        conflicts -= 1
        if conflicts >= 0:  # a race that cannot be provoked on demand
            raise RuntimeError("Retryable commit conflict for version 7")
        return optimize(table, cleanup_older_than=cleanup_older_than)

    monkeypatch.setattr(kind, "optimize", interrupted)
    index.maintain()
    assert conflicts < 0
    conflicts = 3
    with pytest.raises(VectorError, match=r"index mail.*interrupted 3 attempts.*run it again"):
        index.maintain()


def test_a_write_to_an_erased_version_is_repeated(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(index, LanceIndex)
    vectors, kind = mail_vectors(clustered(3)), type(index._table.open())
    with fails_once(monkeypatch, kind, "merge_insert", ERASED):
        index.put(vectors)
    with fails_once(monkeypatch, kind, "delete", ERASED):
        index.delete(["key-00000"])
    assert sorted(index.keys()) == ["key-00001", "key-00002"]
    with (
        fails_once(monkeypatch, kind, "delete", "the disk is full"),
        pytest.raises(VectorError, match="disk is full"),
    ):
        index.delete(["key-00001"])


@pytest.mark.slow
def test_processes_putting_one_key_leave_one_row(tmp_path: Path, index: VectorIndex) -> None:
    run_together(put_the_same_keys, [(Place(f"lance:{tmp_path}"), seed) for seed in range(2)])
    assert sorted(index.keys()) == [f"key-{n:05}" for n in range(550)]


@pytest.mark.slow
def test_bucket_works_on_s3_like_storage() -> None:
    with serve_bucket() as environ:
        index = open_bucket("lance:s3://mail/vectors", environ).index(MAIL)
        index.ensure()
        stored = mail_vectors(clustered(50))
        index.put(stored)
        index.delete(["key-00000"])
        assert index.count() == 49
        assert index.query(stored[5].values, 1)[0].key == "key-00005"
        assert open_bucket("lance:s3://mail/vectors", environ).indexes() == ["mail"]


@pytest.mark.parametrize(("top_k", "times"), [(1, 10), (20, 5), (50, 2), (10_000, 1)])
def test_refine_factor_falls_with_top_k(top_k: int, times: int) -> None:
    assert refine_factor(top_k, 100) == times


@pytest.mark.parametrize(
    ("rows", "probes"), [(0, 16), (10_000, 16), (130_000, 16), (500_000, 31), (3_000_000, 184)]
)
def test_half_of_an_index_is_read_and_all_of_a_small_one(rows: int, probes: int) -> None:
    assert choose_probes(rows) == probes


@pytest.mark.parametrize(
    ("matching", "probes"), [(500_000, 31), (135_000, 44), (45_000, 57), (5_000, 62), (0, 62)]
)
def test_probes_grow_as_fewer_rows_match(matching: int, probes: int) -> None:
    assert choose_probes(500_000, matching) == probes


@pytest.mark.parametrize(("few", "probes"), [(0, 0.01), (1_000, 0.01), (0, 50.0)])
def test_matches_far_from_the_query_are_found(
    writer: VectorIndex, monkeypatch: pytest.MonkeyPatch, few: int, probes: float
) -> None:
    monkeypatch.setattr(lance, "FEW", few)
    change_limits(monkeypatch, lance, least=300, indexed_from=300)
    monkeypatch.setattr(lance, "PARTITION_ROWS", 100)
    monkeypatch.setattr(lance, "PROBES", probes)
    monkeypatch.setattr(lance, "MIN_PROBES", 1)
    near, far = clustered(1, seed=1)[0], -clustered(1, seed=1)[0]
    noise = np.random.default_rng(0).standard_normal((20_000, 64)).astype(np.float32) / 100
    values = np.concatenate([near + noise[:19_000], far + noise[19_000:]])
    stored = mail_vectors(values)
    writer.put(
        replace(one, metadata={"list": "far" if n >= 19_000 else "near"})
        for n, one in enumerate(stored)
    )
    writer.maintain()
    assert writer.describe()["search"] == "ivfrq"
    assert len(writer.query(near, 20, {"list": "far"})) == 20


def test_distant_query_finds_nearest(writer: VectorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    change_limits(monkeypatch, lance, least=300, indexed_from=300)
    values = clustered(20_000)
    writer.put(mail_vectors(values))
    writer.maintain()
    assert writer.describe()["search"] == "ivfrq"
    found = []
    for question in clustered(40, seed=1) + clustered(40, seed=2) + clustered(40, seed=3):
        distances = 1 - values @ (question / np.linalg.norm(question))
        matches = writer.query(question, 50)
        last = np.sort(distances)[49]
        found.append(np.mean([match.distance <= last + 1e-5 for match in matches]))
    # 0.88 to 0.93, as the partitions fall; 0.45 with one bit of each number.
    assert np.mean(found) >= 0.75


def test_few_matching_vectors_are_compared_without_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_limits(monkeypatch, lance, least=300, indexed_from=300)
    monkeypatch.setattr(lance, "PARTITION_ROWS", 100)
    monkeypatch.setattr(lance, "choose_probes", lambda *_: pytest.fail("the index is read"))
    spec = IndexSpec("mail", 64, {"list": "string", "message_id": "string"})
    index = make_index(f"lance:{tmp_path}", spec)
    values = clustered(2_000)
    index.put(
        replace(one, metadata={"list": "a", "message_id": str(n // 100)})
        for n, one in enumerate(mail_vectors(values))
    )
    index.maintain()
    found = index.query(values[0], 50, {"message_id": {"$in": ["2", "3"]}})
    nearest = np.sort(1 - values[200:400] @ values[0])[:50]
    assert [one.distance for one in found] == pytest.approx([*nearest], abs=1e-5)


@pytest.fixture
def writer(tmp_path: Path) -> VectorIndex:
    return make_index(f"lance:{tmp_path}")


@pytest.fixture
def reader(tmp_path: Path, writer: VectorIndex) -> LanceIndex:
    """The same index as another process has it."""
    opened = open_bucket(f"lance:{tmp_path}").index(MAIL)
    assert isinstance(opened, LanceIndex)
    return opened


def test_open_table_sees_the_writes_of_others(
    writer: VectorIndex, reader: LanceIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[AsyncTable] = []

    async def count_opened(table: AsyncTable) -> None:
        opened.append(table)

    monkeypatch.setattr(reader._handle, "_check", count_opened)
    values = clustered(5)
    for n in range(5):
        writer.put(mail_vectors(values[n : n + 1], start=n))
        assert reader.query(values[n], 1)[0].key == f"key-{n:05}"
        assert reader.count() == n + 1
        assert [*reader.get([f"key-{n:05}"])] == [f"key-{n:05}"]
    assert len(opened) == 1
    monkeypatch.setattr(table, "KEEP", 0.0)  # what a minute does
    assert reader.count() == 5
    assert len(opened) == 2


def test_index_filled_after_opening_is_fully_searched(
    writer: VectorIndex, reader: LanceIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_limits(monkeypatch, lance, least=300, indexed_from=300)
    assert reader.count() == 0
    values = clustered(40_000)
    writer.put(mail_vectors(values))
    writer.maintain()
    assert writer.describe()["search"] == "ivfrq"
    for query in np.random.default_rng(2).standard_normal((20, MAIL.dimension)).astype(np.float32):
        assert reader.query(query, 50) == writer.query(query, 50)


@pytest.mark.parametrize("is_read_between", [True, False])
def test_recreated_index_is_opened_again(
    writer: VectorIndex, reader: LanceIndex, is_read_between: bool
) -> None:
    before, after = clustered(3, seed=1), clustered(3, seed=2)
    writer.put(mail_vectors(before))
    version = reader.describe()["version"]
    assert reader.query(before[0], 1)[0].key == "key-00000"
    writer.drop()
    if is_read_between:
        with pytest.raises(MissingIndexError):
            reader.query(before[0], 1)
    writer.ensure()
    writer.put(mail_vectors(after, start=10))
    assert reader.describe()["version"] == version
    assert reader.query(after[0], 1)[0].key == "key-00010"


def test_read_of_a_deleted_version_is_repeated(
    writer: VectorIndex, reader: LanceIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = clustered(5)
    writer.put(mail_vectors(values[:3]))
    reader.count()
    kept = reader._handle._kept
    assert kept

    async def fall_behind(table: AsyncTable) -> None:
        await table.checkout(await table.version())

    run_coroutine_threadsafe(fall_behind(kept.table), LOOP.loop).result()
    writer.put(mail_vectors(values[3:], start=3))
    writer.delete(["key-00000"])
    writer.maintain(erase=True)
    assert reader.query(values[4], 1)[0].key == "key-00004"


def test_estimated_matches_are_measured_exactly(
    writer: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_limits(monkeypatch, lance, least=300, indexed_from=300)
    values = clustered(12_000)
    writer.put(mail_vectors(values))
    writer.maintain()
    query = 3 * clustered(1, seed=1)[0]
    exact = {one.key: one.distance for one in writer.query(query, 500, metadata=False)}
    found = writer.query(query, 500, metadata=False, estimate=True)
    assert {one.key for one in found} == {*exact}
    assert {one.key: one.distance for one in found} != exact
    some = found[::50]
    assert writer.measure(query, some) == pytest.approx(
        {one.key: exact[one.key] for one in some}, abs=1e-5
    )
    writer.delete([some[0].key])
    writer.put(mail_vectors(clustered(2_000, seed=2), start=12_000))
    writer.maintain(erase=True)  # rows move
    assert writer.measure(query, some) == pytest.approx(
        {one.key: exact[one.key] for one in some[1:]}, abs=1e-5
    )
