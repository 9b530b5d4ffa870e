"""A query that few messages match does not read all messages."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, LiteralString

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mail_assets.month import ListMonth
from mail_assets.postgres.embedded import Cluster
from mail_assets.search import by_date, facets, filters, look_up
from mail_assets.search.filters import compile_filters
from mail_assets.search.language.request import GROUPS, MODES, Request, RequestError
from mail_assets.search.language.syntax import parse_request
from mail_assets.search.open import prepare_connection
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher
from mail_assets.tables.lists import EVERY_LIST, show_lists
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Match
from mail_assets.words.index import WordMatch, WordQuery
from mail_assets_tests.databases import drop_database, new_database
from mail_assets_tests.postgres.test_statement_costs import count_rows
from mail_assets_tests.search.fixed_indexes import always, asking, read_query

LANGUAGES = {"harbor": "english", "quay": "english"}
KEY = f"{17:032}#0"
COUNT, QUAY = 20_000, 30
#: Messages that a statement may read in addition to those that pass; limits for the small corpus.
MOST = 3_000
WALKED, FOUND, MANY = 1_000, 500, 50

#: Each field contains the number of the message, so that a part of it is rare. A word of its
#: subject is also rare: otherwise reading messages in order would reach a limit fastest.
MESSAGES: LiteralString = """
insert into messages (list, month, message_id, variant, content_hash, row_hash, sent_at,
       date_source, date_raw, subject, subject_base, from_name, from_email, reply_to, recipients,
       cc, in_reply_to, refs, list_id, body_kind, body_text, segments, attachments, identifiers,
       flags, search)
select case when n %% (%s / %s) = 0 then 'quay' else 'harbor' end, '2024-03',
       n || '@example.org', 0, '', '',
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


#: The server sends the plan of each statement as a notice, with the rows that it read.
SHOW_PLANS: LiteralString = """
load 'auto_explain';
set auto_explain.log_min_duration = 0; set auto_explain.log_level = 'notice';
set auto_explain.log_analyze = on; set auto_explain.log_timing = off;
set auto_explain.log_format = 'json';
"""


@pytest.fixture(scope="module")
def many(cluster: Cluster, mail_template: str) -> Iterator[psycopg.Connection]:
    """A connection of search, to a database of many small messages."""
    dsn = new_database(cluster, mail_template)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(MESSAGES, [COUNT, QUAY, COUNT])
        connection.execute(CHUNKS)
        connection.execute(THREADS)
        connection.execute("analyze")
        connection.execute(SHOW_PLANS)
        prepare_connection(connection)
        show_lists(connection, EVERY_LIST)
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
def test_part_of_a_field_is_found_by_an_index(
    many: psycopg.Connection, query: str, found: list[str]
) -> None:
    parsed = parse_request(Request(query))
    asked = compile_filters(many, parsed.clauses, LANGUAGES)
    assert asked is not None
    asked = asked.require_words(read_query(many, parsed, LANGUAGES, asked.lists)).find_by_index()
    limits = {"most": 100, "spread": 10, "least": 10, "many": COUNT}
    text, parameters = asked.statement("passing"), {**asked.parameters, **limits}
    ((ids, _, _),) = many.execute(text, parameters).fetchall()
    assert sorted(ids) == found
    assert count_read(many, text, parameters)["messages"] < COUNT / 50


@pytest.mark.parametrize("languages", [LANGUAGES, {"harbor": "english", "quay": "simple"}])
@pytest.mark.parametrize("number", [12_345, 6_660])  # of either list
def test_words_are_found_by_an_index_in_lists_of_each_language(
    many: psycopg.Connection, languages: dict[str, str], number: int
) -> None:
    parsed = parse_request(Request(f'"{number}"'))
    asked = compile_filters(many, parsed.clauses, languages)
    assert asked is not None
    query = read_query(many, parsed, languages, asked.lists)
    asked = asked.require_words(query, by_index=True).find_by_index()
    limits = {"most": 100, "spread": 10, "least": 10, "many": COUNT}
    text, parameters = asked.statement("passing"), {**asked.parameters, **limits}
    ((ids, are_many, _),) = many.execute(text, parameters).fetchall()
    assert (ids, are_many) == ([f"{number}@example.org"], False)
    assert count_read(many, text, parameters)["messages"] < COUNT / 50


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("to:dev-5", None),  # 1 of 18 messages, none among the newest
        ("subject:note", None),
        ("to:dev-555", 11),
        ("file:fix-19999", 1),
    ],
)
def test_condition_of_many_messages_is_not_looked_up(
    many: psycopg.Connection, query: str, found: int | None
) -> None:
    asked = compile_filters(many, parse_request(Request(query)).clauses, LANGUAGES)
    assert asked is not None
    asked = asked.find_by_index()
    limits = {"spread": 300, "many": 300, "least": 10, "most": COUNT}
    text, parameters = asked.statement("passing"), {**asked.parameters, **limits}
    ((ids, are_many, _),) = many.execute(text, parameters).fetchall()
    assert are_many == (found is None)
    assert len(ids) == (found or 0)
    assert count_read(many, text, parameters)["messages"] <= 400


