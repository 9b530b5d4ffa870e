"""When the index of words is brought up to date."""

import datetime as dt

import pytest

from mail_assets.vectors.lance.index_state import IndexState, read_index_states, read_size
from mail_assets.words.index import WordIndex
from mail_assets.words.lance import maintenance
from mail_assets.words.lance.index import LanceWordIndex
from mail_assets.words.lance.maintenance import INDEXES, has_grown, has_many_fragments, is_outdated
from mail_assets_tests.words.samples import documents

NOW = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
MINUTE, DAY = dt.timedelta(minutes=1), dt.timedelta(days=1)


@pytest.fixture
def lance_words(words: WordIndex) -> LanceWordIndex:
    assert isinstance(words, LanceWordIndex)
    return words


def state(rows: int, unindexed: int, age: dt.timedelta = MINUTE) -> IndexState:
    return IndexState("fts", rows - unindexed, unindexed, 1, NOW - age)


@pytest.mark.parametrize(
    ("unindexed", "rows", "grown"),
    [
        (999, 1_000, False),
        (1_000, 3_001, False),
        (1_000, 3_000, True),
        (333_333, 1_000_000, False),
        (333_334, 1_000_000, True),
    ],
)
def test_upkeep_waits_for_a_share_of_the_table(unindexed: int, rows: int, grown: bool) -> None:
    assert has_grown(state(rows, unindexed), rows) is grown


@pytest.mark.parametrize(
    ("unindexed", "age", "outdated"),
    [(999, DAY, False), (1_000, DAY - MINUTE, False), (1_000, DAY, True)],
)
def test_or_for_a_day(unindexed: int, age: dt.timedelta, outdated: bool) -> None:
    assert is_outdated(state(1_000_000, unindexed, age), NOW) is outdated


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten documents are many."""
    monkeypatch.setattr(maintenance, "MIN_UNINDEXED", 10)


def unindexed(words: LanceWordIndex) -> dict[str, int]:
    """Return how many documents each index lacks."""
    states = read_index_states(words._table())
    return {column: state.unindexed_rows for column, state in states.items()}


@pytest.mark.parametrize(
    ("fragments", "rows", "many"),
    [
        (1_000, 0, False),
        (1_001, 0, True),
        (1_001, 200_000, True),
        (1_001, 201_000, False),
        (5_000, 1_000_000, False),
        (5_001, 1_000_000, True),
    ],
)
def test_the_fragments_that_wait_grow_with_the_table(fragments: int, rows: int, many: bool) -> None:
    assert has_many_fragments(fragments, rows) == many


@pytest.mark.usefixtures("small")
def test_while_an_index_is_being_filled_prefixes_and_fragments_wait(
    lance_words: LanceWordIndex,
) -> None:
    for start in range(0, 40, 10):
        lance_words.insert(documents(40)[start : start + 10])
    assert lance_words.needs_upkeep()
    lance_words.catch_up()
    assert unindexed(lance_words) == {**dict.fromkeys(INDEXES, 0), "prefixes": 40}
    assert read_size(lance_words._table()).small_fragments == 4
    assert not lance_words.needs_upkeep()
    lance_words.maintain()
    assert unindexed(lance_words) == dict.fromkeys(INDEXES, 0)
    assert read_size(lance_words._table()).small_fragments == 1


@pytest.mark.usefixtures("small")
def test_what_a_month_is_found_by_lacks_little(lance_words: LanceWordIndex) -> None:
    lance_words.insert(documents(100))
    lance_words.maintain()
    lance_words.insert(documents(110)[100:])
    assert lance_words.needs_upkeep()
    lance_words.catch_up()
    others = dict.fromkeys(INDEXES, 10)
    assert unindexed(lance_words) == {**others, "list": 0, "month": 0}
    assert not lance_words.needs_upkeep()


@pytest.mark.usefixtures("small")
def test_a_table_whose_texts_waited_for_long_is_maintained(
    lance_words: LanceWordIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    lance_words.insert(documents(35))
    lance_words.maintain()
    lance_words.insert(documents(50)[35:])
    monkeypatch.setattr(maintenance, "OLD", dt.timedelta())
    lance_words.catch_up()
    assert unindexed(lance_words) == dict.fromkeys(INDEXES, 0)


def test_an_index_knows_when_it_was_made(lance_words: LanceWordIndex) -> None:
    lance_words.insert(documents(10))
    lance_words.maintain()
    made_at = read_index_states(lance_words._table())["lexemes"].made_at
    assert made_at
    assert abs(dt.datetime.now(dt.UTC) - made_at) < DAY
