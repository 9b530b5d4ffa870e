"""A text is encoded once for all lists and months, also after a killed run."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest

from mail_assets.encoding.local_encoder import encoder_lock
from mail_assets.encoding.models import LOCAL_MODELS
from mail_assets.month import ListMonth
from mail_assets.steps import encode_chunks as step
from mail_assets.store import embeddings
from mail_assets.store.embeddings import (
    copy_embeddings,
    file_key,
    parts_prefix,
    read_embeddings,
    write_embeddings,
)
from mail_assets.tables.chunks import count_unencoded
from mail_assets.tables.encoded_texts import keep_encoded
from mail_assets.text.chunking import build_document
from mail_assets.workspace import StepError
from mail_assets_tests.waits import LONG
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, PROFILE, Killed, World, mail

DIMENSION = LOCAL_MODELS[PROFILE].dimension


load = partial(World.load, last="chunks")


def key(world: World, month: str = MARCH, list_name: str = HARBOR) -> str:
    return file_key(ListMonth(list_name, month), world.encoder.fingerprint)


def hashes(world: World) -> set[bytes]:
    where = f"list = '{HARBOR}' and month = '{MARCH}'"
    return {bytes(text_hash) for (text_hash,) in world.rows("chunks", "text_hash", where)}


def test_file_has_one_vector_per_distinct_text(world: World) -> None:
    load(world, mail("a"), mail("b", "Thanks.", subject="s"), mail("c", "Thanks.", subject="s"))
    outcome = world.embeddings()
    vectors = read_embeddings(world.store, key(world))
    assert vectors.keys() == hashes(world)
    assert len(world.rows("chunks")) == 3
    assert outcome.counts["texts"] == outcome.counts["encoded"] == len(vectors) == 2
    assert outcome.counts["bytes"] == world.store.size(key(world))
    assert outcome.counts["tokens"] > 0


def test_texts_that_searches_encoded_are_not_encoded_again(world: World) -> None:
    load(world, mail("a"), mail("b"))
    kept = {text: np.ones(DIMENSION, np.float32) for text in sorted(hashes(world))[:1]}
    with world.connect() as connection:
        keep_encoded(connection, world.encoder.fingerprint, kept)
        keep_encoded(connection, "another", kept)
    outcome = world.embeddings()
    assert (outcome.counts["encoded"], outcome.counts["reused"]) == (1, 1)
    vectors = read_embeddings(world.store, key(world))
    assert vectors.keys() == hashes(world)
    [(text, vector)] = kept.items()
    assert vectors[text].tolist() == vector.tolist()


def test_new_texts_are_encoded_and_old_ones_leave_the_file(world: World) -> None:
    load(world, mail("a"), mail("b"), mail("c"))
    world.embeddings()
    load(world, mail("a"), mail("b", "Edited."), mail("d"), at=1)
    outcome = world.embeddings()
    assert sorted(world.encoder.texts[3:]) == sorted(
        [
            build_document("about b", "Edited."),
            build_document("about d", "What d is about stands here."),
        ]
    )
    assert (outcome.counts["encoded"], outcome.counts["reused"]) == (2, 1)
    assert read_embeddings(world.store, key(world)).keys() == hashes(world)


def test_same_texts_leave_the_file_unchanged(world: World) -> None:
    load(world, mail("a", "Thanks.", subject="s"))
    world.embeddings()
    before = world.file_times()[key(world)]
    load(world, mail("b", "Thanks.", subject="s"), at=1)
    outcome = world.embeddings()
    assert not outcome.changed
    assert world.file_times()[key(world)] == before


def test_text_on_two_lists_is_encoded_once(world: World) -> None:
    load(world, mail("a"), mail("b"))
    world.embeddings()
    load(world, mail("a"), mail("c"), list_name=PIER)
    outcome = world.embeddings(list_name=PIER)
    assert (outcome.counts["encoded"], outcome.counts["reused"]) == (1, 1)
    assert len(world.encoder.texts) == len({*world.encoder.texts}) == 3
    own = read_embeddings(world.store, key(world))
    other = read_embeddings(world.store, key(world, list_name=PIER))
    [shared] = own.keys() & other.keys()
    assert np.array_equal(own[shared], other[shared])


def test_text_of_many_months_is_read_from_one_file(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for month in (MARCH, APRIL):
        load(world, mail("faq"), month=month)
        world.embeddings(month)
    load(world, mail("faq"), mail("new"), list_name=PIER)
    read = []

    def counted(*arguments: Any) -> object:
        read.append(arguments[1])
        return copy_embeddings(*arguments)

    monkeypatch.setattr(step, "copy_embeddings", counted)
    world.embeddings(list_name=PIER)
    assert len(read) == 1


@pytest.mark.parametrize("part", [1, 3, 100])
def test_size_of_the_parts_changes_no_byte(
    part: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(world, *(mail(f"m{n}") for n in range(7)))
    load(world, *(mail(f"m{n}") for n in range(3, 10)), list_name=PIER)
    world.embeddings(list_name=PIER)
    monkeypatch.setattr(step, "PART", part)
    monkeypatch.setattr(embeddings, "GROUP", 2)
    outcome = world.embeddings()
    assert (outcome.counts["encoded"], outcome.counts["reused"]) == (3, 4)
    made = (world.home / "store" / key(world)).read_bytes()
    vectors = {
        text_hash: world.encoder.encode_documents([build_document(subject, text)])[0]
        for text_hash, subject, text in world.rows(
            "chunks join messages m using (list, month, message_id, variant)",
            "chunks.text_hash, subject_base, text",
            f"list = '{HARBOR}'",
        )
    }
    write_embeddings(world.store, key(world), vectors, world.encoder.fingerprint)
    assert (world.home / "store" / key(world)).read_bytes() == made


def test_file_of_another_month_may_vanish_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(world, mail("a"), mail("b"), list_name=PIER)
    world.embeddings(list_name=PIER)
    load(world, mail("a"), mail("b"), mail("c"))
    encode = world.encoder.encode_documents

    def meanwhile(texts: list[str]) -> object:
        world.store.delete(key(world, list_name=PIER))
        return encode(texts)

    monkeypatch.setattr(world.encoder, "encode_documents", meanwhile)
    outcome = world.embeddings()
    assert (outcome.counts["encoded"], outcome.counts["reused"]) == (1, 2)
    assert read_embeddings(world.store, key(world)).keys() == hashes(world)


def test_chunks_written_meanwhile_are_encoded_by_the_next_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "PART", 2)
    load(world, *(mail(f"m{n}") for n in range(6)))
    before, encode = hashes(world), world.encoder.encode_documents

    def meanwhile(texts: list[str]) -> object:
        if not world.encoder.calls:
            load(world, *(mail(f"m{n}") for n in range(1, 9)), at=1)
        return encode(texts)

    monkeypatch.setattr(world.encoder, "encode_documents", meanwhile)
    assert world.embeddings().counts["encoded"] == 6
    assert read_embeddings(world.store, key(world)).keys() == before
    assert world.embeddings().counts["encoded"] == 3
    assert read_embeddings(world.store, key(world)).keys() == hashes(world)
    assert len(world.encoder.texts) == len({*world.encoder.texts}) == 9


def test_parts_of_a_killed_run_are_used_and_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "PART", 2)
    load(world, *(mail(f"m{n}") for n in range(7)))
    encode = world.encoder.encode_documents

    def killed_at_the_third_part(texts: list[str]) -> object:
        if len(world.encoder.calls) == 2:
            raise Killed
        return encode(texts)

    monkeypatch.setattr(world.encoder, "encode_documents", killed_at_the_third_part)
    with pytest.raises(Killed):
        world.embeddings()
    parts = parts_prefix(ListMonth(HARBOR, MARCH), world.encoder.fingerprint)
    assert len([*world.store.keys(parts)]) == 2
    assert not world.store.exists(key(world))
    monkeypatch.setattr(world.encoder, "encode_documents", encode)
    outcome = world.embeddings()
    assert (outcome.counts["encoded"], outcome.counts["reused"]) == (3, 4)
    assert len(world.encoder.texts) == len({*world.encoder.texts}) == 7
    assert [*world.store.keys("embeddings/")] == [key(world)]


def test_file_is_not_mixed_with_another_dimension(world: World) -> None:
    load(world, mail("a"))
    world.embeddings()
    load(world, mail("a"), mail("b"), at=1)
    before = world.writes()
    world.encoder.dimension = 383
    with pytest.raises(
        StepError, match=r"\.parquet has vectors of 384 numbers, .* now returns 383\. Serve"
    ):
        world.embeddings()
    assert world.writes() == before
    assert len(world.encoder.texts) == 1
    world.encoder.dimension = 384
    assert world.embeddings().counts["encoded"] == 1


@pytest.mark.parametrize("held", [True, False])
def test_vectors_of_another_dimension_are_never_reused(world: World, held: bool) -> None:
    """A server made them earlier: in a part, for another month, for a search."""
    if held:
        load(world, mail("a"))
        world.embeddings()
    load(world, mail("b"), list_name=PIER)
    world.encoder.dimension = 383
    world.embeddings(list_name=PIER)
    world.encoder.dimension = 384
    load(world, *map(mail, "abcd"), at=1)
    texts = dict(world.rows("chunks", "message_id, text_hash", f"list = '{HARBOR}'"))
    found = {name: bytes(texts[f"{name}@example.org"]) for name in "bcd"}
    other = np.ones(383, np.float32)
    encoder = world.encoder.fingerprint
    parts = parts_prefix(ListMonth(HARBOR, MARCH), encoder)
    write_embeddings(world.store, f"{parts}of-a-killed-run.parquet", {found["c"]: other}, encoder)
    with world.connect() as connection:
        keep_encoded(connection, encoder, {found["d"]: other})
    assert world.embeddings().counts["reused"] == held
    vectors = read_embeddings(world.store, key(world))
    assert vectors.keys() == hashes(world)
    assert {vector.size for vector in vectors.values()} == {384}
    assert [*world.store.keys(parts)] == []


def test_progress_is_logged_with_each_part(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "PART", 2)
    load(world, *(mail(f"m{n}") for n in range(5)))
    world.said.clear()
    world.embeddings()
    assert [line.partition(" chunks encoded")[0] for line in world.said] == [
        f"{HARBOR} {MARCH}: 2 of 5",
        f"{HARBOR} {MARCH}: 4 of 5",
    ]


def test_month_that_became_empty_loses_its_file(world: World) -> None:
    load(world, mail("a"))
    world.embeddings()
    load(world, at=1)
    assert world.embeddings().changed
    assert [*world.store.keys("embeddings/")] == []


def test_another_encoder_has_file_of_its_own(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    load(world, mail("a"))
    world.embeddings()
    old = key(world)
    monkeypatch.setattr(world.encoder, "fingerprint", "another")
    assert world.embeddings().counts["encoded"] == 1
    assert {*world.store.keys("embeddings/")} == {old, key(world)}


def test_months_left_for_this_encoder_are_counted(world: World) -> None:
    def left(encoder: str = world.encoder.fingerprint) -> int:
        with world.connect() as connection:
            return count_unencoded(connection, encoder)

    assert left() == 0
    load(world, mail("a"), mail("b"))
    load(world, mail("a"), list_name=PIER)
    assert left() == left("another") == 3
    world.embeddings()
    assert (left(), left("another")) == (1, 3)
    load(world, mail("a"), mail("b"), mail("c"), at=1)
    assert (left(), left("another")) == (2, 4)
    world.embeddings()
    world.embeddings(list_name=PIER)
    assert (left(), left("another")) == (0, 4)
    world.archive(MARCH, mail("d"), at=2)
    world.archives(allow_loss=True)
    world.messages()
    world.chunks()
    assert left() == 0  # not -2, which would hide missing texts of other months


def test_month_waits_while_another_process_encodes(world: World) -> None:
    load(world, mail("a"), mail("b"))
    run = threading.Thread(target=world.embeddings)
    with encoder_lock(world.encoder.models, fail):
        run.start()
        while not world.said:
            assert run.is_alive()
        assert world.encoder.calls == []
        assert world.said == [f"{HARBOR} {MARCH}: waiting for another process that is encoding"]
    run.join(LONG)
    assert len(world.encoder.texts) == 2


def test_month_waits_per_part_and_reports_it_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "PART", 1)
    load(world, *(mail(f"m{n}") for n in range(3)))
    turns = []

    @contextmanager
    def wait(report_wait: Callable[[], None]) -> Iterator[None]:
        """A lock that another process always gets first."""
        report_wait()
        turns.append(len(world.encoder.calls))
        yield

    monkeypatch.setattr(world.encoder, "wait_turn", wait)
    world.embeddings()
    assert turns == [0, 1, 2]
    assert sum("waiting" in line for line in world.said) == 1


def test_month_with_nothing_to_encode_does_not_wait(world: World) -> None:
    load(world, mail("a"))
    world.embeddings()
    load(world, mail("a"), list_name=PIER)
    with encoder_lock(world.encoder.models, fail):
        assert world.embeddings().counts["encoded"] == 0
        assert world.embeddings(MARCH, PIER).counts["reused"] == 1
    assert len(world.encoder.texts) == 1


def fail() -> None:
    raise AssertionError("there is nobody to wait for")
