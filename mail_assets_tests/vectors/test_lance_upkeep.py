"""Upkeep of a table of vectors: new rows are indexed, unneeded versions are deleted."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from lancedb.table import Table

from mail_assets.lance import upkeep as upkeep_module
from mail_assets.lance.upkeep import TableUpkeep, Upkeep, read_fragments, read_index_states
from mail_assets.vectors import lance
from mail_assets.vectors.index import IndexSpec, VectorError, VectorIndex
from mail_assets.vectors.lance import LanceIndex, plan_upkeep
from mail_assets.vectors.open import open_bucket
from mail_assets_tests.limits import change_limits
from mail_assets_tests.vectors.samples import MAIL, clustered, mail_vectors, make_index


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VectorIndex:
    change_limits(monkeypatch, lance, least=300, indexed_from=300)
    return make_index(f"lance:{tmp_path}")


def upkeep(index: VectorIndex) -> TableUpkeep:
    assert isinstance(index, LanceIndex)
    return plan_upkeep(index._table.open(), index.label)


def fragment_rows(index: VectorIndex) -> list[int]:
    return [fragment.rows for fragment in read_fragments(upkeep(index).table)]


def count_versions(index: VectorIndex) -> int:
    return len(upkeep(index).table.list_versions())


def test_frequent_upkeep_after_little_mail_leaves_few_segments(index: VectorIndex) -> None:
    values = clustered(500)
    index.put(mail_vectors(values[:300]))
    index.maintain()
    segments = [index.describe()["segments"]]
    for start in range(300, 500, 20):
        index.put(mail_vectors(values[start : start + 20], start=start))
        index.maintain()
        facts = index.describe()
        assert facts["unindexed_rows"] == 0
        segments.append(facts["segments"])
    # Made again when there would be a fifth, not each time.
    assert segments == [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3]
    assert index.query(values[490], 1)[0].key == "key-00490"


def test_facts_have_equal_names_before_the_first_index(index: VectorIndex) -> None:
    """The tables of upkeep show several indexes, and take only rows with the same columns."""
    index.put(mail_vectors(clustered(300)))
    before = index.describe()
    index.maintain()
    assert index.describe().keys() == before.keys()
    assert (before["segments"], before["unindexed_rows"]) == (0, 300)


def test_upkeep_after_much_mail_moves_only_new_rows(index: VectorIndex) -> None:
    values = clustered(2_000)
    index.insert(mail_vectors(values[:1_000]))
    index.maintain()
    in_place = read_fragments(upkeep(index).table)
    for start in range(1_000, 1_500, 100):
        index.insert(mail_vectors(values[start : start + 100], start=start))
    index.maintain()
    assert read_fragments(upkeep(index).table)[:1] == in_place
    assert fragment_rows(index) == [1_000, 500]
    assert (index.describe()["segments"], index.describe()["unindexed_rows"]) == (1, 0)
    index.insert(mail_vectors(values[1_500:], start=1_500))
    index.maintain()
    assert {*index.keys()} == {f"key-{number:05}" for number in range(2_000)}
    assert index.query(values[1_990], 1)[0].key == "key-01990"


def test_upkeep_with_nothing_new_makes_no_index(index: VectorIndex) -> None:
    index.insert(mail_vectors(clustered(400)))
    index.maintain()
    made = read_index_states(upkeep(index).table)
    index.maintain()
    assert read_index_states(upkeep(index).table) == made


@pytest.mark.parametrize("column", [*MAIL.fields, "vector"])
def test_a_lost_index_is_reported_and_created_again(index: VectorIndex, column: str) -> None:
    index.insert(mail_vectors(clustered(299)))
    index.probe()  # so few need none
    index.insert(mail_vectors(clustered(100), start=299))
    index.maintain()
    upkeep(index).table.drop_index(f"{column}_idx")
    with pytest.raises(VectorError, match=f"no index of {column}; .* index rebuild"):
        index.probe()
    index.maintain()
    index.probe()


def test_index_of_other_bits_is_rebuilt(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    index.put(mail_vectors(clustered(400)))
    for bits in (1, 3, 3):
        monkeypatch.setattr(lance, "BITS", bits)
        index.maintain()
        state = read_index_states(upkeep(index).table)["vector"]
        made.append((state.bits, state.made_at))
    assert [bits for bits, _ in made] == [1, 3, 3]
    assert made[1] == made[2]


@pytest.mark.parametrize(
    ("fragments", "rows", "many"),
    [(100, 0, False), (101, 0, True), (101, 50_000, True), (101, 50_500, False)],
)
def test_large_table_may_have_more_fragments(
    index: VectorIndex, fragments: int, rows: int, many: bool
) -> None:
    assert upkeep(index).limits.has_many_fragments(fragments, rows) is many


def test_fill_indexes_months_often_and_vectors_seldom(index: VectorIndex) -> None:
    values = clustered(3_000)
    due, lacking = [], []
    stops = [2_000, 2_299, 2_300, 2_666, 2_999, 3_000]
    for start, stop in pairwise([0, *stops]):
        index.insert(mail_vectors(values[start:stop], start=start))
        due.append(upkeep(index).find_due())
        if index.needs_upkeep():
            index.catch_up()
        states = read_index_states(upkeep(index).table)
        lacking.append(tuple(states[name].unindexed_rows for name in ("month", "sender", "vector")))
    finders = Upkeep.FINDERS
    assert due == [Upkeep.WHOLE, None, finders, finders, finders, Upkeep.INDEXES]
    assert lacking == [
        (0, 0, 0),
        (299,) * 3,
        (0, 300, 300),
        (0, 666, 666),
        (0, 999, 999),
        (0, 0, 0),
    ]
    assert index.query(values[2_999], 1)[0].key == "key-02999"


def test_fill_moves_only_unindexed_rows_into_one_fragment(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_limits(monkeypatch, lance, fragments=4)
    values = clustered(1_000)
    index.insert(mail_vectors(values[:600]))
    index.maintain()
    sizes, unindexed = [], []
    for start in range(600, 1_000, 50):
        index.insert(mail_vectors(values[start : start + 50], start=start))
        if index.needs_upkeep():
            index.catch_up()
        sizes.append(fragment_rows(index))
        unindexed.append(index.describe()["unindexed_rows"])
    assert sizes[2:4] == [[600, 50, 50, 50], [600, 200]]
    assert sizes[4:7] == [[600, 200, 50], [600, 300], [600, 300, 50]]
    assert unindexed == [50, 100, 150, 200, 250, 0, 50, 100]
    assert len({*index.keys()}) == index.count() == 1_000
    assert [index.query(values[n], 1)[0].key for n in (7, 700, 999)] == [
        "key-00007",
        "key-00700",
        "key-00999",
    ]


def test_many_fragments_are_compacted(index: VectorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    values = clustered(800)
    for start in range(0, 800, 100):
        index.insert(mail_vectors(values[start : start + 100], start=start))
    upkeep(index).create_index("vector")
    change_limits(monkeypatch, lance, fragments=4)
    assert upkeep(index).find_due() is Upkeep.FRAGMENTS
    index.catch_up()
    assert fragment_rows(index) == [800]
    assert upkeep(index).find_due() is None


def test_vectors_wait_an_hour_at_most(index: VectorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    values = clustered(2_300)
    index.insert(mail_vectors(values[:2_000]))
    index.maintain()
    index.insert(mail_vectors(values[2_000:2_299], start=2_000))
    change_limits(monkeypatch, lance, old=dt.timedelta())
    assert upkeep(index).find_due() is None
    index.insert(mail_vectors(values[2_299:], start=2_299))
    assert upkeep(index).find_due() is Upkeep.WHOLE


def test_month_indexes_wait_2_minutes(index: VectorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    values = clustered(4_300)
    index.insert(mail_vectors(values[:4_000]))
    index.maintain()
    index.insert(mail_vectors(values[4_000:], start=4_000))
    assert upkeep(index).find_due() is None
    change_limits(monkeypatch, lance, finders_old=dt.timedelta())
    assert upkeep(index).find_due() is Upkeep.FINDERS


def test_old_versions_stay_while_a_reader_may_need_them(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    for start in range(0, 300, 30):
        index.put(mail_vectors(clustered(30, seed=start), start=start))
    index.maintain()
    assert count_versions(index) > 10
    keys = index.keys()
    first = next(keys)
    index.put(mail_vectors(clustered(30, seed=1), start=300))
    index.maintain()
    assert len({first, *keys}) == 300
    # Lance rounds times: the newest may seem to come from a moment that is yet to come
    monkeypatch.setattr(upkeep_module, "LONGEST_READ", dt.timedelta(seconds=-1))
    monkeypatch.setattr(upkeep_module, "COMPACTING", dt.timedelta())
    index.maintain()
    index.maintain()
    assert count_versions(index) <= 2
    assert index.count() == 330


def test_slow_compacting_deletes_no_version_in_use(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    for start in range(0, 50, 10):
        index.put(mail_vectors(clustered(10, seed=start), start=start))
    before = count_versions(index)
    kind = type(upkeep(index).table)
    optimize = kind.optimize

    def take_long(table: Table, cleanup_older_than: dt.timedelta) -> object:
        return optimize(table, cleanup_older_than=cleanup_older_than - dt.timedelta(seconds=50))

    monkeypatch.setattr(kind, "optimize", take_long)
    index.maintain()
    assert count_versions(index) > before


def files_with(folder: Path, content: bytes) -> list[Path]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if content in path.read_bytes()]


def test_erasing_a_whole_fragment_rebuilds_the_indexes(index: VectorIndex) -> None:
    stored = mail_vectors(clustered(401))
    index.insert(stored[:400])
    index.maintain()
    index.insert(stored[400:])
    index.maintain()
    before = read_index_states(upkeep(index).table)
    index.delete([stored[400].key])
    index.maintain(erase=True)
    after = read_index_states(upkeep(index).table)
    assert all(after[column].made_at != before[column].made_at for column in ("vector", "month"))
    assert after["vector"].rows == 400


@pytest.mark.parametrize("by_name", [False, True], ids=["by its spec", "by its name alone"])
@pytest.mark.parametrize("count", [40, 400], ids=["exact", "indexed"])
def test_erasing_leaves_nothing_of_deleted_vectors_in_any_file(
    tmp_path: Path, index: VectorIndex, count: int, by_name: bool
) -> None:
    stored = mail_vectors(clustered(count))
    gone, kept = stored[7], stored[8]
    gone = replace(gone, metadata={**gone.metadata, "sender": "forgotten@example.org"})
    index.put([*stored, gone])
    index.maintain()
    index.delete([gone.key])
    index.maintain()
    traces = (gone.values.tobytes(), gone.key.encode(), b"forgotten@example.org")
    assert all(files_with(tmp_path, trace) for trace in traces)
    kinds = {column: one.kind for column, one in read_index_states(upkeep(index).table).items()}
    eraser = index
    if by_name:
        eraser = open_bucket(f"lance:{tmp_path}").index(IndexSpec(index.spec.name, 1, {}))
    eraser.maintain(erase=True)
    left = {column: one.kind for column, one in read_index_states(upkeep(index).table).items()}
    assert left == kinds
    assert not any(files_with(tmp_path, trace) for trace in traces)
    assert files_with(tmp_path, kept.values.tobytes())
    assert index.count() == count - 1
    assert index.query(kept.values, 1)[0].key == kept.key
    facts = index.describe()
    assert facts["unindexed_rows"] == (facts["rows"] if facts["search"] == "exact" else 0)


ALIKE = """
import numpy as np
from mail_assets.vectors.index import IndexSpec, Vector
from mail_assets.vectors.open import open_bucket
index = open_bucket("lance:" + {folder!r}).index(IndexSpec("alike", 8, {{}}))
index.ensure()
index.put(Vector(str(n), np.ones(8, np.float32), {{}}) for n in range(20_000))
index.maintain()
"""


@pytest.mark.slow
@pytest.mark.parametrize("log", ["", "warn"])
def test_similar_vectors_are_logged_only_on_request(tmp_path: Path, log: str) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "LANCEDB_LOG"}
    run = subprocess.run(
        [sys.executable, "-c", ALIKE.format(folder=str(tmp_path))],
        env=environ | ({"LANCEDB_LOG": log} if log else {}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("WARN" in run.stderr) == bool(log), run.stderr
