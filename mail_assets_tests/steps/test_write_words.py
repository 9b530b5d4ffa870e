"""Writing a month's words: keys in the index = keys in the manifest = messages, always."""

from collections.abc import Iterable
from typing import Any

import pytest

from mail_assets.indexes import month as index_month
from mail_assets.month import ListMonth
from mail_assets.steps import fill_index, write_words
from mail_assets.steps.outcome import StepError
from mail_assets.tables.health import find_behind
from mail_assets.tables.indexes import live_index
from mail_assets.tables.words import read_words
from mail_assets.words.index import Document
from mail_assets.words.lance import LanceWordIndex
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World, mail, read_documents

PATCH = "See this:\n\n--- a/quay.c\n+++ b/quay.c\n@@ -1 +1 @@\n-int old;\n+int quay;\n"


class Killed(BaseException):
    """Stands for a kill inside this process."""


def load(
    world: World, *mails: bytes, at: int = 0, month: str = MARCH, list_name: str = HARBOR
) -> None:
    world.archive(month, *mails, list_name=list_name, at=at)
    world.chain(month, list_name, last="messages")


def documents(world: World) -> dict[str, dict[str, Any]]:
    return read_documents(world.home / "words")


def ids(world: World) -> dict[str, str]:
    """Return the id of each document, by key."""
    return {key: row["message_id"] for key, row in documents(world).items()}


def made(world: World, month: str = MARCH) -> dict[str, Document]:
    """Return the documents that a month would have now, by Message-ID."""
    place = ListMonth(HARBOR, month)
    with world.connect() as connection:
        keys = world.mail_words.read_digests(connection, place)
        found = [*write_words.make_documents(connection, place, [*keys])]
    return {document.message_id.partition("@")[0]: document for document in found}


def assert_agree(world: World) -> None:
    keys = [*world.mail_words.index.keys()]
    assert len(keys) == len({*keys})
    assert world.rows("words", "key, written") == sorted((key, True) for key in keys)
    assert sorted(ids(world).values()) == [x for (x,) in world.rows("messages", "message_id")]


def test_a_document_has_the_lexemes_of_the_message_in_order(world: World) -> None:
    load(world, mail("a", "The pier leases boats.\n\nBoats need pier_init().", subject="Leases"))
    lexemes = made(world)["a"].lexemes
    assert lexemes[:4] == ("leas",) * 4, "the subject, four times"
    assert [*lexemes[4:]] == ["pier", "leas", "boat", "boat", "need", "pier", "init", "pier_init"]


def test_the_subject_is_repeated_as_a_whole(world: World) -> None:
    load(world, mail("a", "text", subject="quay wall rebuild"))
    assert made(world)["a"].lexemes[:6] == ("quay", "wall", "rebuild", "quay", "wall", "rebuild")


def test_a_document_has_what_a_search_filters_by(world: World) -> None:
    load(
        world,
        mail("a", sender="Ann@Example.org"),
        mail("b", PATCH, references="<a@example.org>"),
    )
    found = made(world)
    assert (found["a"].sender, found["a"].sent_at) == ("ann@example.org", 1709542800)
    assert found["a"].month == ListMonth(HARBOR, MARCH)
    assert {name: one.flags for name, one in found.items()} == {
        "a": ("first",),
        "b": ("patch", "reply"),
    }


def test_two_contents_of_one_id_are_two_documents(world: World) -> None:
    load(world, mail("a", "Tides."), mail("a", "Ebb."))
    world.words()
    assert sorted(row["variant"] for row in documents(world).values()) == [0, 1]
    assert_agree(world)


def test_an_index_that_is_filled_first_is_live(world: World) -> None:
    load(world)
    world.words()
    with world.connect() as connection:
        assert live_index(connection, world.words_url) is None, "an empty month says nothing"
        load(world, mail("a"), at=1)
        world.words()
        live = live_index(connection, world.words_url)
    assert live
    assert live.name == world.mail_words.name


def test_words_need_messages(world: World) -> None:
    with pytest.raises(StepError, match="harbor 2024-03: no messages yet"):
        world.words()


