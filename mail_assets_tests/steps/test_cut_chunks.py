"""Chunks of a month's new text: first run, second run, and after a change."""

from functools import partial
from typing import Any

import pytest

from mail_assets.encoding.models import LOCAL_MODELS
from mail_assets.postgres import statements
from mail_assets.steps import cut_chunks as step
from mail_assets.tables import messages
from mail_assets.text.chunking import Chunks, chunk_body
from mail_assets_tests.world import HARBOR, PIER, PROFILE, World, mail

LONG = "\n\n".join(f"Paragraph {n} says a few words more about the lease." for n in range(60))
VERSIONS = "key, list, month, ctid::text, xmin::text"


load = partial(World.load, last="messages")


def test_text_of_a_chunk_is_exactly_its_spans(world: World) -> None:
    load(world, mail("a", LONG), mail("b", "> quoted\n\nAn answer.", references="<a@example.org>"))
    outcome = world.chunks()
    bodies = dict(world.rows("messages", "message_id, body_text"))
    rows = world.rows("chunks", "message_id, text, spans, tokens")
    for message_id, text, spans, _ in rows:
        body = bodies[message_id]
        cut = [body[s:e] for s, e in zip(spans[::2], spans[1::2], strict=True)]
        assert "".join(cut) == text
    assert outcome.counts["messages"] == 2
    assert outcome.counts["chunks"] == outcome.counts["written"] == len(rows) > 2
    assert outcome.counts["tokens"] == sum(tokens for *_, tokens in rows)
    assert outcome.counts["tokens_max"] == max(tokens for *_, tokens in rows)
    assert outcome.counts["tokens_max"] <= LOCAL_MODELS[PROFILE].sizes.max_tokens
    assert not [text for _, text, *_ in rows if "quoted" in text]


def test_bodies_and_chunks_are_handled_in_small_groups(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(world, *(mail(f"m{n}", f"Lease {n}.\n\n{LONG}") for n in range(9)))
    whole = world.chunks().digest, world.rows("chunks")
    with world.connect() as connection:
        connection.execute("delete from chunks")
        connection.execute("delete from partitions where asset = 'chunks'")
    monkeypatch.setattr(statements, "ROWS_AT_A_TIME", 4)
    monkeypatch.setattr(messages, "TEXTS_AT_A_TIME", 2)
    assert (world.chunks().digest, world.rows("chunks")) == whole


def test_run_writes_only_the_difference(world: World) -> None:
    load(world, mail("a", LONG), mail("b"), mail("c"))
    world.chunks()
    before = {key: mark for key, *mark in world.rows("chunks", VERSIONS, "message_id like 'a%'")}
    load(world, mail("a", LONG), mail("b", "Edited."), mail("d"), at=1)
    outcome = world.chunks()
    assert (outcome.counts["written"], outcome.counts["deleted"]) == (2, 1)
    after = {key: mark for key, *mark in world.rows("chunks", VERSIONS, "message_id like 'a%'")}
    assert after == before


def test_message_that_moves_in_the_archive_writes_no_chunk(world: World) -> None:
    load(world, mail("a"), mail("b"))
    first = world.chunks()
    load(world, mail("b"), mail("a"), at=1)
    outcome = world.chunks()
    assert (outcome.counts["written"], outcome.counts["deleted"]) == (0, 0)
    assert not outcome.changed
    assert outcome.digest == first.digest


def test_variants_of_a_message_have_chunks_of_their_own(world: World) -> None:
    load(world, mail("a", "One text."), mail("a", "Another text."))
    assert world.chunks().counts["chunks"] == 2
    assert len({key for (key,) in world.rows("chunks", "key")}) == 2


def test_message_on_two_lists_has_two_keys_and_one_text(world: World) -> None:
    for name in (HARBOR, PIER):
        load(world, mail("a"), list_name=name)
        world.chunks(list_name=name)
    assert len({key for (key,) in world.rows("chunks", "key")}) == 2
    assert len({text for (text,) in world.rows("chunks", "text_hash")}) == 1


def test_new_chunker_version_cuts_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    load(world, mail("a"))
    world.chunks()
    monkeypatch.setattr(step, "CHUNKER_VERSION", "another")
    calls = []

    def counted(*arguments: Any) -> Chunks:
        calls.append(arguments)
        return chunk_body(*arguments)

    monkeypatch.setattr(step, "chunk_body", counted)
    world.chunks()
    assert len(calls) == 1
