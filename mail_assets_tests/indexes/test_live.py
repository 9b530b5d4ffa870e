"""An index is promoted when it is complete and not worse, and retired when it is not live."""

from typing import Any

import psycopg
import pytest

from mail_assets.indexes.live import (
    Judge,
    LifecycleError,
    Promotion,
    Verdict,
    complete_indexes,
    describe_indexes,
    follow_version,
    live_encoder,
    promote_vectors,
    retire_index,
)
from mail_assets.indexes.mail_index import MailBucket
from mail_assets.indexes.vectors import MailVectors, index_spec
from mail_assets.indexes.words import MailWords, open_mail_words, open_words_bucket
from mail_assets.month import ListMonth
from mail_assets.search.language.request import Request
from mail_assets.search.open import open_searcher
from mail_assets.steps.fill_index import write_vectors, write_words
from mail_assets.tables.indexes import IndexRecord, live_index, read_promotion, switch_live
from mail_assets.vectors.index import IndexSpec, MissingIndexError, VectorIndex
from mail_assets.vectors.open import open_bucket
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PROFILE, World, mail

INT8, FP32 = (index_spec(PROFILE, precision).name for precision in ("int8", "fp32"))


def bucket_of(world: World) -> MailBucket:
    return MailBucket(open_bucket(world.bucket), world.bucket)


def index_of(world: World, precision: str) -> VectorIndex:
    return open_bucket(world.bucket).index(index_spec(PROFILE, precision))


def fill(world: World, precision: str) -> None:
    index, fingerprint = index_of(world, precision), world.encoder.fingerprint
    with world.workspace() as workspace:
        mail_vectors = MailVectors(index, world.bucket, PROFILE, precision, fingerprint)
        write_vectors(workspace, ListMonth(HARBOR, MARCH), mail_vectors)


def fill_world(world: World) -> None:
    """The int8 index is live and the fp32 index complete."""
    world.load(mail("a"), mail("b"), last="embeddings")
    fill(world, "int8")
    fill(world, "fp32")


filled = kept_world(fill_world)


def switch(
    world: World, name: str, *, force: bool = False, judge: Judge | None = None
) -> Promotion:
    with world.connect() as connection:
        return promote_vectors(connection, bucket_of(world), name, force=force, judge=judge)


def live(world: World) -> tuple[str, str]:
    with world.connect() as connection:
        return live_encoder(connection, world.bucket, PROFILE, "configured")


def promotions(world: World) -> list[tuple[Any, ...]]:
    return world.rows("promotions", "name, replaced, forced")


def test_configured_encoder_is_asked_before_any_is_live(world: World) -> None:
    assert live(world) == (PROFILE, "configured")


def test_complete_index_is_promoted_and_back(filled: World) -> None:
    assert live(filled) == (PROFILE, "int8")
    done = switch(filled, FP32)
    assert done[:5] == (FP32, PROFILE, "fp32", INT8, False)
    assert (done.report["bucket"], done.report["missing"]) == (2, 0)
    assert live(filled) == (PROFILE, "fp32")
    switch(filled, INT8)
    assert live(filled) == (PROFILE, "int8")
    assert promotions(filled) == [(FP32, INT8, False), (INT8, FP32, False)]


def test_incomplete_index_is_refused_unless_forced(filled: World) -> None:
    asked: list[tuple[str, str | None]] = []
    index = index_of(filled, "fp32")
    index.delete([min(index.keys())])
    with pytest.raises(
        LifecycleError,
        match=rf"{FP32} is not fit.*1 keys are missing; .*=fp32 .* backfill, or use --f",
    ):
        switch(filled, FP32, judge=judge_of("", asked))
    assert asked == [], "it is not judged"
    assert live(filled) == (PROFILE, "int8")
    assert switch(filled, FP32, force=True).forced
    assert live(filled) == (PROFILE, "fp32")
    assert promotions(filled) == [(FP32, INT8, True)]