def test_a_second_run_writes_nothing_and_reads_no_message(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(world, mail("a"), mail("b"))
    first, before = world.words(), world.writes()
    monkeypatch.setattr("mail_assets.indexes.words.read_digests", None)
    again = world.words()
    assert world.writes() == before
    assert not again.changed
    assert again.digest == first.digest
    assert (again.counts["written"], again.counts["deleted"]) == (0, 0)


def test_just_the_difference_is_written_and_what_is_stale_goes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(world, mail("a"), mail("b"), mail("c"))
    world.words()
    load(world, mail("a"), mail("b", "Edited."), mail("d"), at=1)
    read: list[str] = []

    def noting(connection: Any, month: ListMonth, keys: list[str]) -> Any:
        read.extend(keys)
        return read_words(connection, month, keys)

    monkeypatch.setattr(write_words, "read_words", noting)
    outcome = world.words()
    assert (outcome.counts["written"], outcome.counts["deleted"], len(read)) == (2, 1, 2)
    assert_agree(world)
    [edited] = [r for r in documents(world).values() if r["message_id"] == "b@example.org"]
    assert "edit" in edited["lexemes"]


def test_a_month_that_empties_has_no_documents(world: World) -> None:
    load(world, mail("a"), mail("b"))
    world.words()
    world.archive(MARCH, at=1)
    world.archives(allow_loss=True)
    world.messages()
    assert (world.words().counts["documents"], documents(world)) == (0, {})
    assert_agree(world)
    assert not world.words().changed


def test_an_index_emptied_behind_our_back_is_filled_again(world: World) -> None:
    load(world, mail("a"), mail("b"))
    world.words()
    before = documents(world)
    world.mail_words.index.drop()
    assert world.words().counts["written"] == 2
    assert documents(world) == before


def test_an_index_that_is_created_anew_has_the_words_of_no_month_but_that_of_the_run(
    world: World,
) -> None:
    for month in (MARCH, APRIL):
        load(world, mail(month), month=month)
        world.words(month)
    world.mail_words.index.drop()
    world.words(MARCH)
    assert world.rows("words", "month, written") == [(MARCH, True), (APRIL, False)]
    with world.connect() as connection:
        behind = find_behind(connection)
    assert behind == {ListMonth(HARBOR, MARCH): "chunks", ListMonth(HARBOR, APRIL): "words"}
    assert world.words(APRIL).counts["written"] == 1
    assert_agree(world)


def test_a_manifest_emptied_with_its_index_is_filled_again(world: World) -> None:
    load(world, mail("a"), mail("b"))
    world.words()
    world.mail_words.index.drop()
    with world.connect() as connection:
        connection.execute("delete from words")
    assert world.words().counts["written"] == 2
    assert_agree(world)


def test_one_document_lost_is_put_back(world: World) -> None:
    load(world, mail("a"), mail("b"))
    world.words()
    world.mail_words.index.delete([min(documents(world))])
    assert world.words().counts["written"] == 1
    assert_agree(world)


def test_a_foreign_key_in_the_partition_is_removed(world: World) -> None:
    load(world, mail("a"))
    world.words()
    [own] = made(world).values()
    world.mail_words.index.put([own._replace(key="foreign")])
    assert world.words().counts["deleted"] == 1
    assert_agree(world)


def test_another_place_is_filled_from_the_start(world: World) -> None:
    load(world, mail("a"))
    world.words()
    first, old = world.words_url, world.mail_words.index
    world.words_url = f"lance:{world.home / 'other'}"
    assert world.words().counts["written"] == 1
    assert [*world.mail_words.index.keys()] == [*old.keys()]
    world.words_url = first
    world.words()  # the state is of the other place: this one is compared as a whole
    assert not world.words().changed


def test_other_partitions_are_untouched(world: World) -> None:
    for month, name in [(APRIL, HARBOR), (MARCH, PIER)]:
        load(world, mail("a"), month=month, list_name=name)
        world.words(month, name)
    others, marks = documents(world), world.rows("words", "key, ctid::text, xmin::text")
    load(world, mail("a"), mail("b"))
    world.words()
    load(world, mail("a"), mail("c"), at=1)
    world.words()
    assert others.items() <= documents(world).items()
    where = f"(list, month) <> ('{HARBOR}', '{MARCH}')"
    assert world.rows("words", "key, ctid::text, xmin::text", where) == marks


def killed_at(point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the step at one of its writes."""

    def kill(*_: object) -> None:
        raise Killed

    put = LanceWordIndex.put

    def put_half(index: LanceWordIndex, new: Iterable[Document]) -> int:
        put(index, [*new][:1])
        raise Killed

    match point:
        case "intended":
            monkeypatch.setattr(LanceWordIndex, "insert", kill)
        case "inserted":
            monkeypatch.setattr(LanceWordIndex, "put", kill)
        case "half put":
            monkeypatch.setattr(LanceWordIndex, "put", put_half)
        case "put":
            monkeypatch.setattr(LanceWordIndex, "delete", kill)
        case "deleted":
            monkeypatch.setattr(index_month, "drop_keys", kill)
        case "dropped":
            monkeypatch.setattr(index_month, "mark_written", kill)
        case "marked":
            monkeypatch.setattr(fill_index, "write_state", kill)


@pytest.mark.parametrize(
    "point", ["intended", "inserted", "half put", "put", "deleted", "dropped", "marked"]
)
def test_what_a_killed_run_intended_is_finished(
    world: World, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    load(world, mail("a"), mail("b"), mail("c"))
    world.words()
    load(world, mail("a"), mail("b", "Edited."), mail("d"), at=1)
    with monkeypatch.context() as patched:
        killed_at(point, patched)
        with pytest.raises(Killed):
            world.words()
    world.words()
    assert_agree(world)
    [edited] = [r for r in documents(world).values() if r["message_id"] == "b@example.org"]
    assert "edit" in edited["lexemes"]
    before = world.writes()
    assert not world.words().changed
    assert world.writes() == before


def test_a_change_of_mind_while_words_are_written_is_seen_by_the_next_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(world, mail("a"), mail("b"))
    insert = LanceWordIndex.insert

    def insert_late(index: LanceWordIndex, new: Iterable[Document]) -> None:
        insert(index, new)
        monkeypatch.undo()
        load(world, mail("a", "Edited."), at=1)

    monkeypatch.setattr(LanceWordIndex, "insert", insert_late)
    world.words()
    assert world.words().changed
    assert_agree(world)
