"""A whole index is compared with its manifest and its rows; differences are named and repaired."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from mail_assets.indexes import reconcile as whole_index
from mail_assets.indexes.reconcile import FAULTS, Reconciliation, reconcile
from mail_assets.month import ListMonth
from mail_assets.vectors.index import MissingIndexError, Vector
from mail_assets.vectors.lance import LanceIndex
from mail_assets.words.index import Document
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.world import APRIL, HARBOR, MARCH, World, mail

IN_MARCH, IN_APRIL = ListMonth(HARBOR, MARCH), ListMonth(HARBOR, APRIL)


def fill_world(world: World) -> None:
    world.archive(MARCH, mail("a"), mail("b"), mail("c"))
    world.archive(APRIL, mail("d"))
    world.chain(MARCH)
    world.chain(APRIL)


filled = kept_world(fill_world)


def look(world: World, kind: str = "vectors", **options: bool) -> Reconciliation:
    with world.connect() as connection:
        index = world.mail_index if kind == "vectors" else world.mail_words
        return reconcile(connection, index, **options)


def sql(world: World, statement: str) -> None:
    with world.connect() as connection:
        connection.execute(statement.encode())


def key_of(world: World, name: str) -> str:
    [(key,)] = world.rows("chunks", "key", f"message_id = '{name}@example.org'")
    return str(key)


def lose_a_vector(world: World) -> None:
    world.index.delete([key_of(world, "a")])


def lose_a_document(world: World) -> None:
    [(key,), *_] = world.rows("words", "key", f"month = '{MARCH}'")
    world.mail_words.index.delete([key])


def lose_the_marks(world: World) -> None:
    for table in ("vectors", "words"):
        sql(world, f"update {table} set written = false where month = '2024-03'")


def lose_a_chunk(world: World) -> None:
    sql(world, "delete from chunks where message_id = 'b@example.org'")


def lose_a_month(world: World) -> None:
    for table in ("chunks", "messages", "partitions"):
        sql(world, f"delete from {table} where month = '2024-04'")


def add_foreign(world: World) -> None:
    [own, *_] = world.index.get(world.index.keys(), data=True).values()
    world.index.put(Vector(f"foreign#{n}", own.values, {}) for n in range(3))


def add_foreign_words(world: World) -> None:
    world.mail_words.index.put(
        Document(f"foreign{n}", IN_MARCH, "x@y", 0, 0, "z", ("first",), ("word",)) for n in range(3)
    )


def change_a_subject(world: World) -> None:
    sql(world, "update messages set subject_base = 'else' where message_id = 'c@example.org'")


def change_a_message(world: World) -> None:
    sql(world, "update messages set row_hash = 'x' where message_id = 'b@example.org'")


SPOILED: list[tuple[str, Callable[[World], None], dict[str, int], ListMonth | None]] = [
    ("vectors", lose_a_vector, {"missing": 1}, IN_MARCH),
    ("words", lose_a_document, {"missing": 1}, IN_MARCH),
    ("vectors", lose_the_marks, {"missing": 3}, IN_MARCH),
    ("words", lose_the_marks, {"missing": 3}, IN_MARCH),
    ("vectors", lose_a_chunk, {"stale": 1}, IN_MARCH),
    ("vectors", lose_a_month, {"stale": 1}, IN_APRIL),
    ("words", lose_a_month, {"stale": 1}, IN_APRIL),
    ("vectors", add_foreign, {"foreign": 3}, None),
    ("words", add_foreign_words, {"foreign": 3}, None),
    ("vectors", change_a_subject, {"outdated": 1}, IN_MARCH),
    ("words", change_a_message, {"outdated": 1}, IN_MARCH),
]


@pytest.mark.parametrize(("kind", "source"), [("vectors", "chunks"), ("words", "messages")])
def test_filled_index_is_clean(world: World, kind: str, source: str) -> None:
    world.load(mail("a"), mail("b"), mail("c"), mail("c", "Another."), last="vectors")
    found = look(world, kind)
    assert found.clean
    assert found.figures == {"bucket": 4, source: 4, "manifest": 4}
    assert found.counts == dict.fromkeys(FAULTS, 0)


@pytest.mark.parametrize(
    ("kind", "spoil", "counts", "month"), SPOILED, ids=lambda x: getattr(x, "__name__", "")
)
def test_each_fault_is_counted_named_and_repaired(
    filled: World,
    kind: str,
    spoil: Callable[[World], None],
    counts: dict[str, int],
    month: ListMonth | None,
) -> None:
    spoil(filled)
    before = filled.holds()
    found = look(filled, kind)
    assert not found.clean
    assert found.counts == dict.fromkeys(FAULTS, 0) | counts
    assert [fault.month for fault in found.faults] == [month]
    assert all(len(fault.examples) == min(3, fault.keys) for fault in found.faults)
    assert filled.holds() == before, "looking changes nothing"
    assert look(filled, kind, repair=True, delete_foreign=True).counts == found.counts
    if spoil is not lose_the_marks:
        marked = len(filled.rows(kind, "key", "not written"))
        assert marked == counts.get("missing", 0) + counts.get("outdated", 0)
    if month == IN_MARCH:
        filled.chain(MARCH, last=kind)
    assert look(filled, kind).clean


def test_foreign_keys_are_deleted_only_when_asked_for(filled: World) -> None:
    add_foreign(filled)
    look(filled, repair=True)
    assert filled.index.count() == 7
    look(filled, delete_foreign=True)
    assert filled.index.count() == 4


def test_key_that_the_bucket_has_twice_is_written_again(
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


def test_vector_of_returned_chunk_stays(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    lose_a_chunk(filled)
    _fault_keys = whole_index._fault_keys

    def meanwhile(connection: psycopg.Connection, fault: whole_index.Fault) -> Iterator[list[str]]:
        sql(filled, "delete from partitions where asset = 'chunks'")
        filled.chunks()
        return _fault_keys(connection, fault)

    with monkeypatch.context() as patched:
        patched.setattr("mail_assets.indexes.reconcile._fault_keys", meanwhile)
        assert look(filled, repair=True).counts["stale"] == 1
    assert look(filled).clean


def test_repair_takes_more_than_one_page_of_keys(
    filled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_index, "KEYS_PER_PAGE", 2)
    add_foreign(filled)
    sql(filled, "delete from chunks")
    assert look(filled, repair=True, delete_foreign=True).counts["stale"] == 4
    assert filled.index.count() == 0
    assert filled.rows("vectors") == []


def test_missing_index_is_named_and_repair_marks_every_key(filled: World) -> None:
    lose_a_month(filled)
    filled.index.drop()
    with pytest.raises(MissingIndexError, match=r"mail2-all-minilm.* `mail-assets backfill` creat"):
        look(filled)
    found = look(filled, repair=True)
    assert (found.counts["missing"], found.counts["stale"], found.figures["bucket"]) == (3, 1, 0)
    assert filled.rows("vectors", "written") == [(False,)] * 3
    filled.vectors()
    assert look(filled).clean
