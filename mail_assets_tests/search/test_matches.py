"""Outdated matches are left out; hits show the copy and the text that match."""

import datetime as dt

import psycopg
import pytest

from mail_assets.search.language.request import MODES, Request
from mail_assets.search.searcher import Searcher
from mail_assets.vectors.index import Match
from mail_assets.words.index import WordIndex
from mail_assets_tests.sample_corpus import QUERY, Search, ids
from mail_assets_tests.search.fixed_indexes import always, asking

LANGUAGES = dict.fromkeys(("harbor-dev", "harbor-users"), "english")


def test_vector_whose_chunk_is_gone_is_left_out(
    search: Search, connection: psycopg.Connection, words: WordIndex
) -> None:
    real = search(QUERY, mode="semantic", limit=3)
    stale, kept = real.hits[0].chunks[0], real.hits[1].chunks[0]
    matches = [Match(stale.key, 0.1, {}), Match("0" * 32 + "#0", 0.2, {}), Match(kept.key, 0.3, {})]
    searcher = Searcher(connection, asking(words), always(*matches), LANGUAGES)
    with connection.transaction(force_rollback=True):
        connection.execute("delete from chunks where key = %s", [stale.key])
        found = searcher.search(Request(QUERY, mode="semantic"))
    assert ids(found) == [real.hits[1].message_id]
    assert found.hits[0].score == 0.7


def test_vector_of_a_changed_message_is_left_out(
    search: Search, connection: psycopg.Connection, words: WordIndex
) -> None:
    real = search(QUERY, mode="semantic", limit=1).hits[0]
    vectors = always(Match(real.chunks[0].key, 0.1, {}))
    searcher = Searcher(connection, asking(words), vectors, LANGUAGES)
    request = Request(QUERY, mode="semantic", before=dt.date(2024, 5, 1))
    assert ids(searcher.search(request)) == [real.message_id]
    for change in ("update messages set sent_at = '2024-06-01'", "delete from messages"):
        with connection.transaction(force_rollback=True):
            connection.execute(f"{change} where message_id = %s", [real.message_id])
            assert searcher.search(request).hits == ()


def cross_posts(connection: psycopg.Connection) -> list[tuple[str, str]]:
    return connection.execute(
        "select message_id, min(subject) from messages where variant = 0"
        " group by 1 having count(distinct list) > 1 order by 1"
    ).fetchall()


ANNOUNCED = ("harbor-dev", "harbor-users")


@pytest.mark.parametrize("mode", MODES)
def test_cross_post_is_one_hit_that_names_all_its_lists(
    search: Search, connection: psycopg.Connection, mode: str
) -> None:
    posts = cross_posts(connection)
    assert len(posts) == 2
    for message_id, subject in posts:
        hits = search(subject, mode=mode, limit=20).hits
        (hit,) = [hit for hit in hits if hit.message_id == message_id]
        assert hit.lists == ANNOUNCED


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ANNOUNCED)
def test_list_filter_shows_the_copy_of_that_list(
    search: Search, connection: psycopg.Connection, mode: str, name: str
) -> None:
    for message_id, subject in cross_posts(connection):
        hits = search(subject, mode=mode, limit=20, lists=(name,)).hits
        (hit,) = [hit for hit in hits if hit.message_id == message_id]
        assert hit.lists == ANNOUNCED
        keys = [chunk.key for chunk in hit.chunks]
        rows = connection.execute("select distinct list from chunks where key = any(%s)", [keys])
        assert rows.fetchall() == [(name,)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("query", "subject", "day"), [("ballenas", "Primera", 3), ("tortugas", "Segunda", 20)]
)
def test_matching_content_is_shown_of_two_under_an_id(
    search: Search, mode: str, query: str, subject: str, day: int
) -> None:
    hit = search(query, mode=mode, limit=1).hits[0]
    assert (hit.message_id, hit.subject) == ("twice@example.es", subject)
    assert hit.sent_at.startswith(f"2024-03-{day:02}")
    assert query in hit.chunks[0].text


@pytest.mark.parametrize("mode", MODES)
def test_date_filter_checks_the_content_that_is_shown(search: Search, mode: str) -> None:
    found = search("texto", mode=mode, lists=("harbor-es",), after=dt.date(2024, 3, 10))
    assert [(hit.message_id, hit.subject) for hit in found.hits] == [
        ("twice@example.es", "Segunda")
    ]
