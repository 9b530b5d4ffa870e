"""Searches of a Lance index: how much is read, and from which table."""

from __future__ import annotations

from asyncio import run_coroutine_threadsafe
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lancedb.background_loop import LOOP
from lancedb.table import AsyncTable

from mail_assets.lance import table
from mail_assets.vectors import lance
from mail_assets.vectors.index import IndexSpec, MissingIndexError, VectorIndex
from mail_assets.vectors.lance import LanceIndex, choose_probes, refine_factor
from mail_assets.vectors.open import open_bucket
from mail_assets_tests.limits import change_limits
from mail_assets_tests.vectors.samples import MAIL, clustered, mail_vectors


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


def test_a_distant_query_still_finds_the_nearest(
    writer: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    index = open_bucket(f"lance:{tmp_path}").index(spec)
    index.ensure()
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
    opened = open_bucket(f"lance:{tmp_path}").index(MAIL)
    opened.ensure()
    return opened


@pytest.fixture
def reader(tmp_path: Path, writer: VectorIndex) -> LanceIndex:
    """The same index as another process has it."""
    opened = open_bucket(f"lance:{tmp_path}").index(MAIL)
    assert isinstance(opened, LanceIndex)
    return opened


def test_an_open_table_sees_the_writes_of_others(
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


def test_an_index_filled_after_opening_is_fully_searched(
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
def test_a_recreated_index_is_opened_again(
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


def test_a_read_of_a_deleted_version_is_repeated(
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
