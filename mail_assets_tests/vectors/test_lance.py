"""LanceDB: its indexes, concurrent upserts of one key, S3-like storage."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from lancedb.table import Table

from mail_assets.vectors import lance, lance_filters
from mail_assets.vectors.filters import Filter, matches_filter
from mail_assets.vectors.index import IndexSpec, Vector, VectorError, VectorIndex
from mail_assets.vectors.lance import LanceIndex
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
from mail_assets_tests.vectors.samples import MAIL, POPULATION, SPEC, clustered, mail_vectors


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VectorIndex:
    change_limits(monkeypatch, lance, least=4_000, indexed_from=4_000)
    opened = open_bucket(f"lance:{tmp_path}").index(MAIL)
    opened.ensure()
    return opened


def test_below_the_threshold_no_index_is_built(index: VectorIndex) -> None:
    index.put(mail_vectors(clustered(3_999)))
    index.maintain()
    assert index.describe()["search"] == "exact"


def test_an_indexed_search_finds_what_an_exact_one_finds(index: VectorIndex) -> None:
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


def test_a_dimension_unfit_for_ivf_rq_gets_another_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_limits(monkeypatch, lance, least=300, indexed_from=300)
    index = open_bucket(f"lance:{tmp_path}").index(IndexSpec("odd", 10, {}))
    index.ensure()
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
    index = open_bucket(f"lance:{tmp_path}").index(SPEC)
    index.ensure()
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


def test_a_query_of_another_dimension_is_refused(tmp_path: Path, index: VectorIndex) -> None:
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
def test_processes_upserting_the_same_keys_leave_one_row_each(
    tmp_path: Path, index: VectorIndex
) -> None:
    run_together(put_the_same_keys, [(Place(f"lance:{tmp_path}"), seed) for seed in range(2)])
    assert sorted(index.keys()) == [f"key-{n:05}" for n in range(550)]


@pytest.mark.slow
def test_a_bucket_works_on_s3_like_storage() -> None:
    with serve_bucket() as environ:
        index = open_bucket("lance:s3://mail/vectors", environ).index(MAIL)
        index.ensure()
        stored = mail_vectors(clustered(50))
        index.put(stored)
        index.delete(["key-00000"])
        assert index.count() == 49
        assert index.query(stored[5].values, 1)[0].key == "key-00005"
        assert open_bucket("lance:s3://mail/vectors", environ).indexes() == ["mail"]
