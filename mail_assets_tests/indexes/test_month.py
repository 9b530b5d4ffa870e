"""Keys of months are listed only when needed; upkeep of a filled index is in time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from mail_assets.indexes.mail_index import find_keys, find_unfilled
from mail_assets.indexes.month import maintain_if_due
from mail_assets.month import ListMonth
from mail_assets.tables.partitions import Partition, locked
from mail_assets.vectors import lance
from mail_assets.vectors.filters import Filter, matches_filter
from mail_assets.vectors.index import MetadataValue, MissingIndexError, VectorError
from mail_assets.vectors.lance import LanceIndex
from mail_assets.words import lance as word_maintenance
from mail_assets.words.index import MissingWordsError
from mail_assets.words.lance import LanceWordIndex
from mail_assets_tests.limits import change_limits
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World, mail

JUNE = ListMonth(HARBOR, "2024-06")
IN_MARCH, IN_APRIL = ListMonth(HARBOR, MARCH), ListMonth(HARBOR, APRIL)
AT_THE_PIER = ListMonth(PIER, MARCH)


@dataclass
class Keys:
    """An index of keys with list and month, which counts how often it was looked through."""

    rows: Sequence[tuple[str, str, int]]
    missing: type[Exception] | None = None
    looks: list[Filter] = field(default_factory=list)

    def find_values(self, field: str, filter: Filter) -> Iterator[tuple[str, MetadataValue]]:
        """Yield the keys that match, with their month."""
        if self.missing:
            raise self.missing("there is none")
        self.looks.append(filter)
        for key, name, month in self.rows:
            if matches_filter(filter, {"list": name, "month": month}):
                yield key, {"month": month}[field]


FILLED = (
    ("a", HARBOR, 202403),
    ("a", HARBOR, 202403),
    ("b", HARBOR, 202404),
    ("c", PIER, 202403),
    ("d", HARBOR, 202405),
)


def test_keys_of_months_are_found_in_one_look_per_list() -> None:
    index = Keys(FILLED)
    found = find_keys(index, [IN_MARCH, IN_APRIL, JUNE, AT_THE_PIER])
    assert found == {IN_MARCH: {"a": 2}, IN_APRIL: {"b": 1}, JUNE: {}, AT_THE_PIER: {"c": 1}}
    assert len(index.looks) == 2


@pytest.mark.parametrize(("rows", "months", "unfilled"), [
    ((), [IN_MARCH, IN_APRIL], {IN_MARCH, IN_APRIL}),
    (FILLED[3:], [IN_MARCH, IN_APRIL], {IN_MARCH, IN_APRIL}),
    (FILLED[:1], [IN_MARCH, IN_APRIL], set[ListMonth]()),
    (FILLED[2:3], [IN_MARCH, AT_THE_PIER], {IN_MARCH, AT_THE_PIER}),
    (FILLED[3:], [IN_MARCH, AT_THE_PIER], set[ListMonth]()),
])  # fmt: skip
def test_months_are_unfilled_when_the_index_has_none_of_them(
    rows: Sequence[tuple[str, str, int]], months: list[ListMonth], unfilled: set[ListMonth]
) -> None:
    assert find_unfilled(Keys(rows), months) == unfilled


def test_single_month_is_not_looked_for_twice() -> None:
    index = Keys(())
    assert find_unfilled(index, [IN_MARCH]) == frozenset()
    assert index.looks == []


@pytest.mark.parametrize("missing", [MissingIndexError, MissingWordsError])
def test_missing_index_has_nothing_of_any_month(missing: type[Exception]) -> None:
    months = [IN_MARCH, IN_APRIL]
    assert find_unfilled(Keys((), missing), months) == {*months}


def test_month_that_another_run_wrote_is_looked_for(world: World) -> None:
    world.archive(MARCH, mail("a"), mail("b"))
    world.archive(APRIL, mail("c"))
    months = [IN_MARCH, IN_APRIL]
    vectors, words = world.mail_index.for_run(months), world.mail_words.for_run(months)
    assert vectors.unfilled == words.unfilled == {*months}
    world.chain(MARCH)
    with world.connect() as connection:
        for index in (vectors, words):
            intended = index.read_digests(connection, IN_MARCH).keys()
            assert index.month_keys(IN_MARCH, intended) == dict.fromkeys(intended, 1)
            assert index.month_keys(IN_MARCH, ()) == {}, "its manifest says that it has none"


def test_keys_without_manifest_are_found_in_filled_months(world: World) -> None:
    world.load(mail("a"), last="vectors")
    months = [IN_MARCH, IN_APRIL]
    for index in (world.mail_index.for_run(months), world.mail_words.for_run(months)):
        assert index.unfilled == frozenset()
        assert len(index.month_keys(IN_MARCH, ())) == 1


MONTHS = [f"2024-{month:02d}" for month in range(1, 10)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Upkeep is due after three commits."""
    change_limits(monkeypatch, lance, fragments=2)
    change_limits(monkeypatch, word_maintenance, fragments=2)


def fragments(index: LanceIndex | LanceWordIndex) -> int:
    stats = dict(index._table.open().stats())  # type: ignore[call-overload]
    return int(stats["fragment_stats"]["num_fragments"])


@pytest.mark.usefixtures("small")
def test_long_backfill_keeps_few_fragments(world: World) -> None:
    most = 0
    for month in MONTHS:
        world.load(mail(f"of-{month}"), month=month, last="vectors")
        index, words = world.index, world.mail_words.index
        assert isinstance(index, LanceIndex)
        assert isinstance(words, LanceWordIndex)
        most = max(most, fragments(index), fragments(words))
    assert most <= 3
    assert {*world.index.keys()} == {key for (key,) in world.rows("chunks", "key")}
    assert world.mail_words.index.count() == len(MONTHS)


@pytest.mark.usefixtures("small")
def test_one_process_maintains_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LanceIndex, "needs_upkeep", lambda index: True)
    world.load(mail("a"), month=MONTHS[0], last="vectors")
    index = world.index
    with world.connect() as other, world.workspace() as workspace:
        with locked(other, Partition(f"upkeep of {index.label}", None)):
            assert not maintain_if_due(workspace, index)
        assert maintain_if_due(workspace, index)


@pytest.mark.parametrize("failing", ["needs_upkeep", "catch_up"])
def test_month_is_done_although_maintenance_fails(
    world: World, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(index: LanceIndex) -> None:
        raise VectorError("the disk is full")

    monkeypatch.setattr(LanceIndex, "needs_upkeep", lambda index: True)
    monkeypatch.setattr(LanceIndex, failing, fail)
    world.archive(MONTHS[0], mail("a"))
    outcome = world.chain(MONTHS[0])["vectors"]
    assert outcome.counts["written"] == 1
    assert "not maintained, which is tried again: the disk is full" in world.said
    assert not world.vectors(MONTHS[0]).changed
