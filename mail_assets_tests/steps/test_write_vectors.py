"""Writing a month's vectors: keys in the bucket = keys in the manifest = chunks, always."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from mail_assets.indexes import month as index_month
from mail_assets.indexes.vectors import open_mail_bucket
from mail_assets.month import ListMonth
from mail_assets.postgres.database import Database
from mail_assets.steps.outcome import StepError
from mail_assets.store.embeddings import Embeddings, file_key, read_embeddings
from mail_assets.vectors.index import Vector, VectorIndex
from mail_assets.vectors.lance import LanceIndex
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World, mail


class Killed(BaseException):
    """Stands for a kill inside this process."""


def load(
    world: World, *mails: bytes, at: int = 0, month: str = MARCH, list_name: str = HARBOR
) -> None:
    world.archive(month, *mails, list_name=list_name, at=at)
    world.chain(month, list_name, last="embeddings")


def bucket(world: World) -> dict[str, Vector]:
    return world.index.get(world.index.keys(), data=True)


def vectors_in_file(world: World) -> Embeddings:
    key = file_key(ListMonth(HARBOR, MARCH), world.encoder.fingerprint)
    return read_embeddings(world.store, key)


def assert_agree(world: World) -> None:
    chunks = {key for (key,) in world.rows("chunks", "key")}
    assert bucket(world).keys() == chunks
    assert world.rows("vectors", "key, written") == sorted((key, True) for key in chunks)


def test_each_chunk_has_its_vector_and_what_filters_need(world: World) -> None:
    load(world, mail("a", sender="Ann@Example.org", subject="Re: leases"), mail("b"))
    outcome = world.vectors()
    assert_agree(world)
    assert outcome.counts["chunks"] == outcome.counts["written"] == 2
    values = read_embeddings(
        world.store, file_key(ListMonth(HARBOR, MARCH), world.encoder.fingerprint)
    )
    hashes = dict(world.rows("chunks", "key, text_hash"))
    for key, vector in bucket(world).items():
        assert np.array_equal(vector.values, values[bytes(hashes[key])])
    [a] = [v for v in bucket(world).values() if v.metadata["message_id"] == "a@example.org"]
    assert a.metadata == {
        "list": HARBOR,
        "month": 202403,
        "message_id": "a@example.org",
        "sender": "ann@example.org",
        "sent_at": 1709542800,
        "chunk": 0,
        "kind": "text",
        "subject": "leases",
        "fingerprint": world.encoder.fingerprint,
    }


def test_a_second_run_writes_nothing(world: World) -> None:
    load(world, mail("a"), mail("b"))
    first, before = world.vectors(), world.writes()
    again = world.vectors()
    assert world.writes() == before
    assert not again.changed
    assert again.digest == first.digest
    assert (again.counts["written"], again.counts["deleted"]) == (0, 0)


def test_just_the_difference_is_written_and_what_is_stale_goes(world: World) -> None:
    load(world, mail("a"), mail("b"), mail("c"))
    world.vectors()
    load(world, mail("a"), mail("b", "Edited."), mail("d"), at=1)
    outcome = world.vectors()
    assert (outcome.counts["written"], outcome.counts["deleted"]) == (2, 1)
    assert outcome.changed
    assert_agree(world)


def test_a_removed_message_loses_its_vectors(world: World) -> None:
    load(world, mail("a"), mail("b"))
    world.vectors()
    load(world, mail("a"), at=1)
    outcome = world.vectors()
    assert (outcome.counts["written"], outcome.counts["deleted"]) == (0, 1)
    assert_agree(world)


def test_a_vector_is_rewritten_when_only_what_it_carries_changed(world: World) -> None:
    load(world, mail("a"), mail("b"))
    world.vectors()
    load(world, mail("a"), mail("b", date="Tue, 05 Mar 2024 09:00:00 +0000"), at=1)
    assert len(world.encoder.texts) == 2
    assert world.vectors().counts["written"] == 1
    [b] = [v for v in bucket(world).values() if v.metadata["message_id"] == "b@example.org"]
    assert b.metadata["sent_at"] == 1709542800 + 86400


def test_a_bucket_emptied_behind_our_back_is_filled_again(world: World) -> None:
    load(world, mail("a"), mail("b"))
    world.vectors()
    before = {key: vector.metadata for key, vector in bucket(world).items()}
    world.index.drop()
    assert world.vectors().counts["written"] == 2
    assert {key: vector.metadata for key, vector in bucket(world).items()} == before


def test_one_vector_lost_is_put_back(world: World) -> None:
    load(world, mail("a"), mail("b"))
    world.vectors()
    world.index.delete([min(bucket(world))])
    assert world.vectors().counts["written"] == 1
    assert_agree(world)


def test_a_foreign_key_in_the_partition_is_removed(world: World) -> None:
    load(world, mail("a"))
    world.vectors()
    [own] = bucket(world).values()
    world.index.put([Vector("foreign#0", own.values, own.metadata)])
    outcome = world.vectors()
    assert outcome.counts["deleted"] == 1
    assert_agree(world)


def test_another_bucket_is_filled_from_the_start(world: World) -> None:
    load(world, mail("a"))
    world.vectors()
    first, old = world.bucket, world.index
    world.bucket = f"lance:{world.home / 'other'}"
    assert world.vectors().counts["written"] == 1
    assert [*world.index.keys()] == [*old.keys()]
    world.bucket = first
    assert not world.vectors().changed


def test_other_partitions_are_untouched(world: World) -> None:
    for month, name in [(APRIL, HARBOR), (MARCH, PIER)]:
        load(world, mail("a"), month=month, list_name=name)
        world.vectors(month, name)
    others = {key: vector.values.tobytes() for key, vector in bucket(world).items()}
    marks = world.rows("vectors", "key, ctid::text, xmin::text")
    load(world, mail("a"), mail("b"))
    world.vectors()
    load(world, mail("a"), mail("c"), at=1)
    world.vectors()
    after = {key: vector.values.tobytes() for key, vector in bucket(world).items()}
    assert others.items() <= after.items()
    where = f"(list, month) <> ('{HARBOR}', '{MARCH}')"
    assert world.rows("vectors", "key, ctid::text, xmin::text", where) == marks


def test_an_empty_month_has_no_vectors(world: World) -> None:
    load(world)
    assert world.vectors().counts["chunks"] == 0
    assert not world.vectors().changed


def killed_at(point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the step at one of its four writes."""

    def kill(*_: object) -> None:
        raise Killed

    put = LanceIndex.put

    def put_half(index: LanceIndex, vectors: Iterable[Vector]) -> int:
        put(index, [*vectors][:1])
        raise Killed

    match point:
        case "intended":
            monkeypatch.setattr(LanceIndex, "insert", kill)
        case "inserted":
            monkeypatch.setattr(LanceIndex, "put", kill)
        case "half put":
            monkeypatch.setattr(LanceIndex, "put", put_half)
        case "put":
            monkeypatch.setattr(LanceIndex, "delete", kill)
        case "deleted":
            monkeypatch.setattr(index_month, "drop_keys", kill)
        case "forgotten":
            monkeypatch.setattr(index_month, "mark_written", kill)


