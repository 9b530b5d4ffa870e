"""When the index of words is brought up to date."""

import datetime as dt

import pytest

from mail_assets.vectors.lance.index_state import IndexState, read_index_states
from mail_assets.words.lance.index import LanceWordIndex
from mail_assets.words.lance.maintenance import is_upkeep_due
from mail_assets.words.open import open_words
from mail_assets_tests.words.samples import documents

NOW = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
MINUTE, DAY = dt.timedelta(minutes=1), dt.timedelta(days=1)


@pytest.mark.parametrize(
    ("unindexed", "rows", "age", "due"),
    [
        (999, 1_000, DAY, False),
        (1_000, 4_001, MINUTE, False),
        (1_000, 4_000, MINUTE, True),
        (1_000, 1_000_000, DAY - MINUTE, False),
        (1_000, 1_000_000, DAY, True),
        (249_999, 1_000_000, MINUTE, False),
        (250_000, 1_000_000, MINUTE, True),
    ],
)
def test_upkeep_waits_for_a_share_of_the_table_or_for_a_day(
    unindexed: int, rows: int, age: dt.timedelta, due: bool
) -> None:
    state = IndexState("fts", rows - unindexed, unindexed, 1, NOW - age)
    assert is_upkeep_due(state, rows, NOW) is due


def test_an_index_knows_when_it_was_made(tmp_path_factory: pytest.TempPathFactory) -> None:
    index = open_words(f"lance:{tmp_path_factory.mktemp('words')}")
    assert isinstance(index, LanceWordIndex)
    index.ensure()
    index.insert(documents(3, 10))
    index.maintain()
    made_at = read_index_states(index._table())["lexemes"].made_at
    assert made_at
    assert abs(dt.datetime.now(dt.UTC) - made_at) < DAY
