"""Which fragments of a Lance table upkeep writes again."""

from pathlib import Path

import lancedb
import pyarrow as pa
import pytest

from mail_assets.lance.upkeep import (
    FULL,
    Fragment,
    find_rest,
    find_unindexed,
    move_rows,
    read_fragments,
)


def fragments(*sizes: int) -> list[Fragment]:
    return [Fragment(number, size, size) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "moved"),
    [
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
    ],
)
def test_what_was_added_is_moved_and_all_but_full_ones_where_that_is_half_as_much(
    sizes: list[int], moved: list[int]
) -> None:
    assert [fragment.rows for fragment in find_rest(fragments(*sizes))] == moved


def test_a_full_fragment_stays_however_many_of_its_rows_were_deleted() -> None:
    deleted_from = Fragment(0, 10, FULL)
    assert find_rest([deleted_from, *fragments(0, 100, 20)[1:]]) == [Fragment(2, 20, 20)]


@pytest.mark.parametrize(
    ("unindexed", "found"),
    [(0, []), (4, []), (5, [5]), (14, [5]), (15, [10, 5]), (99, [20, 10, 5])],
)
def test_what_an_index_lacks_are_the_last_fragments(unindexed: int, found: list[int]) -> None:
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
