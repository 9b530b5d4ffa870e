"""A document has the lexemes of its message, and what filters need."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest

from mail_assets.indexes.words import read_words
from mail_assets.month import ListMonth
from mail_assets.steps import fill_index
from mail_assets.words.index import Document
from mail_assets.words.lance import LanceWordIndex
from mail_assets_tests.world import HARBOR, MARCH, World, mail, read_documents

PATCH = "See this:\n\n--- a/quay.c\n+++ b/quay.c\n@@ -1 +1 @@\n-int old;\n+int quay;\n"


load = partial(World.load, last="messages")


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
        found = [*fill_index.make_documents(connection, place, [*keys])]
    return {document.message_id.partition("@")[0]: document for document in found}


def assert_agree(world: World) -> None:
    keys = [*world.mail_words.index.keys()]
    assert len(keys) == len({*keys})
    assert world.rows("words", "key, written") == sorted((key, True) for key in keys)
    assert sorted(ids(world).values()) == [x for (x,) in world.rows("messages", "message_id")]


def test_document_has_the_lexemes_of_the_message_in_order(world: World) -> None:
    load(world, mail("a", "The pier leases boats.\n\nBoats need pier_init().", subject="Leases"))
    lexemes = made(world)["a"].lexemes
    assert lexemes[:4] == ("leas",) * 4, "the subject, four times"
    assert [*lexemes[4:]] == ["pier", "leas", "boat", "boat", "need", "pier", "init", "pier_init"]


def test_learnt_ending_takes_no_word_from_a_document(world: World) -> None:
    """Even if others outnumber the list's people: it is a footer, and each word is found."""
    objection = "I object to xylophones on this mailing list before quay_wall() is fixed."
    victims = mail("v", f"I measured it.\n\n{objection}", sender="vic@example.org")
    forged = [
        mail(
            f"f{n}",
            f"So {'x' * n}.\n\n{objection}",
            sender=f"f{n}@example.com",
            date=f"{5 + n} Mar 2024 09:00:00 +0000",
        )
        for n in range(9)
    ]
    load(world, victims, *forged)
    of_victim = "message_id = 'v@example.org'"
    assert world.rows("messages", "segments -> 1 ->> 2", of_victim) == [("footer",)]
    lexemes = made(world)["v"].lexemes
    assert {"xylophon", "object", "list", "quay_wall", "fix"} <= {*lexemes}
    found = "search @@ phraseto_tsquery('english', 'object to xylophones')"
    assert world.rows("messages", found, of_victim) == [(True,)]


def test_document_has_the_words_of_signatures(world: World) -> None:
    load(world, mail("a", "Hello.\n\n-- \nJo Roe\nQuay Works\n"), mail("b", "> quoted\nNo.\n"))
    assert {"roe", "quay", "work"} <= {*made(world)["a"].lexemes}
    assert "quot" in made(world)["b"].lexemes, "a first message quotes nothing"


def test_subject_is_repeated_as_a_whole(world: World) -> None:
    load(world, mail("a", "text", subject="quay wall rebuild"))
    assert made(world)["a"].lexemes[:6] == ("quay", "wall", "rebuild", "quay", "wall", "rebuild")


def test_document_has_the_fields_of_filters(world: World) -> None:
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


def test_only_changed_messages_are_read_and_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(world, mail("a"), mail("b"), mail("c"))
    world.words()
    load(world, mail("a"), mail("b", "Edited."), mail("d"), at=1)
    read: list[str] = []

    def noting(connection: Any, month: ListMonth, keys: list[str]) -> Any:
        read.extend(keys)
        return read_words(connection, month, keys)

    monkeypatch.setattr(fill_index, "read_words", noting)
    outcome = world.words()
    assert (outcome.counts["written"], outcome.counts["deleted"], len(read)) == (2, 1, 2)
    assert_agree(world)
    [edited] = [r for r in documents(world).values() if r["message_id"] == "b@example.org"]
    assert "edit" in edited["lexemes"]


def test_load_during_the_write_is_seen_by_the_next_run(
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
