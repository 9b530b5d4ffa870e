"""What is behind an answer: stale vectors, missing indexes, query plans."""

import datetime as dt
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from mail_assets.postgres.cluster import Cluster
from mail_assets.postgres.database import Database
from mail_assets.postgres.statements import statement
from mail_assets.search import fulltext_leg
from mail_assets.search.filters import compile_filters
from mail_assets.search.fulltext_leg import rank_fulltext
from mail_assets.search.open import open_searcher
from mail_assets.search.query import read_query
from mail_assets.search.request import Request
from mail_assets.search.searcher import Searcher
from mail_assets.vectors.index import Match, MissingIndexError
from mail_assets_tests.conftest import new_database
from mail_assets_tests.sample_corpus import QUERY, Corpus, Search, ids
from mail_assets_tests.search.fixed_vectors import always


def test_a_vector_whose_chunk_is_gone_is_left_out(
    search: Search, connection: psycopg.Connection
) -> None:
    real = search(QUERY, mode="semantic", limit=3)
    stale, kept = real.hits[0].chunks[0], real.hits[1].chunks[0]
    matches = [Match(stale.key, 0.1, {}), Match("0" * 32 + "#0", 0.2, {}), Match(kept.key, 0.3, {})]
    with connection.transaction(force_rollback=True):
        connection.execute("delete from chunks where key = %s", [stale.key])
        searcher = Searcher(
            connection, always(*matches), dict.fromkeys(("harbor-dev", "harbor-users"), "english")
        )
        found = searcher.search(Request(QUERY, mode="semantic"))
    assert ids(found) == [real.hits[1].message_id]
    assert found.hits[0].score == 0.7


def test_what_a_vector_says_of_its_message_does_not_outlive_the_message(
    search: Search, connection: psycopg.Connection
) -> None:
    real = search(QUERY, mode="semantic", limit=1).hits[0]
    searcher = Searcher(
        connection,
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


def test_an_empty_database_answers_by_words_and_says_what_is_missing_for_meaning(
    cluster: Cluster, corpus: Corpus
) -> None:
    home = corpus.settings.home
    empty = replace(
        corpus.search_settings,
        database=Database(home, new_database(cluster)),
        vectors=f"lance:{home / 'no-vectors'}",
    )
    with open_searcher(empty) as searcher:
        assert searcher.search(Request("jobs", mode="fulltext")).hits == ()
        for mode in ("semantic", "hybrid"):
            with pytest.raises(MissingIndexError, match="run `mail-assets backfill`"):
                searcher.search(Request("jobs", mode=mode))


SYNTHETIC = 20_000

#: So many messages that share a word, one of 100 words and one of 5,000.
MESSAGES = """
insert into messages
select 'dev', '2024-03', i || '@example.org', 0, '', '', i, 0, 0,
       '2024-03-01'::timestamptz + i * interval '1 min', 'date', '', 's', 's', '',
       'p' || i %% 500 || '@example.org', '{}', '{}', '{}', '{}', '{}', '', 'plain',
       repeat('lorem ipsum ', 100), '[]', '[]', '{}', '{}',
       to_tsvector('english', 'common word' || i %% 100 || ' rare' || i %% 5000)
  from generate_series(1, %s) i
"""


@pytest.mark.slow
def test_full_text_reads_its_index_and_not_the_table(cluster: Cluster, corpus: Corpus) -> None:
    with Database(corpus.settings.home, new_database(cluster)).connect("test") as connection:
        connection.execute(MESSAGES, [SYNTHETIC])
        connection.execute("analyze messages")
        known = {"dev": "english"}
        limits = compile_filters(connection, Request("x"), known)
        assert limits is not None
        seen = Statements(connection)
        query = read_query(connection, "word7 rare7 common", known, ["dev"])
        ranking = rank_fulltext(seen, query, limits)  # type: ignore[arg-type]
        assert len(ranking.candidates) == 200  # what has word7 or rare7; 20,000 have common
        assert (ranking.terms[0].lexeme, ranking.terms[0].messages) == ("rare7", 4)
        assert ranking.candidates[0].score == max(c.score for c in ranking.candidates)
        plan = connection.execute("explain " + seen.texts[-1], seen.parameters[-1]).fetchall()
        assert any("messages_search" in line for (line,) in plan)
        senders = {"sender": "P7@example.org", "pattern": "%p7@example.org%", "most": 51}
        text = statement("search", "senders")
        address = connection.execute("explain analyze " + text, senders).fetchall()
        assert any("never executed" in line for (line,) in address)
        part = connection.execute("explain " + text, senders | {"sender": "7@example"}).fetchall()
        assert any("messages_sender" in line for (line,) in part)


@pytest.mark.slow
def test_words_that_are_everywhere_rank_no_more_than_the_bound(
    cluster: Cluster, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fulltext_leg, "MAX_RANKED", 50)
    with Database(corpus.settings.home, new_database(cluster)).connect("test") as connection:
        connection.execute(MESSAGES, [1_000])
        connection.execute("analyze messages")
        known = {"dev": "english"}
        limits = compile_filters(connection, Request("x"), known)
        assert limits is not None
        for text, most in (("common", 50), ("common word1 rare1", 10), ("rare1 rare2 rare3", 3)):
            query = read_query(connection, text, known, ["dev"])
            found = rank_fulltext(connection, query, limits)
            assert len(found.candidates) == most
        common = read_query(connection, "common", known, ["dev"])
        found = rank_fulltext(connection, common, limits)
        newest = {one.message_id for one in found.candidates}
        assert newest == {f"{i}@example.org" for i in range(951, 1_001)}


class Statements:
    """A connection that remembers what it was asked."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        self.texts: list[Any] = []
        self.parameters: list[Any] = []

    def execute(self, text: Any, parameters: Any) -> psycopg.Cursor[Any]:
        self.texts.append(text)
        self.parameters.append(parameters)
        return self.connection.execute(text, parameters)
