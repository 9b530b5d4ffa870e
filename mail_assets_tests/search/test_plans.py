"""What search reads: a query that few messages meet does not read all of them."""

from collections.abc import Iterator
from typing import Any, LiteralString

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.month import ListMonth
from mail_assets.postgres.cluster import Cluster
from mail_assets.search.filters import compile_filters
from mail_assets.search.open import prepare_connection
from mail_assets.search.query import read_query
from mail_assets.search.request import GROUPS, MODES, Request, RequestError
from mail_assets.search.searcher import Searcher
from mail_assets.search.syntax import parse_request
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Match
from mail_assets.words.document import WordMatch
from mail_assets.words.query import WordQuery
from mail_assets_tests.conftest import drop_database, new_database
from mail_assets_tests.search.fixed_vectors import always, asking

LANGUAGES = {"harbor": "english"}
KEY = f"{17:032}#0"
COUNT = 20_000

#: Each field holds the number of the message, so that a part of it is rare; a word of its subject
#: is too, or a limit would be reached soonest by reading messages as they come.
MESSAGES: LiteralString = """
insert into messages (list, month, message_id, variant, content_hash, row_hash, sent_at,
       date_source, date_raw, subject, subject_base, from_name, from_email, reply_to, recipients,
       cc, in_reply_to, refs, list_id, body_kind, body_text, segments, attachments, identifiers,
       flags, search)
select 'harbor', '2024-03', n || '@example.org', 0, '', '',
       timestamptz '2024-03-04' + n * interval '1 minute',
       'date', '', case when n %% 100 = 0 then 'Lease 50%%_of ' else 'Note ' end || n || 'x',
       '', 'Ann', 'sender-' || n || '@example.org', '{}',
       array['dev-' || n || '@example.org'],
       '{}', '{}', '{}', '', 'plain', '', '[]',
       jsonb_build_array(jsonb_build_object('name', 'fix-' || n || '.patch')), '{}',
       '{}', to_tsvector('english', 'The lease of ' || n)
  from generate_series(1, %s) n"""

CHUNKS: LiteralString = """
insert into chunks (key, list, month, message_id, variant, index, text, spans, tokens, text_hash)
select lpad(split_part(message_id, '@', 1), 32, '0') || '#0', list, month, message_id, variant, 0,
       'the lease of ' || message_id, '{0,9}', 5, ''
  from messages"""
THREADS: LiteralString = """
insert into threads (message_id, thread_id, root_id, depth, position, is_ghost)
select message_id, message_id, message_id, 0, 0, false from messages"""


@pytest.fixture(scope="module")
def many(cluster: Cluster, mail_template: str) -> Iterator[psycopg.Connection]:
    """A connection as search has it, to many small messages."""
    dsn = new_database(cluster, mail_template)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(MESSAGES, [COUNT])
        connection.execute(CHUNKS)
        connection.execute(THREADS)
        connection.execute("analyze")
        prepare_connection(connection)
        yield connection
    drop_database(cluster, dsn)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("subject:12345X", ["12345@example.org"]),
        ("subject:50%_of -subject:lease", []),
        ("subject:5__of", []),
        ("to:dev-12345@", ["12345@example.org"]),
        ("file:FIX-12345.", ["12345@example.org"]),
        ("from:sender-12345@example.org", ["12345@example.org"]),
        ("id:12345@example.org", ["12345@example.org"]),
        ("subject:12345x OR to:dev-777@", ["12345@example.org", "777@example.org"]),
    ],
)
def test_a_part_of_a_field_is_found_without_reading_every_message(
    many: psycopg.Connection, query: str, found: list[str]
) -> None:
    parsed = parse_request(Request(query))
    filters = compile_filters(many, parsed.clauses, LANGUAGES)
    assert filters is not None
    filters = filters.require_words(read_query(many, parsed, LANGUAGES, filters.lists))
    parameters = {**filters.parameters, "most": 100}
    rows = many.execute(filters.statement("passing"), parameters).fetchall()
    assert sorted(message_id for (message_id,) in rows) == found
    explained = many.execute(f"explain {filters.statement('passing')}", parameters).fetchall()
    plan = "\n".join(line for (line,) in explained)
    if found:
        assert "Seq Scan on messages" not in plan, plan


class FixedWords:
    """An index of words that always finds the same messages."""

    label = "fixed words"
    ids = ("17@example.org", "18@example.org")

    def search(self, query: WordQuery, top_k: int, where: Filter | None = None) -> list[WordMatch]:
        month = ListMonth("harbor", "2024-03")
        return [WordMatch("", month, one, 0, float(bool(query.terms))) for one in self.ids]

    def list_ids(self, query: WordQuery, most: int, where: Filter | None = None) -> list[str]:
        return [*self.ids]


VALUES = st.sampled_from(["a", "le", "lease", "12345", "50%_of", "ann@example.org", "sender-7"])
FIELDS = st.builds(
    lambda name, value: f'{name}:"{value}"',
    st.sampled_from(["from", "to", "subject", "file"]),
    VALUES,
) | st.sampled_from(
    ["list:harbor", "month:2024-03", "after:2024-03-05", "before:2023", "date:2024-03",
     "after:2y", "has:patch", "has:attachment", "is:reply", "is:first", "id:17@example.org",
     "thread:17@example.org", "thread:nobody@example.org"]
)  # fmt: skip
TEXTS = st.sampled_from(
    ["lease", "the", "renew_lease", '"lease of"', '"the of"', "leas*", '"12345"', "x", "<a@b>"]
)
TERMS = FIELDS | TEXTS
QUERIES = st.recursive(
    TERMS | TERMS.map("-{}".format),
    lambda inner: (
        st.builds("({} or {})".format, inner, inner)
        | st.builds("-({} {})".format, inner, inner)
        | st.builds("{} {}".format, inner, inner)
    ),
    max_leaves=5,
)
OPTIONS = st.sampled_from(["", "sort:date ", "limit:100 ", "offset:40 "])
#: Conditions alone are looked for from the newest message on, however far; words are not.
NEWEST = "-- The newest messages that pass the filters."


class Sent(list[tuple[Any, Any]]):
    """Statements and their parameters, as a connection is given them."""

    def listen(self, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        execute = connection.execute

        def record(query: Any, params: Any = None, **options: Any) -> Any:
            self.append((query, params))
            return execute(query, params, **options)

        monkeypatch.setattr(connection, "execute", record)


@given(query=QUERIES, options=OPTIONS, mode=st.sampled_from(MODES), group=st.sampled_from(GROUPS))
@settings(max_examples=40)
def test_no_statement_of_any_query_reads_every_message(
    many: psycopg.Connection, query: str, options: str, mode: str, group: str
) -> None:
    words: Any = FixedWords()
    searcher = Searcher(many, asking(words), always(Match(KEY, 0.2, {})), LANGUAGES)
    sent = Sent()
    with pytest.MonkeyPatch.context() as patch:
        sent.listen(many, patch)
        try:
            searcher.search(Request(options + query, mode=mode, group=group))
        except RequestError:
            return
    for statement, parameters in sent:
        if statement.startswith(NEWEST) and "m.message_id = any" not in statement:
            continue
        plan = "\n".join(
            line for (line,) in many.execute(f"explain {statement}", parameters).fetchall()
        )
        for table in ("messages", "chunks", "threads"):
            assert f"Seq Scan on {table}" not in plan, (query, statement, plan)
