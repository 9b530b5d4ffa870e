"""The semantic leg leaves out vectors that are older than their message."""

import datetime as dt

import psycopg

from mail_assets.search.language.request import Request
from mail_assets.search.searcher import Searcher
from mail_assets.vectors.index import Match
from mail_assets.words.index import WordIndex
from mail_assets_tests.sample_corpus import QUERY, Search, ids
from mail_assets_tests.search.fixed_vectors import always, asking


def test_vector_whose_chunk_is_gone_is_left_out(
    search: Search, connection: psycopg.Connection, words: WordIndex
) -> None:
    real = search(QUERY, mode="semantic", limit=3)
    stale, kept = real.hits[0].chunks[0], real.hits[1].chunks[0]
    matches = [Match(stale.key, 0.1, {}), Match("0" * 32 + "#0", 0.2, {}), Match(kept.key, 0.3, {})]
    with connection.transaction(force_rollback=True):
        connection.execute("delete from chunks where key = %s", [stale.key])
        searcher = Searcher(
            connection,
            asking(words),
            always(*matches),
            dict.fromkeys(("harbor-dev", "harbor-users"), "english"),
        )
        found = searcher.search(Request(QUERY, mode="semantic"))
    assert ids(found) == [real.hits[1].message_id]
    assert found.hits[0].score == 0.7


def test_vector_of_a_changed_message_is_left_out(
    search: Search, connection: psycopg.Connection, words: WordIndex
) -> None:
    real = search(QUERY, mode="semantic", limit=1).hits[0]
    searcher = Searcher(
        connection,
        asking(words),
        always(Match(real.chunks[0].key, 0.1, {})),
        dict.fromkeys(("harbor-dev", "harbor-users"), "english"),
    )
    request = Request(QUERY, mode="semantic", before=dt.date(2024, 5, 1))
    assert ids(searcher.search(request)) == [real.message_id]
    with connection.transaction(force_rollback=True):
        connection.execute(
            "update messages set sent_at = '2024-06-01' where message_id = %s", [real.message_id]
        )
        assert searcher.search(request).hits == ()
    with connection.transaction(force_rollback=True):
        connection.execute("delete from messages where message_id = %s", [real.message_id])
        assert searcher.search(request).hits == ()
