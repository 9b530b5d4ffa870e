"""Candidates of a static index are ranked by the model, and no text is encoded twice."""

import numpy as np
import pytest

from mail_assets.indexes.encoder_probe import PROBE_TEXT, EncoderProbeError
from mail_assets.month import ListMonth
from mail_assets.search import semantic
from mail_assets.search.matches import Candidate, MessageCopy
from mail_assets.search.semantic import Vector, rerank
from mail_assets.tables.encoded_texts import EncoderProbe, keep_encoded, record_probe, sweep_encoded
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.world import HARBOR, MARCH, Hashing, World, mail

NAMES = ("a", "b", "c", "d")


def fill(world: World) -> None:
    """Load four messages of one chunk each."""
    world.load(*map(mail, NAMES), last="chunks")


world = kept_world(fill)


@pytest.fixture
def model(world: World) -> Hashing:
    return Hashing(world.home / "models")


@pytest.fixture
def query(world: World) -> Vector:
    """The vector of a query that is the text of one of the messages."""
    [vector] = Hashing(world.home / "models").encode_documents(
        ["about b\nWhat b is about stands here."]
    )
    return np.asarray(vector, np.float32)


def keys(world: World) -> dict[str, str]:
    return dict(world.rows("chunks", "message_id, key"))


def candidates(world: World, names: str, *, chunks: bool = True) -> list[Candidate]:
    """Candidates in this order; those with chunks come from the vector index."""
    key_of = keys(world)
    return [
        Candidate(
            f"{name}@example.org",
            MessageCopy(ListMonth(HARBOR, MARCH), 0),
            None,
            1 - place / 10,
            {key_of[f"{name}@example.org"]: place / 10} if chunks else {},
        )
        for place, name in enumerate(names)
    ]


def ids(ranked: list[Candidate]) -> list[str]:
    return [one.message_id.partition("@")[0] for one in ranked]


def test_model_ranks_matches_of_index_and_words(
    world: World, model: Hashing, query: Vector
) -> None:
    with world.connect() as connection:
        by_index, by_words = candidates(world, "ac"), candidates(world, "cb", chunks=False)
        ranked = rerank(connection, model, query, by_index, by_words)
    assert ids(ranked)[0] == "b"
    assert {*ids(ranked)} == {"a", "b", "c"}
    assert ranked[0].score == pytest.approx(1, abs=1e-5)
    assert ranked[0].chunks == {keys(world)["b@example.org"]: pytest.approx(0, abs=1e-5)}
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)


def test_text_is_encoded_once(world: World, model: Hashing, query: Vector) -> None:
    with world.connect() as connection:
        first = rerank(connection, model, query, candidates(world, "ab"))
        again = rerank(connection, model, query, candidates(world, "ab"))
        rerank(connection, model, query, candidates(world, "abc"))
    assert again == first
    assert [len(call) for call in model.calls if call != [PROBE_TEXT]] == [2, 1]


def test_another_model_encodes_again(world: World, model: Hashing, query: Vector) -> None:
    other = Hashing(world.home / "models")
    other.fingerprint = "another"
    with world.connect() as connection:
        rerank(connection, model, query, candidates(world, "a"))
        rerank(connection, other, query, candidates(world, "a"))
    assert other.calls[0] == [PROBE_TEXT]
    assert len(other.calls[1]) == 1


def test_vectors_of_a_different_machine_are_not_kept(
    world: World, model: Hashing, query: Vector
) -> None:
    with world.connect() as connection:
        other = np.eye(1, 384, dtype=np.float32)[0]
        record_probe(connection, model.fingerprint, EncoderProbe(other, "another processor"))
        with pytest.raises(EncoderProbeError):
            rerank(connection, model, query, candidates(world, "a"))
    assert world.rows("encoded_texts") == []


def test_rest_of_the_ranking_keeps_its_order(
    world: World, model: Hashing, query: Vector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(semantic, "NEAREST_CHUNKS", 2)
    with world.connect() as connection:
        short = rerank(connection, model, query, candidates(world, "abc"))
        longer = rerank(connection, model, query, candidates(world, "abcd"))
    assert ids(short) == [*ids(short[:2]), "c"]
    assert ids(longer) == [*ids(short), "d"]
    assert longer[3].score <= longer[2].score <= longer[1].score


def test_nothing_is_ranked_if_nothing_is_found(world: World, model: Hashing, query: Vector) -> None:
    with world.connect() as connection:
        assert rerank(connection, model, query, []) == []
    assert model.calls == []


def test_deleted_chunks_are_left_out(world: World, model: Hashing, query: Vector) -> None:
    with world.connect() as connection:
        found = candidates(world, "ab")
        connection.execute("delete from chunks")
        assert rerank(connection, model, query, found) == []
    assert model.calls == []


def test_oldest_vectors_go_first(world: World) -> None:
    vector = np.ones(3, np.float32)
    texts = [bytes(h) for (h,) in world.rows("chunks", "text_hash")]
    with world.connect() as connection:
        for text in texts:
            keep_encoded(connection, "x", {text: vector}, most=2)
    assert {bytes(h) for (h,) in world.rows("encoded_texts", "text_hash")} == {*texts[-2:]}


def test_text_that_no_chunk_has_is_not_kept(world: World) -> None:
    with world.connect() as connection:
        keep_encoded(connection, "x", {b"\0" * 32: np.ones(3, np.float32)})
    assert world.rows("encoded_texts") == []


def test_vectors_of_forgotten_text_are_not_kept(world: World) -> None:
    forgotten, old, new = (bytes(text) for (text,) in world.rows("chunks", "text_hash")[:3])
    vector = np.ones(3, np.float32)
    with world.connect() as forgetting, world.connect() as searching:
        keep_encoded(searching, "x", {old: vector})
        searching.execute("set lock_timeout = '10ms'")
        with forgetting.transaction():
            forgetting.execute("delete from chunks where text_hash = any(%s)", [[forgotten, old]])
            sweep_encoded(forgetting)
            keep_encoded(searching, "x", {forgotten: vector, new: vector}, most=1)
        keep_encoded(searching, "x", {forgotten: vector})
    assert [bytes(text) for (text,) in world.rows("encoded_texts", "text_hash")] == [new]
