"""How a query was understood is said in plain words."""

import datetime as dt

import pytest

from mail_assets.search.language.permalink import describe_request
from mail_assets.search.language.request import Request
from mail_assets.search.language.syntax import parse_request
from mail_assets_tests.sample_corpus import Search


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("lease renew", "words: lease renew · mode: hybrid"),
        (
            'lease leas* "could not open" -toast from:tom OR from:ingrid after:2y',
            'words: lease · words that begin with leas · phrase "could not open" · not: "toast" · '
            "(from: tom or from: ingrid) · after 2022-03-31 · mode: hybrid",
        ),
        ("lease renew sort:date", "every word of: lease renew · newest first"),
        ("-from:tom has:patch", "not: from: tom · kind: patch · newest first"),
        ("date:2023..2024", "date: 2023-01-01 to before 2025-01-01 · newest first"),
        ("-(from:tom has:patch)", "not: (from: tom and kind: patch) · newest first"),
        ("mode:0644 x", "words: mode:0644 x · mode: hybrid"),
        (
            "<a@b.org>",
            "the message a@b.org, if there is one · words: <a@b.org> · mode: hybrid",
        ),
        ("x mode:semantic score:0.5", "words: x · mode: semantic · score: 0.5"),
    ],
)
def test_a_query_is_read_aloud(query: str, said: str) -> None:
    assert describe_request(parse_request(Request(query), dt.date(2024, 3, 31))) == said


def test_the_explanation_begins_with_how_the_query_was_understood(search: Search) -> None:
    explain = search("lease -worker", explain=True).explain
    assert explain is not None
    assert next(iter(explain.items())) == ("query", 'words: lease · not: "worker" · mode: hybrid')
