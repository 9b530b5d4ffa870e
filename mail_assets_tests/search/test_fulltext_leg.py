"""The full-text leg reads the indexes of PostgreSQL, and no more messages than its limit."""

from typing import Any

import psycopg
import pytest

from mail_assets.postgres.cluster import Cluster
from mail_assets.postgres.database import Database
from mail_assets.postgres.statements import statement
from mail_assets.search import fulltext_leg
from mail_assets.search.filters import compile_filters
from mail_assets.search.fulltext_leg import rank_fulltext
from mail_assets.search.query import read_query
from mail_assets.search.request import Request
from mail_assets.search.syntax import parse_request
from mail_assets_tests.conftest import new_database
from mail_assets_tests.sample_corpus import Corpus

SYNTHETIC = 20_000


#: So many messages that share a word, one of 100 words and one of 5,000.
MESSAGES = """
insert into messages
select 'dev', '2024-03', i || '@example.org', 0, '', '',
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
        limits = compile_filters(connection, (), known)
        assert limits is not None
        seen = Statements(connection)
        query = read_query(connection, parse_request(Request("word7 rare7 common")), known, ["dev"])
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
        limits = compile_filters(connection, (), known)
        assert limits is not None
        for text, most in (("common", 50), ("common word1 rare1", 10), ("rare1 rare2 rare3", 3)):
            query = read_query(connection, parse_request(Request(text)), known, ["dev"])
            found = rank_fulltext(connection, query, limits)
            assert len(found.candidates) == most
        common = read_query(connection, parse_request(Request("common")), known, ["dev"])
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
