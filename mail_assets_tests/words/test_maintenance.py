"""Upkeep of the word index runs when it is due."""

import datetime as dt

import lancedb
import pytest

from mail_assets.lance import upkeep
from mail_assets.lance.upkeep import prune_versions, read_fragments, read_index_states
from mail_assets.vectors.index import VectorError
from mail_assets.words import lance
from mail_assets.words.index import WordIndex, WordsError
from mail_assets.words.lance import INDEXES, LanceWordIndex, clean_table, plan_upkeep
from mail_assets_tests.limits import change_limits
from mail_assets_tests.words.samples import documents

MINUTE, DAY = dt.timedelta(minutes=1), dt.timedelta(days=1)


@pytest.fixture
def lance_words(words: WordIndex) -> LanceWordIndex:
    assert isinstance(words, LanceWordIndex)
    return words


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits by which ten documents are many."""
    change_limits(monkeypatch, lance, least=10)


def unindexed(words: LanceWordIndex) -> dict[str, int]:
    """Return how many documents each index lacks."""
    states = read_index_states(words._table.open())
    return {column: state.unindexed_rows for column, state in states.items()}


def fragment_rows(words: LanceWordIndex) -> list[int]:
    return [fragment.rows for fragment in read_fragments(words._table.open())]


@pytest.mark.usefixtures("small")
def test_prefixes_wait_while_an_index_is_filled(lance_words: LanceWordIndex) -> None:
    for end in (40, 80):
        for start in range(end - 40, end, 10):
            lance_words.insert(documents(80)[start : start + 10])
        assert lance_words.needs_upkeep()
        lance_words.catch_up()
        assert unindexed(lance_words) == {**dict.fromkeys(INDEXES, 0), "prefixes": end}
        assert fragment_rows(lance_words) == [40] * (end // 40), "only what is new is moved"
        assert not lance_words.needs_upkeep()
    lance_words.maintain()
    assert unindexed(lance_words) == dict.fromkeys(INDEXES, 0)
    assert fragment_rows(lance_words) == [80]


@pytest.mark.usefixtures("small")
def test_many_fragments_are_merged_before_a_share_is_missing(
    lance_words: LanceWordIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    lance_words.insert(documents(40))
    lance_words.maintain()
    change_limits(monkeypatch, lance, fragments=4)
    for start in range(40, 48, 2):
        lance_words.insert(documents(48)[start : start + 2])
    assert lance_words.needs_upkeep()
    lance_words.catch_up()
    assert fragment_rows(lance_words) == [40, 8]
    assert unindexed(lance_words)["lexemes"] == 8


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("indexed", "age"), [(80, MINUTE), (400, dt.timedelta())])
def test_indexes_of_months_lack_few_rows_for_a_short_time(
    lance_words: LanceWordIndex, monkeypatch: pytest.MonkeyPatch, indexed: int, age: dt.timedelta
) -> None:
    lance_words.insert(documents(indexed))
    lance_words.maintain()
    lance_words.insert(documents(indexed + 10)[indexed:])
    assert lance_words.needs_upkeep() is (indexed == 80)
    change_limits(monkeypatch, lance, finders_old=age)
    assert lance_words.needs_upkeep()
    lance_words.catch_up()
    others = dict.fromkeys(INDEXES, 10)
    assert unindexed(lance_words) == {**others, "list": 0, "month": 0}
    change_limits(monkeypatch, lance, finders_old=MINUTE)
    assert not lance_words.needs_upkeep()


@pytest.mark.usefixtures("small")
def test_table_is_maintained_when_texts_waited_for_long(
    lance_words: LanceWordIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    lance_words.insert(documents(35))
    lance_words.maintain()
    lance_words.insert(documents(50)[35:])
    change_limits(monkeypatch, lance, old=dt.timedelta())
    lance_words.catch_up()
    assert unindexed(lance_words) == dict.fromkeys(INDEXES, 0)


def test_index_knows_when_it_was_made(lance_words: LanceWordIndex) -> None:
    lance_words.insert(documents(10))
    lance_words.maintain()
    made_at = read_index_states(lance_words._table.open())["lexemes"].made_at
    assert made_at
    assert abs(dt.datetime.now(dt.UTC) - made_at) < DAY


def test_pruning_deletes_old_versions_of_all_tables(
    lance_words: LanceWordIndex, words_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for start in range(0, 60, 10):
        lance_words.insert(documents(60)[start : start + 10])
    lance_words.maintain()
    connection = lancedb.connect(words_url.removeprefix("lance:"))
    other = connection.create_table("other", [{"key": "0"}])
    other.add([{"key": "1"}])
    # Lance rounds times: the newest may seem to come from a moment that is yet to come
    monkeypatch.setattr(upkeep, "LONGEST_READ", dt.timedelta(seconds=-1))
    monkeypatch.setattr(upkeep, "COMPACTING", dt.timedelta())
    assert prune_versions(words_url, clean_table, VectorError).versions > 1
    left = prune_versions(words_url, clean_table, VectorError, dry_run=True)
    assert left.versions <= 1
    assert sorted(lance_words.keys()) == sorted(document.key for document in documents(60))
    assert connection.open_table("other").count_rows() == 2


@pytest.mark.parametrize("column", INDEXES)
def test_a_lost_index_is_reported_and_created_again(
    lance_words: LanceWordIndex, column: str
) -> None:
    lance_words.insert(documents(50))
    lance_words.maintain()
    lance_words._table.open().drop_index(f"{column}_idx")
    assert lance_words.describe()["unindexed_documents"] == (50 if column == "lexemes" else 0)
    with pytest.raises(WordsError, match=f"no index of {column}; .* index rebuild"):
        lance_words.probe()
    lance_words.maintain()
    assert lance_words.describe()["unindexed_documents"] == 0
    lance_words.probe()


@pytest.mark.parametrize(
    ("fragments", "rows", "many"),
    [(1_000, 0, False), (1_001, 0, True), (1_001, 200_000, True), (1_001, 200_200, False)],
)
def test_many_fragments_are_more_in_a_large_table(
    lance_words: LanceWordIndex, fragments: int, rows: int, many: bool
) -> None:
    limits = plan_upkeep(lance_words._table.open(), lance_words.label).limits
    assert limits.has_many_fragments(fragments, rows) is many