def test_outdated_index_is_refused(filled: World) -> None:
    filled.load(mail("a"), mail("b", "Edited."), at=1, last="vectors")
    with pytest.raises(LifecycleError, match="1 keys are outdated"):
        switch(filled, FP32)


def judge_of(worse: str, asked: list[tuple[str, str | None]]) -> Judge:
    """Return a judge with a fixed verdict, which records the judged pairs."""

    def judge(candidate: IndexRecord, live: IndexRecord | None) -> Verdict:
        asked.append((candidate.name, live.name if live else None))
        return Verdict({"quality": {"queries": 3}}, worse)

    return judge


def test_worse_index_is_refused_unless_forced(filled: World) -> None:
    asked: list[tuple[str, str | None]] = []
    with pytest.raises(LifecycleError, match="not fit to be live: answers worse; use --force"):
        switch(filled, FP32, judge=judge_of("answers worse", asked))
    assert (live(filled), promotions(filled)) == ((PROFILE, "int8"), [])
    done = switch(filled, FP32, force=True, judge=judge_of("answers worse", asked))
    assert done.forced
    assert asked == [(FP32, INT8), (FP32, INT8)]


def test_verdict_is_recorded_and_the_live_one_judged_alone(filled: World) -> None:
    asked: list[tuple[str, str | None]] = []
    for name in (FP32, FP32):
        assert not switch(filled, name, judge=judge_of("", asked)).forced
    assert asked == [(FP32, INT8), (FP32, None)]
    with filled.connect() as connection:
        promoted = read_promotion(connection, filled.bucket)
    assert promoted
    assert (promoted.name, promoted.report["quality"]) == (FP32, {"queries": 3})


def test_live_and_complete_indexes_are_compared(filled: World) -> None:
    def names() -> list[str]:
        with filled.connect() as connection:
            return [one.name for one in complete_indexes(connection, filled.bucket)]

    assert names() == [INT8, FP32]
    switch(filled, FP32)
    assert names() == [FP32, INT8]
    with filled.connect() as connection:
        connection.execute(
            b"update vectors set written = false where key = (select min(key) from chunks)"
        )
    assert names() == [FP32], "the live one whatever it holds"
    with filled.connect() as connection:
        connection.execute(b"update indexes set encoder = 'gone-small' where precision = 'fp32'")
    with pytest.raises(LifecycleError, match="gone-small"):
        names()