@pytest.mark.parametrize(("attachments", "names"), [
    ("[]", ""),
    ('[{"name": "Fix.Patch"}]', "fix.patch"),
    ('[{"name": "a b"}, {"name": null}, {}, {"name": "Ä\\"\\\\", "size": 1}]', 'a b\nä"\\'),
], ids=["none", "one", "several"])  # fmt: skip
def test_names_of_files_are_one_text(
    many: psycopg.Connection, attachments: str, names: str
) -> None:
    found = many.execute("select join_file_names(%s::jsonb)", [attachments]).fetchone()
    assert found == (names,)


def test_no_function_is_planned_for_each_message(many: psycopg.Connection) -> None:
    """In sessions that plan for values, PostgreSQL 18 plans functions in SQL for each message."""
    called = ["join_receivers", "join_file_names"]
    found = many.execute(
        "select proname, lanname from pg_proc join pg_language l on l.oid = prolang"
        " where proname = any(%s)",
        [called],
    ).fetchall()
    assert sorted(found) == [(name, "plpgsql") for name in sorted(called)]
    plan = many.execute("explain verbose select * from first_shown('17@example.org')").fetchall()
    assert "break_tie" not in str(plan)
    planned_again = many.execute(
        "select proname from pg_proc join pg_language l on l.oid = prolang"
        " where lanname = 'plpgsql' and provolatile = 's' and pronamespace = 'public'::regnamespace"
        " and not 'plan_cache_mode=force_generic_plan' = any(coalesce(proconfig, '{}'))"
    ).fetchall()
    assert planned_again == []


def count_read(connection: psycopg.Connection, text: Any, parameters: Any) -> Counter[str]:
    """Run a statement; return the number of rows that it read of each table, matching or not."""
    explain = f"explain (analyze, timing off, format json) {text}"
    row = connection.execute(explain, parameters).fetchone()
    found = Counter[str]()
    count_rows(row[0][0]["Plan"] if row else {}, found)
    return found


class FixedWords:
    """A word index that always finds the same messages."""

    label = "fixed words"
    ids = ("17@example.org", "18@example.org")

    def search(self, query: WordQuery, top_k: int, where: Filter | None = None) -> list[WordMatch]:
        month = ListMonth("harbor", "2024-03")
        return [WordMatch("", month, one, 0, float(bool(query.terms))) for one in self.ids]

    def list_ids(self, query: WordQuery, most: int, where: Filter | None = None) -> list[str]:
        return [*self.ids]


