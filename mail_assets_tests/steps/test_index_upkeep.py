"""Upkeep of an index that is being filled: when it is due, by one process, and never in the way."""

import pytest

from mail_assets.indexes.month import maintain_if_due
from mail_assets.tables.partitions import Partition, locked
from mail_assets.vectors import lance
from mail_assets.vectors.index import VectorError
from mail_assets.vectors.lance import LanceIndex
from mail_assets.words import lance as word_maintenance
from mail_assets.words.lance import LanceWordIndex
from mail_assets_tests.limits import change_limits
from mail_assets_tests.world import World, mail

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
def test_a_long_backfill_leaves_few_fragments_before_its_end(world: World) -> None:
    most = 0
    for month in MONTHS:
        world.archive(month, mail(f"of-{month}"))
        world.chain(month)
        index, words = world.index, world.mail_words.index
        assert isinstance(index, LanceIndex)
        assert isinstance(words, LanceWordIndex)
        most = max(most, fragments(index), fragments(words))
    assert most <= 3
    assert {*world.index.keys()} == {key for (key,) in world.rows("chunks", "key")}
    assert world.mail_words.index.count() == len(MONTHS)


@pytest.mark.usefixtures("small")
def test_one_process_maintains_and_the_others_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LanceIndex, "needs_upkeep", lambda index: True)
    world.archive(MONTHS[0], mail("a"))
    world.chain(MONTHS[0])
    index = world.index
    with world.connect() as other, world.workspace() as workspace:
        with locked(other, Partition(f"upkeep of {index.label}", None)):
            assert not maintain_if_due(workspace, index)
        assert maintain_if_due(workspace, index)


@pytest.mark.parametrize("failing", ["needs_upkeep", "catch_up"])
def test_a_month_is_done_though_its_index_cannot_be_maintained(
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
