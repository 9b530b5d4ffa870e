"""Hostile text in any field and mode gives a plain result or a reason."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.search.language.fields import VALUE_FORMS, write_field
from mail_assets.search.language.request import MODES, Request, RequestError
from mail_assets.search.searcher import Searcher
from mail_assets_tests.cli.conftest import run
from mail_assets_tests.sample_corpus import ids

__all__ = ["run"]  # a fixture

MB = 1_000_000
LONG_ERROR = 400  # characters: errors do not repeat a long text

#: Texts that close a string, a cast, a placeholder or a comment, or end a statement.
SQL = [
    "'; drop table messages; --", "x' or '1'='1", "') union select passwd from pg_shadow --",
    "$$; delete from messages; $$", "%s %(query)s %% {passes} {0}", "\\'; select pg_sleep(9); --",
    "/* x */ */ --", "E'\\x27' U&\"\\0027\"",
]  # fmt: skip
#: Operators, weights, prefixes and phrases of to_tsquery and websearch_to_tsquery.
TSQUERY = ["' & ! | <->", "a:*AB & !b", "((((", "a <0> b <99999> c", "'':'' ''", "!!!! !", "\\"]
#: Patterns of LIKE, filters of the vector index, and fields of the query language.
FILTERS = [
    '{"$or": [{"list": {"$exists": true}}]}', "harbor' OR list <> '", "`list` = 'harbor-dev' --",
    "%", "_%_", "from:tom list:harbor-dev mode:fulltext", 'thread:"" "" ""',
]  # fmt: skip
#: Marks that reverse the following text, are invisible, or combine with a letter.
UNICODE = [
    "\u202eexe.tad\u202c \u2066x",
    "\u200f\u061c\u200b\ufeff",
    "e" + "\u0301" * 999,
    "\ufffe\uffff\U0010ffff",
    "\u0130\u0131\u1e9e\ufb03",  # lower() in Python and in Postgres disagree about these
    "\x01\x02\x1b[31m\x7f\x85\r\t",
]
#: Texts that could be slow to parse, or be mistaken for a patch.
STRANGE = ["x_y." * 500, '"' * 99, "(" * 999, "--- a/it's\\x\n+++ b/it's\\x", "\U0001f986"]
PLAIN = [*SQL, *TSQUERY, *FILTERS, *UNICODE, *STRANGE]
#: Texts that no field accepts.
REFUSED = ["a\0b", "\0", "\ud800", "caf\udce9", "\udfff\ud800", "x" * MB, "\u202e" * MB]

#: Messages of the corpus that have such a text in a field.
HOLDS = {("subject", SQL[0]): "hostile@example.es"}

#: Fields of the query that accept any text; the others accept only their values.
TEXT_FIELDS = ("from", "to", "subject", "file", "thread", "id")
CHOICES = sorted({*VALUE_FORMS} - {*TEXT_FIELDS})
#: Text attributes of a request.
ATTRIBUTES = ("query", "sender", "lists", "near")
#: Numbers that a database or a parser may refuse.
NUMBERS = ("9" * 40, "-1", "1e9", "1.5", "many", "\u00b2")


@pytest.fixture(scope="module", autouse=True)
def untouched(connection: psycopg.Connection) -> Iterator[None]:
    """Check that no table has changed, except the record of searches, which is written later."""
    before = rows(connection)
    yield
    assert rows(connection) == before


def rows(connection: psycopg.Connection) -> dict[str, int]:
    tables = connection.execute(
        "select tablename from pg_tables where schemaname = current_schema()"
    ).fetchall()
    return {
        name: connection.execute(f'select count(*) from "{name}"').fetchall()[0][0]
        for (name,) in tables
        if name != "served_searches"
    }


def asking(name: str, text: str, mode: str = "hybrid") -> Request:
    """Return a request with the text in a field of the query, or in an attribute."""
    if name in VALUE_FORMS:
        return Request(f"harbor {write_field(name, text)}", mode)
    fields: dict[str, Any] = {"query": "harbor", name: (text,) if name == "lists" else text}
    return Request(mode=mode, **fields)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["query", *TEXT_FIELDS])
def test_text_is_searched_and_never_obeyed(searcher: Searcher, name: str, mode: str) -> None:
    for text in PLAIN:
        request = asking(name, text, mode)
        response = searcher.search(request)
        assert response.query == request.query
        if name not in ("query", "from"):
            assert {*ids(response)} <= {HOLDS.get((name, text))}  # no other mail has it


@pytest.mark.parametrize("name", VALUE_FORMS)
def test_number_is_searched_or_refused(searcher: Searcher, name: str) -> None:
    for text in NUMBERS:
        with contextlib.suppress(RequestError):
            searcher.search(asking(name, text))


@pytest.mark.parametrize("name", [*ATTRIBUTES, *CHOICES])
def test_wrong_value_is_refused_in_one_line(searcher: Searcher, name: str) -> None:
    for text in REFUSED if name in ATTRIBUTES else PLAIN:
        with pytest.raises(RequestError) as caught:
            searcher.search(asking(name, text))
        message = str(caught.value)
        assert len(message) < LONG_ERROR
        message.encode()  # can be printed


@pytest.mark.parametrize("mode", MODES)
def test_sender_in_the_query_is_only_a_value(searcher: Searcher, mode: str) -> None:
    for text in PLAIN:
        written, given = (searcher.search(asking(one, text, mode)) for one in ("from", "sender"))
        assert ids(written) == ids(given), text


@pytest.mark.parametrize("sender", ["%", "_", "\\", "h%r", "in_rid", "\\%", "'", "' or true --"])
def test_sender_is_text_not_a_pattern(searcher: Searcher, sender: str) -> None:
    assert searcher.search(Request("harbor", sender=sender)).hits == ()


def test_injected_text_is_found_as_text(searcher: Searcher) -> None:
    for mode in ("fulltext", "hybrid"):
        response = searcher.search(Request(SQL[0], mode=mode))
        assert "hostile@example.es" in ids(response)[:3]


ANY = st.text(st.characters(), max_size=30)
HOSTILE = st.lists(st.sampled_from(PLAIN) | ANY, max_size=3).map(" ".join)


FIELDS = st.builds(write_field, st.sampled_from(TEXT_FIELDS), HOSTILE)


@given(st.lists(FIELDS, max_size=4), HOSTILE, HOSTILE)
@settings(max_examples=60)
def test_combined_texts_find_hits_or_are_refused(
    searcher: Searcher, fields: list[str], query: str, sender: str
) -> None:
    with contextlib.suppress(RequestError):
        asked = Request(" ".join([*fields, query]), "fulltext", limit=3, sender=sender)
        response = searcher.search(asked)
        json.dumps(response.as_json()).encode()
        assert ids(searcher.search(Request(response.permalink))) == ids(response)


@pytest.mark.parametrize("option", ["", "--sender", "--list", "--mode", "--group", "--after"])
def test_command_line_prints_a_result_or_a_reason(run: Any, option: str) -> None:
    for text in [*PLAIN, *REFUSED[2:]]:
        arguments = [option, text, "harbor"] if option else ["--", text]
        result = run("search", "--limit", "2", *([] if option else ["--json"]), *arguments)
        assert result.exit_code in (0, 2), (text[:40], result.exception)
        assert "Traceback" not in result.output
        if result.exit_code:
            assert result.stdout == ""
            assert result.stderr.strip()


@pytest.mark.parametrize("text", [t for t in PLAIN if t.strip()], ids=range(len(PLAIN)))
def test_similar_refuses_other_text_than_an_id(run: Any, text: str) -> None:
    result = run("similar", "--", text)
    assert (result.exit_code, result.stdout) == (1, "")