VALUES = st.sampled_from(
    ["a", "le", "zq", "lease", "note", "zebra", "12345", "50%_of", "ann@example.org", "sender-7"]
)
FIELDS = st.builds(
    lambda name, value: f'{name}:"{value}"',
    st.sampled_from(["from", "to", "subject", "file"]),
    VALUES,
) | st.sampled_from(
    ["list:harbor", "list:quay", "month:2024-03", "after:2024-03-05", "before:2023", "date:2024-03",
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
OPTIONS = st.sampled_from(["", "sort:date ", "sort:oldest ", "limit:100 ", "offset:40 "])


def ask(many: psycopg.Connection, request: Request) -> tuple[Response, dict[str, int]]:
    """Answer a request; return, by table, the most rows that one statement read."""
    words: Any = FixedWords()
    searcher = Searcher(many, asking(words), always(Match(KEY, 0.2, {})), LANGUAGES)
    most = Counter[str]()

    def count(notice: psycopg.errors.Diagnostic) -> None:
        nonlocal most
        text = notice.message_primary or ""
        if "plan:" in text:
            read = Counter[str]()
            count_rows(json.loads(text.partition("plan:")[2])["Plan"], read)
            most |= read

    many.add_notice_handler(count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filters, "MAX_WALKED", WALKED)
        patch.setattr(by_date, "MAX_WALKED", WALKED)
        patch.setattr(look_up, "FEW", FOUND)
        patch.setattr(look_up, "MANY", 4 * FOUND)
        patch.setattr(facets, "MANY", MANY)
        try:
            response = searcher.search(request)
        finally:
            many.remove_notice_handler(count)
    assert most
    return response, most


@given(query=QUERIES, options=OPTIONS, mode=st.sampled_from(MODES), group=st.sampled_from(GROUPS))
@example("subject:zq", "", "hybrid", "conversation")
@example("-subject:0", "", "hybrid", "conversation")
@example("-subject:0", "sort:oldest ", "hybrid", "conversation")
@example('"lease" -subject:0', "sort:oldest ", "hybrid", "conversation")
@example("subject:note -has:attachment", "", "hybrid", "conversation")
@example("subject:note subject:zq", "lease ", "hybrid", "conversation")
@example("list:quay subject:note is:reply", "", "hybrid", "conversation")
@example("(subject:zebra or thread:17@example.org)", "", "hybrid", "conversation")
@settings(max_examples=40)
def test_no_statement_of_any_query_reads_every_message(
    many: psycopg.Connection, query: str, options: str, mode: str, group: str
) -> None:
    try:
        _, read = ask(many, Request(options + query, mode=mode, group=group, facets=True))
    except RequestError:
        return
    for table in ("messages", "chunks", "threads"):
        assert read[table] <= MOST, (query, read)


@pytest.mark.parametrize(
    ("query", "hits", "is_whole"),
    [
        ("-subject:lease", 10, True),  # the page is full
        ("subject:zq", 0, False),
        ("-has:attachment", 0, False),
        ("subject:zq list:quay", 0, True),  # a small list
        ("subject:zebra", 0, True),  # found by an index
        ("subject:note before:2024-03-05", 10, True),
        ("from:sender-17@example.org", 1, True),
        ("subject:note -has:attachment", 0, False),
    ],
)
def test_condition_without_an_index_reads_the_newest(
    many: psycopg.Connection, query: str, hits: int, is_whole: bool
) -> None:
    response, _ = ask(many, Request(query))
    assert len(response.hits) == hits
    assert response.looked_back_to == (None if is_whole else "2024-03-18")


@pytest.mark.parametrize("sort", ["date", "oldest"])
def test_list_by_date_reads_the_messages_of_that_list_alone(
    many: psycopg.Connection, sort: str
) -> None:
    for query in ("list:quay", "list:quay after:2024-03-05", "list:quay -subject:zq"):
        response, read = ask(many, Request(query, sort=sort, limit=5))
        assert len(response.hits) == 5
        assert read["messages"] <= 4 * QUAY


@pytest.mark.parametrize("query", [
    "list:quay OR from:sender-17@example.org", "before:2024-03-02 OR from:sender-17@example.org",
    "month:2019-01 OR thread:17@example.org", "list:quay OR subject:zebra",
])  # fmt: skip
def test_alternatives_of_fields_are_found_by_indexes(many: psycopg.Connection, query: str) -> None:
    response, read = ask(many, Request(query, facets=True))
    assert response.looked_back_to is None
    assert response.facets is not None
    assert not response.facets.at_least
    assert len(response.hits) == min(10, response.facets.total)
    assert read["messages"] <= MOST


def test_old_messages_are_found_by_an_index(many: psycopg.Connection) -> None:
    """There are many matches, but none among the newest messages."""
    old = "update messages set subject = 'Buoy ' || subject where sent_at < '2024-03-05'"
    with many.transaction(force_rollback=True):
        changed = many.execute(old).rowcount
        assert changed > FOUND
        response, _ = ask(many, Request("subject:buoy", facets=True))
    assert len(response.hits) == 10
    assert response.looked_back_to is None
    assert response.facets is not None
    assert (response.facets.total, response.facets.at_least) == (changed, False)
