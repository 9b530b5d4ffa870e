"""A whole word index against its manifest and the messages: what differs is found and repaired."""

from collections.abc import Callable

import pytest

from mail_assets.indexes.reconcile import FAULTS, Reconciliation, reconcile
from mail_assets.month import ListMonth
from mail_assets.words.index import Document
from mail_assets_tests.world import APRIL, HARBOR, MARCH, World, mail


@pytest.fixture
def filled(world: World) -> World:
    """A world with two months in the word index; one id has two contents."""
    world.archive(MARCH, mail("a"), mail("b"), mail("c"), mail("c", "Another."))
    world.archive(APRIL, mail("d"))
    for month in (MARCH, APRIL):
        world.chain(month, last="words")
    return world


def look(world: World, **options: bool) -> Reconciliation:
    with world.connect() as connection:
        return reconcile(connection, world.mail_words, **options)


def sql(world: World, statement: str) -> None:
    with world.connect() as connection:
        connection.execute(statement.encode())


def lose_a_document(world: World) -> None:
    [(key,), *_] = world.rows("words", "key", f"month = '{MARCH}'")
    world.mail_words.index.delete([key])


def lose_the_marks(world: World) -> None:
    sql(world, "update words set written = false where month = '2024-03'")


def lose_a_month(world: World) -> None:
    for table in ("messages", "partitions"):
        sql(world, f"delete from {table} where month = '2024-04'")


def add_foreign(world: World) -> None:
    place = ListMonth(HARBOR, MARCH)
    world.mail_words.index.put(
        Document(f"foreign{n}", place, "x@y", 0, 0, "z", ("first",), ("word",)) for n in range(3)
    )


def change_a_message(world: World) -> None:
    sql(world, "update messages set row_hash = 'x' where message_id = 'b@example.org'")


def test_what_the_step_makes_is_clean(filled: World) -> None:
    found = look(filled)
    assert found.clean
    assert found.figures == {"bucket": 5, "messages": 5, "manifest": 5}


@pytest.mark.parametrize(
    ("spoil", "counts", "month"),
    [
        (lose_a_document, {"missing": 1}, ListMonth(HARBOR, MARCH)),
        (lose_the_marks, {"missing": 4}, ListMonth(HARBOR, MARCH)),
        (lose_a_month, {"stale": 1}, ListMonth(HARBOR, APRIL)),
        (add_foreign, {"foreign": 3}, None),
        (change_a_message, {"outdated": 1}, ListMonth(HARBOR, MARCH)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_each_fault_is_counted_named_and_repaired(
    filled: World, spoil: Callable[[World], None], counts: dict[str, int], month: ListMonth | None
) -> None:
    spoil(filled)
    found = look(filled)
    assert found.counts == dict.fromkeys(FAULTS, 0) | counts
    assert [fault.month for fault in found.faults] == [month]
    assert look(filled, repair=True, delete_foreign=True).counts == found.counts
    if spoil is change_a_message:
        sql(filled, "update partitions set digest = 'x' where asset = 'messages'")
    if month == ListMonth(HARBOR, MARCH):
        filled.words()
    assert look(filled).clean
