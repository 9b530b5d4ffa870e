"""The keys that a run of several months looks for in an index, and those that it need not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from mail_assets.indexes.month import find_keys, find_unfilled
from mail_assets.month import ListMonth
from mail_assets.vectors.filters import Filter, matches_filter
from mail_assets.vectors.index import MissingIndexError
from mail_assets.vectors.vector import MetadataValue
from mail_assets.words.index import MissingWordsError
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


def test_keys_of_several_months_are_found_in_one_look_for_each_list() -> None:
    index = Keys(FILLED)
    found = find_keys(index, [IN_MARCH, IN_APRIL, JUNE, AT_THE_PIER])
    assert found == {IN_MARCH: {"a": 2}, IN_APRIL: {"b": 1}, JUNE: {}, AT_THE_PIER: {"c": 1}}
    assert len(index.looks) == 2


@pytest.mark.parametrize(
    ("rows", "months", "unfilled"),
    [
        ((), [IN_MARCH, IN_APRIL], {IN_MARCH, IN_APRIL}),
        (FILLED[3:], [IN_MARCH, IN_APRIL], {IN_MARCH, IN_APRIL}),
        (FILLED[:1], [IN_MARCH, IN_APRIL], set[ListMonth]()),
        (FILLED[2:3], [IN_MARCH, AT_THE_PIER], {IN_MARCH, AT_THE_PIER}),
        (FILLED[3:], [IN_MARCH, AT_THE_PIER], set[ListMonth]()),
    ],
)
def test_months_are_unfilled_where_the_index_has_nothing_of_any(
    rows: Sequence[tuple[str, str, int]], months: list[ListMonth], unfilled: set[ListMonth]
) -> None:
    assert find_unfilled(Keys(rows), months) == unfilled


def test_a_single_month_is_not_looked_for_twice() -> None:
    index = Keys(())
    assert find_unfilled(index, [IN_MARCH]) == frozenset()
    assert index.looks == []


@pytest.mark.parametrize("missing", [MissingIndexError, MissingWordsError])
def test_an_index_that_is_not_there_has_nothing_of_any_month(missing: type[Exception]) -> None:
    months = [IN_MARCH, IN_APRIL]
    assert find_unfilled(Keys((), missing), months) == {*months}


def test_a_month_that_another_run_has_written_meanwhile_is_looked_for(world: World) -> None:
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


def test_of_filled_months_the_keys_of_others_are_found(world: World) -> None:
    world.archive(MARCH, mail("a"))
    world.chain(MARCH)
    months = [IN_MARCH, IN_APRIL]
    for index in (world.mail_index.for_run(months), world.mail_words.for_run(months)):
        assert index.unfilled == frozenset()
        assert len(index.month_keys(IN_MARCH, ())) == 1
