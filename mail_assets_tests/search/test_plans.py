"""What search reads: a query that few messages meet does not read all of them."""

from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest

from mail_assets.postgres.cluster import Cluster
from mail_assets.search.filters import compile_filters
from mail_assets.search.open import prepare_connection
from mail_assets.search.query import read_query
from mail_assets.search.request import Request
from mail_assets.search.syntax import parse_request
from mail_assets_tests.conftest import drop_database, new_database

LANGUAGES = {"harbor": "english"}
COUNT = 20_000

#: Each field holds the number of the message, so that a part of it is rare.
MESSAGES: LiteralString = """
insert into messages (list, month, message_id, variant, content_hash, row_hash, sent_at,
       date_source, date_raw, subject, subject_base, from_name, from_email, reply_to, recipients,
       cc, in_reply_to, refs, list_id, body_kind, body_text, segments, attachments, identifiers,
       flags, search)
select 'harbor', '2024-03', n || '@example.org', 0, '', '',
       timestamptz '2024-03-04' + n * interval '1 minute',
       'date', '', 'Lease 50%%_of ' || n || 'x', '', 'Ann', 'sender-' || n || '@example.org', '{}',
       array['dev-' || n || '@example.org'],
       '{}', '{}', '{}', '', 'plain', '', '[]',
       jsonb_build_array(jsonb_build_object('name', 'fix-' || n || '.patch')), '{}',
       '{}', ''
  from generate_series(1, %s) n"""


@pytest.fixture(scope="module")
def many(cluster: Cluster, mail_template: str) -> Iterator[psycopg.Connection]:
    """A connection as search has it, to many small messages."""
    dsn = new_database(cluster, mail_template)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(MESSAGES, [COUNT])
        connection.execute("analyze messages")
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
    filters = filters.require_words(read_query(many, parsed, LANGUAGES, filters.lists).by_language)
    parameters = {**filters.parameters, "most": 100}
    rows = many.execute(filters.statement("passing"), parameters).fetchall()
    assert sorted(message_id for (message_id,) in rows) == found
    explained = many.execute(f"explain {filters.statement('passing')}", parameters).fetchall()
    plan = "\n".join(line for (line,) in explained)
    if found:
        assert "Seq Scan on messages" not in plan, plan
