"""If several processes fill one word index, it has each message once at the end."""

from __future__ import annotations

from contextlib import suppress
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from mail_assets.indexes.reconcile import reconcile
from mail_assets.words import lance
from mail_assets.words.index import WordsError
from mail_assets_tests.vectors.processes import run_together
from mail_assets_tests.world import APRIL, MARCH, World, mail, read_documents

MAILS = 24
MONTHS, ROUNDS = (MARCH, APRIL, "2024-05", "2024-06"), 5


def act(home: Path, dsn: str, month: str | None, barrier: Barrier) -> None:
    """Write the words of a month in several commits; without a month maintain the index."""
    lance.MAX_BATCH = 6
    world = World(home, dsn)
    barrier.wait()
    if month:
        world.words(month)
        return
    for _ in range(3):
        with suppress(WordsError):  # upkeep yields to writers
            world.mail_words.index.maintain()


def begin_fills(home: Path, dsn: str, month: str, barrier: Barrier) -> None:
    """Write the words of a month in rounds; the index is deleted between them."""
    world = World(home, dsn)
    for _ in range(ROUNDS):
        barrier.wait()
        world.words(month)
        barrier.wait()
        if month == MARCH:
            world.mail_words.index.drop()
            with world.connect() as connection:
                connection.execute("delete from words")
        barrier.wait()
    world.words(month)


@pytest.mark.slow
def test_processes_that_start_together_make_one_index(world: World) -> None:
    for month in MONTHS:
        world.load(mail("m1", f"The quay of {month}."), month=month)
    run_together(begin_fills, [(world.home, world.dsn, month) for month in MONTHS])
    assert len(read_documents(world.home / "words")) == len(MONTHS)
    with world.connect() as connection:
        assert reconcile(connection, world.mail_words).clean


@pytest.mark.slow
def test_two_processes_write_their_months_during_upkeep(world: World) -> None:
    for month in (MARCH, APRIL):
        world.load(*(mail(f"m{n}", f"Quay number {n}.") for n in range(MAILS)), month=month)
    world.mail_words.index.ensure()
    place = (world.home, world.dsn)
    run_together(act, [(*place, month) for month in (MARCH, APRIL, None)])
    documents = read_documents(world.home / "words")
    assert len(documents) == 2 * MAILS
    with world.connect() as connection:
        assert reconcile(connection, world.mail_words).clean
    before = world.writes()
    assert not world.words(MARCH).changed
    assert not world.words(APRIL).changed
    assert world.writes() == before
