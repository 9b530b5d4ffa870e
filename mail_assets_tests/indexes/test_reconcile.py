"""A whole index against the manifest and the chunks: what differs is found, named and repaired."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from mail_assets.indexes.reconcile import FAULTS, Reconciliation, reconcile
from mail_assets.month import ListMonth
from mail_assets.tables import bucket_keys
from mail_assets.vectors.index import MissingIndexError, Vector
from mail_assets.vectors.lance import LanceIndex
from mail_assets_tests.world import APRIL, HARBOR, MARCH, World, mail


@pytest.fixture
def filled(world: World) -> World:
    """A world with two months in the bucket."""
    world.archive(MARCH, mail("a"), mail("b"), mail("c"))
    world.archive(APRIL, mail("d"))
    world.chain(MARCH)
    world.chain(APRIL)
    return world


def look(world: World, **options: bool) -> Reconciliation:
    with world.connect() as connection:
        return reconcile(connection, world.mail_index, **options)


def sql(world: World, statement: str) -> None:
    with world.connect() as connection:
        connection.execute(statement.encode())


def key_of(world: World, name: str) -> str:
    [(key,)] = world.rows("chunks", "key", f"message_id = '{name}@example.org'")
    return str(key)


def lose_a_vector(world: World) -> None:
    world.index.delete([key_of(world, "a")])


def lose_the_marks(world: World) -> None:
    sql(world, "update vectors set written = false where month = '2024-03'")


def lose_a_chunk(world: World) -> None:
    sql(world, "delete from chunks where message_id = 'b@example.org'")


def lose_a_month(world: World) -> None:
    for table in ("chunks", "messages", "partitions"):
        sql(world, f"delete from {table} where month = '2024-04'")


def add_foreign(world: World) -> None:
    [own, *_] = world.index.get(world.index.keys(), data=True).values()
    world.index.put(Vector(f"foreign#{n}", own.values, {}) for n in range(3))


def change_a_subject(world: World) -> None:
    sql(world, "update messages set subject_base = 'else' where message_id = 'c@example.org'")


SPOILED: list[tuple[Callable[[World], None], dict[str, int], list[ListMonth | None]]] = [
    (lose_a_vector, {"missing": 1}, [ListMonth(HARBOR, MARCH)]),
    (lose_the_marks, {"missing": 3}, [ListMonth(HARBOR, MARCH)]),
    (lose_a_chunk, {"stale": 1}, [ListMonth(HARBOR, MARCH)]),
    (lose_a_month, {"stale": 1}, [ListMonth(HARBOR, APRIL)]),
    (add_foreign, {"foreign": 3}, [None]),
    (change_a_subject, {"outdated": 1}, [ListMonth(HARBOR, MARCH)]),
]


def test_what_the_chain_makes_is_clean(filled: World) -> None:
    found = look(filled)
    assert found.clean
    assert found.figures == {"bucket": 4, "chunks": 4, "manifest": 4}
    assert found.counts == dict.fromkeys(FAULTS, 0)


@pytest.mark.parametrize(
    ("spoil", "counts", "months"), SPOILED, ids=lambda x: getattr(x, "__name__", "")
)
def test_each_fault_is_counted_named_and_repaired(
    filled: World,
    spoil: Callable[[World], None],
    counts: dict[str, int],
    months: list[ListMonth | None],
) -> None:
    spoil(filled)
    before = filled.holds()
    found = look(filled)
    assert not found.clean
    assert found.counts == dict.fromkeys(FAULTS, 0) | counts
    assert [fault.month for fault in found.faults] == months
    assert all(len(fault.examples) == min(3, fault.keys) for fault in found.faults)
    assert filled.holds() == before, "looking changes nothing"
    assert look(filled, repair=True, delete_foreign=True).counts == found.counts
    marked = len(filled.rows("vectors", "key", "not written"))
    assert marked == counts.get("missing", 0) + counts.get("outdated", 0)
    if months == [ListMonth(HARBOR, MARCH)]:
        filled.vectors()
    assert look(filled).clean


def test_foreign_keys_go_only_when_asked_for(filled: World) -> None:
    add_foreign(filled)
    look(filled, repair=True)
    assert filled.index.count() == 7
    look(filled, delete_foreign=True)
    assert filled.index.count() == 4


def test_a_key_that_the_bucket_has_twice_is_written_anew(
    filled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What LanceDB can do where two processes merge one key; see lance/columns.py.
    key, keys = key_of(filled, "a"), LanceIndex.keys
    with monkeypatch.context() as patched:
        patched.setattr(LanceIndex, "keys", lambda index: iter([*keys(index), key]))
        assert look(filled, repair=True).counts["doubled"] == 1
    assert key not in filled.index.get([key])
    assert look(filled).counts["missing"] == 1
    filled.vectors()
    assert look(filled).clean


def test_a_chunk_that_came_back_is_not_deleted(
    filled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_a_chunk(filled)

    def meanwhile(connection: psycopg.Connection, fault: bucket_keys.Fault) -> Iterator[list[str]]:
        sql(filled, "delete from partitions where asset = 'chunks'")
        filled.chunks()
        return bucket_keys.fault_keys(connection, fault)

    with monkeypatch.context() as patched:
        patched.setattr("mail_assets.indexes.reconcile.fault_keys", meanwhile)
        assert look(filled, repair=True).counts["stale"] == 1
    assert look(filled).clean


def test_more_than_a_page_is_repaired(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_keys, "KEYS_PER_PAGE", 2)
    add_foreign(filled)
    sql(filled, "delete from chunks")
    assert look(filled, repair=True, delete_foreign=True).counts["stale"] == 4
    assert filled.index.count() == 0
    assert filled.rows("vectors") == []


def test_an_index_that_does_not_exist_is_named_and_to_be_repaired_lacks_every_key(
    filled: World,
) -> None:
    lose_a_month(filled)
    filled.index.drop()
    with pytest.raises(MissingIndexError, match=r"mail2-all-minilm.* `mail-assets backfill` creat"):
        look(filled)
    found = look(filled, repair=True)
    assert (found.counts["missing"], found.counts["stale"], found.figures["bucket"]) == (3, 1, 0)
    assert filled.rows("vectors", "written") == [(False,)] * 3
    filled.vectors()
    assert look(filled).clean
