"""An index of another version is filled beside the live one, and follows it when it is complete."""

import pytest

from mail_assets.indexes.live import (
    LifecycleError,
    describe_indexes,
    follow_version,
    promote_words,
    retire_index,
)
from mail_assets.indexes.words import MailWords, open_mail_words, open_words_bucket
from mail_assets.month import ListMonth
from mail_assets.search.language.request import Request
from mail_assets.search.open import SearchSettings, open_searcher
from mail_assets.steps.write_words import write_words
from mail_assets.tables.indexes import live_index
from mail_assets_tests.world import APRIL, HARBOR, MARCH, World, mail


@pytest.fixture
def filled(world: World) -> World:
    """A world whose live index of words has two months."""
    for month in (MARCH, APRIL):
        world.archive(month, mail("a"), mail("b"))
        world.chain(month, last="words")
    return world


def newer(world: World) -> MailWords:
    return open_mail_words(world.words_url, "words-next")


def fill(world: World, month: str) -> None:
    with world.workspace() as workspace:
        write_words(workspace, ListMonth(HARBOR, month), newer(world))


def live(world: World) -> str:
    with world.connect() as connection:
        found = live_index(connection, world.words_url)
    assert found
    return found.name


def test_it_is_live_when_every_month_is_in_it_and_not_before(filled: World) -> None:
    old = filled.mail_words.name
    with filled.connect() as connection:
        for month in (MARCH, APRIL):
            assert not follow_version(connection, newer(filled))
            with pytest.raises(LifecycleError, match="index words-next lacks messages"):
                promote_words(connection, newer(filled))
            fill(filled, month)
            assert live(filled) == old
        assert follow_version(connection, newer(filled))
        assert not follow_version(connection, newer(filled)), "it is live already"
    assert live(filled) == "words-next"
    assert filled.rows("promotions", "name, replaced, forced") == [("words-next", old, False)]


def test_an_incomplete_one_is_live_by_force(filled: World) -> None:
    fill(filled, MARCH)
    with filled.connect() as connection:
        promote_words(connection, newer(filled), force=True)
    assert live(filled) == "words-next"
    assert filled.rows("promotions", "forced") == [(True,)]


def test_the_old_one_is_listed_and_retired(filled: World) -> None:
    for month in (MARCH, APRIL):
        fill(filled, month)
    old, bucket = filled.mail_words.name, open_words_bucket(filled.words_url)
    with filled.connect() as connection:
        with pytest.raises(LifecycleError, match=f"index {old} is live"):
            retire_index(connection, bucket, old)
        follow_version(connection, newer(filled))
        listed = [
            (one["name"], one["live"], one["written"])
            for one in describe_indexes(connection, bucket)
        ]
        assert listed == [(old, False, 4), ("words-next", True, 4)]
        retire_index(connection, bucket, old)
        assert [one["name"] for one in describe_indexes(connection, bucket)] == ["words-next"]
    assert {name for (name,) in filled.rows("words", "index_name")} == {
        newer(filled).manifest.index_name
    }


def test_search_asks_the_live_one(filled: World) -> None:
    settings = filled.settings()
    asked = SearchSettings(
        settings.database,
        settings.vectors,
        settings.words,
        settings.encoder,
        settings.precision,
        settings.model_cache,
        settings.languages,
    )
    fill(filled, MARCH)
    found = []
    with filled.connect() as connection:
        for _ in range(2):
            with open_searcher(asked) as searcher:
                response = searcher.search(Request(f"stands month:{APRIL}", mode="fulltext"))
            found.append(len(response.hits))
            promote_words(connection, newer(filled), force=True)
    assert found == [2, 0], "the new one has no April yet"
