"""A vector carries what filters need, and none is written without its embedding."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from mail_assets.indexes.vectors import open_mail_bucket
from mail_assets.month import ListMonth
from mail_assets.postgres.database import Database
from mail_assets.store.embeddings import file_key, read_embeddings
from mail_assets.vectors.index import Vector, VectorIndex
from mail_assets.vectors.lance import LanceIndex
from mail_assets.workspace import StepError
from mail_assets_tests.world import HARBOR, MARCH, World, mail

load = partial(World.load, last="embeddings")


def bucket(world: World) -> dict[str, Vector]:
    return world.index.get(world.index.keys(), data=True)


def assert_agree(world: World) -> None:
    chunks = {key for (key,) in world.rows("chunks", "key")}
    assert bucket(world).keys() == chunks
    assert world.rows("vectors", "key, written") == sorted((key, True) for key in chunks)


def test_each_chunk_has_its_vector_and_filter_fields(world: World) -> None:
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


def test_vector_is_rewritten_when_only_its_metadata_changed(world: World) -> None:
    load(world, mail("a"), mail("b"))
    world.vectors()
    load(world, mail("a"), mail("b", date="Tue, 05 Mar 2024 09:00:00 +0000"), at=1)
    assert len(world.encoder.texts) == 2
    assert world.vectors().counts["written"] == 1
    [b] = [v for v in bucket(world).values() if v.metadata["message_id"] == "b@example.org"]
    assert b.metadata["sent_at"] == 1709542800 + 86400


def test_new_vectors_are_inserted_and_outdated_ones_put(
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


def test_embeddings_of_another_encoder_are_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(world, mail("a"))
    monkeypatch.setattr(world.encoder, "fingerprint", "another encoder")
    with pytest.raises(StepError, match=f"{HARBOR} {MARCH}: no embeddings of encoder") as error:
        world.vectors()
    assert str(error.value).endswith("materialize embeddings first")


def test_outdated_embeddings_are_refused_before_any_write(
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


def test_embeddings_of_another_dimension_are_refused(world: World) -> None:
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


def test_embedded_pgvector_is_refused_without_its_cpu_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mail_assets.indexes.vectors.vector_cpu_ok", lambda: False)
    with pytest.raises(ValueError, match=r"AVX2 .* MAIL_PG_DSN .* lance:"):
        open_mail_bucket(Database(tmp_path), "pgvector:")


def test_pgvector_of_your_own_server_needs_no_cpu_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_dsn: str
) -> None:
    monkeypatch.setattr("mail_assets.indexes.vectors.vector_cpu_ok", lambda: False)
    assert open_mail_bucket(Database(tmp_path, postgres_dsn), "pgvector:").indexes() == []