def test_index_of_another_dimension_is_refused_even_by_force(
    filled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mail_assets.indexes.vectors.find_dimension", lambda _: 32)
    for force in (False, True):
        with pytest.raises(LifecycleError, match=f"{FP32} cannot be asked: .* 384 .*makes 32 now"):
            switch(filled, FP32, force=force)
    assert (live(filled), promotions(filled)) == ((PROFILE, "int8"), [])


def test_unknown_index_is_refused_with_the_known_names(filled: World) -> None:
    for act in (switch, drop):
        with pytest.raises(LifecycleError, match=f"no index other .*there are: {INT8}, {FP32}"):
            act(filled, "other")


def test_index_without_its_encoder_is_refused_with_remedy(filled: World) -> None:
    with filled.connect() as connection:
        connection.execute(b"update indexes set encoder = 'gone-small' where precision = 'int8'")
    with pytest.raises(LifecycleError, match=r"gone-small int8 .*does not have; run the version"):
        live(filled)
    with pytest.raises(LifecycleError, match="gone-small"):
        switch(filled, INT8, force=True)
    asked: list[tuple[str, str | None]] = []
    assert switch(filled, FP32, judge=judge_of("", asked)).replaced == INT8
    assert asked == [(FP32, None)], "the live one cannot be judged"


def drop(world: World, name: str) -> None:
    with world.connect() as connection:
        retire_index(connection, bucket_of(world), name)


def test_live_index_is_not_retired(filled: World) -> None:
    with pytest.raises(LifecycleError, match=f"{INT8} is live: promote another one first"):
        drop(filled, INT8)
    assert index_of(filled, "int8").count() == 2


def test_retired_index_is_deleted_with_its_manifest(filled: World) -> None:
    drop(filled, FP32)
    with pytest.raises(MissingIndexError):
        index_of(filled, "fp32").count()
    assert index_of(filled, "int8").count() == 2
    assert {name for (name,) in filled.rows("vectors", "index_name")} == {f"{filled.bucket} {INT8}"}
    fill(filled, "fp32")
    assert index_of(filled, "fp32").count() == 2


def test_indexes_of_the_bucket_are_described(filled: World) -> None:
    index_of(filled, "fp32").drop()
    open_bucket(filled.bucket).index(IndexSpec("other", 2, {})).ensure()
    with filled.connect() as connection:
        rows = describe_indexes(connection, bucket_of(filled))
    names = ("name", "live", "written", "in_bucket")
    assert [tuple(row.get(name) for name in names) for row in rows] == [
        (INT8, True, 2, True),
        (FP32, False, 2, False),
        ("other", False, None, True),
    ]


def test_promotion_waits_for_another_one(filled: World) -> None:
    with filled.connect() as other, other.transaction():
        other.execute(
            "select pg_advisory_xact_lock(hashtextextended('index ' || %s, 0))", [filled.bucket]
        )
        with filled.connect() as connection:
            connection.execute("set lock_timeout = '50ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                promote_vectors(connection, bucket_of(filled), FP32)


def fill_words(world: World) -> None:
    """Fill the live word index with two months."""
    for month in (MARCH, APRIL):
        world.load(mail("a"), mail("b"), month=month, last="words")


filled_words = kept_world(fill_words)


def newer(world: World) -> MailWords:
    return open_mail_words(world.words_url, "words-next")


def fill_newer(world: World, month: str) -> None:
    with world.workspace() as workspace:
        write_words(workspace, ListMonth(HARBOR, month), newer(world))


def live_words(world: World) -> str:
    with world.connect() as connection:
        found = live_index(connection, world.words_url)
    assert found
    return found.name


def test_newer_word_index_is_live_when_it_has_every_month(filled_words: World) -> None:
    old = filled_words.mail_words.name
    with filled_words.connect() as connection:
        for month in (MARCH, APRIL):
            assert not follow_version(connection, newer(filled_words))
            fill_newer(filled_words, month)
            assert live_words(filled_words) == old
        assert follow_version(connection, newer(filled_words))
        assert not follow_version(connection, newer(filled_words)), "it is live already"
    assert live_words(filled_words) == "words-next"
    assert filled_words.rows("promotions", "name, replaced, forced") == [("words-next", old, False)]


def test_old_word_index_is_listed_and_retired(filled_words: World) -> None:
    for month in (MARCH, APRIL):
        fill_newer(filled_words, month)
    old, bucket = filled_words.mail_words.name, open_words_bucket(filled_words.words_url)
    with filled_words.connect() as connection:
        with pytest.raises(LifecycleError, match=f"index {old} is live"):
            retire_index(connection, bucket, old)
        follow_version(connection, newer(filled_words))
        listed = [
            (one["name"], one["live"], one["written"])
            for one in describe_indexes(connection, bucket)
        ]
        assert listed == [(old, False, 4), ("words-next", True, 4)]
        retire_index(connection, bucket, old)
        assert [one["name"] for one in describe_indexes(connection, bucket)] == ["words-next"]
    assert {name for (name,) in filled_words.rows("words", "index_name")} == {
        newer(filled_words).manifest.index_name
    }


def test_search_asks_the_live_word_index(filled_words: World) -> None:
    fill_newer(filled_words, MARCH)
    found = []
    with filled_words.connect() as connection:
        for _ in range(2):
            with open_searcher(filled_words.settings().search) as searcher:
                response = searcher.search(Request(f"stands month:{APRIL}", mode="fulltext"))
            found.append(len(response.hits))
            switch_live(connection, filled_words.words_url, "words-next", True, {})
    assert found == [2, 0], "the new one has no April yet"
