"""Upkeep of a Lance table: fragments that move, outdated indexes, versions in use, pruning."""

import datetime as dt
from functools import partial
from pathlib import Path

import lancedb
import pyarrow as pa
import pytest

from mail_assets.errors import MailAssetsError
from mail_assets.lance import upkeep
from mail_assets.lance.upkeep import (
    FULL,
    Fragment,
    IndexState,
    OldVersions,
    clean_table,
    find_rest,
    find_unindexed,
    move_rows,
    oldest_in_use,
    prune_versions,
    read_fragments,
)


def fragments(*sizes: int) -> list[Fragment]:
    return [Fragment(number, size, size) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(("sizes", "moved"), [
    ([], []),
    ([10], []),
    ([10, 5], [5]),
    ([10, 6], [10, 6]),
    ([100, 20, 10, 5], [20, 10, 5]),
    ([1, 1, 1, 1], [1, 1, 1, 1]),
    ([FULL], []),
    ([FULL, 10], []),
    ([FULL, FULL, 100, 20], [20]),
    ([FULL, 100, 90], [100, 90]),
])  # fmt: skip
def test_new_rows_move_and_half_as_many_move_the_table(sizes: list[int], moved: list[int]) -> None:
    assert [fragment.rows for fragment in find_rest(fragments(*sizes))] == moved


def test_full_fragment_stays_after_deletions() -> None:
    deleted_from = Fragment(0, 10, FULL)
    assert find_rest([deleted_from, *fragments(0, 100, 20)[1:]]) == [Fragment(2, 20, 20)]


@pytest.mark.parametrize(
    ("unindexed", "found"),
    [(0, []), (4, []), (5, [5]), (14, [5]), (15, [10, 5]), (99, [20, 10, 5])],
)
def test_index_lacks_the_last_fragments(unindexed: int, found: list[int]) -> None:
    some = find_unindexed(fragments(20, 10, 5), unindexed)
    assert [fragment.rows for fragment in some] == found


def test_rows_move_into_one_fragment_and_none_is_lost(tmp_path: Path) -> None:
    table = lancedb.connect(tmp_path).create_table(
        "t", pa.table({"key": [f"k{n}" for n in range(10)], "month": [float(n) for n in range(10)]})
    )
    for start in (10, 20, 30):
        keys = [f"k{n}" for n in range(start, start + 10)]
        table.add(pa.table({"key": keys, "month": [1.0] * 10}))
    table.delete("key IN ('k0', 'k9', 'k20')")
    before = read_fragments(table)
    assert [(one.rows, one.size) for one in before] == [(8, 9), (10, 10), (9, 10), (10, 10)]
    move_rows(table, before[2:])
    assert [one.rows for one in read_fragments(table)] == [8, 10, 19]
    move_rows(table, [])
    assert [one.rows for one in read_fragments(table)] == [8, 10, 19]
    kept = sorted(table.to_arrow()["key"].to_pylist())
    assert kept == sorted(f"k{n}" for n in range(40) if n not in (0, 9, 20))


MINUTE, DAY = dt.timedelta(minutes=1), dt.timedelta(days=1)


def state(unindexed: int, age: dt.timedelta | None = MINUTE) -> IndexState:
    made_at = None if age is None else dt.datetime.now(dt.UTC) - age
    return IndexState("fts", 1_000, unindexed, 1, made_at)


@pytest.mark.parametrize(("unindexed", "rows", "lacks"), [
    (999, 1_000, False),
    (1_000, 3_001, False),
    (1_000, 3_000, True),
    (333_333, 1_000_000, False),
    (333_334, 1_000_000, True),
])  # fmt: skip
def test_index_lacks_rows_by_share_and_by_number(unindexed: int, rows: int, lacks: bool) -> None:
    assert state(unindexed).lacks(rows, 1 / 3, least=1_000) is lacks


@pytest.mark.parametrize(("unindexed", "age", "outdated"), [
    (999, DAY, False),
    (1_000, DAY - MINUTE, False),
    (1_000, DAY, True),
    (1_000, None, True),
    (999, None, False),
])  # fmt: skip
def test_old_index_that_lacks_many_rows_is_outdated(
    unindexed: int, age: dt.timedelta | None, outdated: bool
) -> None:
    assert state(unindexed, age).is_outdated(DAY, least=1_000) is outdated


def prune(url: str, *, dry_run: bool = False) -> OldVersions:
    clean = partial(clean_table, errors=MailAssetsError)
    return prune_versions(url, clean, MailAssetsError, dry_run=dry_run)


def test_unneeded_versions_of_every_table_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"lance:{tmp_path}"
    assert prune(url) == (0, 0), "there is nothing yet"
    connection = lancedb.connect(tmp_path)
    for name in ("live", "former"):
        table = connection.create_table(name, [{"key": "0", "text": "x" * 1000}])
        for n in range(1, 4):
            table.add([{"key": str(n), "text": "y" * 1000}])
    assert prune(url) == (0, 0), "somebody may be reading them"
    # Lance rounds times: the newest may seem to come from a moment that is yet to come
    monkeypatch.setattr(upkeep, "LONGEST_READ", dt.timedelta(seconds=-1))
    monkeypatch.setattr(upkeep, "COMPACTING", dt.timedelta())
    dry = prune(url, dry_run=True)
    assert (dry.versions, dry.bytes) == (6, None)
    done = prune(url)
    assert done.versions == 6
    assert done.bytes is not None
    for name in ("live", "former"):
        table = lancedb.connect(tmp_path).open_table(name)
        assert sorted(row["key"] for row in table.to_arrow().to_pylist()) == ["0", "1", "2", "3"]
        assert table.count_rows() == 4


def at(hour: int, minute: int = 0) -> dt.datetime:
    return dt.datetime(2024, 5, 1, hour, minute, tzinfo=dt.UTC)


@pytest.mark.parametrize(("written", "began", "oldest"), [
    ([at(8)], at(9), at(8)),
    ([at(8)], at(7), at(8)),
    # current for hours, until a minute ago
    ([at(8), at(8, 30), at(11, 59)], at(11, 50), at(8, 30)),
    ([at(11, 59), at(8, 30), at(8)], at(12), at(11, 59)),
    ([at(8), at(9)], at(9), at(9)),
], ids=["one", "all after", "replaced since", "unsorted", "just written"])  # fmt: skip
def test_oldest_version_in_use_is_the_newest_at_the_start(
    written: list[dt.datetime], began: dt.datetime, oldest: dt.datetime
) -> None:
    assert oldest_in_use(written, began) == oldest