@pytest.mark.parametrize(
    "point", ["intended", "inserted", "half put", "put", "deleted", "forgotten"]
)
def test_what_a_killed_run_intended_is_finished(
    world: World, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    load(world, mail("a"), mail("b"), mail("c"))
    world.vectors()
    load(world, mail("a"), mail("b", "Edited."), mail("d"), at=1)
    with monkeypatch.context() as patched:
        killed_at(point, patched)
        with pytest.raises(Killed):
            world.vectors()
    assert len(world.rows("vectors", "key", "not written")) == 2
    assert world.vectors().changed
    assert_agree(world)
    edited = dict(world.rows("chunks", "key, text_hash", "message_id like 'b%'"))
    [(key, text_hash)] = edited.items()
    values = read_embeddings(
        world.store, file_key(ListMonth(HARBOR, MARCH), world.encoder.fingerprint)
    )
    assert np.array_equal(bucket(world)[key].values, values[bytes(text_hash)])
    before = world.writes()
    assert not world.vectors().changed
    assert world.writes() == before


def test_a_key_that_was_written_twice_stands_once_again(world: World) -> None:
    """A run that has lost its lock, and another of the same month, may both insert."""
    load(world, mail("a"), mail("b"))
    world.vectors()
    index = world.index
    doubled = [*index.get(index.keys(), data=True).values()][:1]
    index.insert(doubled)
    assert index.count() == 3
    assert world.vectors().counts["written"] == 1
    assert index.count() == 2
    assert_agree(world)
    assert not world.vectors().changed


def test_what_is_new_is_inserted_and_only_what_is_outdated_is_looked_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put: list[str] = []

    def noted(index: LanceIndex, vectors: Iterable[Vector]) -> int:
        new = [*vectors]
        put.extend(str(vector.metadata["message_id"]) for vector in new)
        return VectorIndex.put(index, new)

    monkeypatch.setattr(LanceIndex, "put", noted)
    load(world, mail("a"), mail("b"))
    world.vectors()
    assert put == []
    load(world, mail("a"), mail("b", "Edited."), mail("c"), at=1)
    world.vectors()
    assert put == ["b@example.org"]
    assert_agree(world)


def test_metadata_of_any_length_fits_the_bucket(world: World) -> None:
    load(world, mail("a"))
    with world.connect() as connection:
        # a control character takes six bytes of the metadata's JSON
        long = {"id": "\x01" * 3000, "sender": "\U0001f4ee" * 3000}
        connection.execute("update messages set message_id = %(id)s, subject_base = %(id)s", long)
        connection.execute("update messages set from_email = %(sender)s", long)
        connection.execute("update chunks set message_id = %(id)s", long)
    world.vectors()
    assert_agree(world)


@pytest.mark.parametrize("encoder", ["", "another encoder"], ids=["none", "of another encoder"])
def test_no_embeddings_yet_names_the_remedy(
    world: World, monkeypatch: pytest.MonkeyPatch, encoder: str
) -> None:
    if encoder:
        load(world, mail("a"))
        monkeypatch.setattr(world.encoder, "fingerprint", encoder)
    with pytest.raises(StepError, match=f"{HARBOR} {MARCH}: no embeddings of encoder") as error:
        world.vectors()
    assert str(error.value).endswith("materialize embeddings first")


def test_embeddings_behind_their_chunks_are_refused_before_anything_is_written(
    world: World,
) -> None:
    load(world, mail("a"))
    world.vectors()
    before = world.holds()
    world.archive(MARCH, mail("a"), mail("b"), at=1)
    world.chain(last="chunks")
    with pytest.raises(StepError, match="lacks 1 of 1 texts; materialize embeddings"):
        world.vectors()
    after = world.holds()
    assert (after["manifest"], after["bucket"]) == (before["manifest"], before["bucket"])


def test_embeddings_of_another_dimension_are_refused_with_their_file(world: World) -> None:
    world.encoder.dimension = 383
    load(world, mail("a"))
    with pytest.raises(
        StepError, match=r"\.parquet has vectors of 383 .* takes 384; delete the fi"
    ):
        world.vectors()
    assert world.rows("vectors") == []
    world.encoder.dimension = 384
    world.store.delete(file_key(ListMonth(HARBOR, MARCH), world.encoder.fingerprint))
    world.embeddings()
    assert world.vectors().counts["written"] == 1


def test_pgvector_of_the_embedded_server_is_refused_where_the_processor_cannot_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mail_assets.indexes.vectors.vector_cpu_ok", lambda: False)
    with pytest.raises(ValueError, match=r"AVX2 .* MAIL_PG_DSN .* lance:"):
        open_mail_bucket(Database(tmp_path), "pgvector:")


def test_pgvector_of_a_server_of_ones_own_is_the_business_of_its_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_dsn: str
) -> None:
    monkeypatch.setattr("mail_assets.indexes.vectors.vector_cpu_ok", lambda: False)
    assert open_mail_bucket(Database(tmp_path, postgres_dsn), "pgvector:").indexes() == []
