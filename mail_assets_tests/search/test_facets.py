"""Facets count the matching messages, and report if they stopped early."""

from collections import Counter
from typing import Any

import psycopg
import pytest

from mail_assets.search import facets as module
from mail_assets.search import filters, look_up
from mail_assets.search.language.request import MODES
from mail_assets_tests.sample_corpus import ROOT, Search

ROWS = """
select m.message_id, m.list, extract(year from m.sent_at at time zone 'UTC')::text,
       lower(m.from_email), m.in_reply_to <> '{}' or m.refs <> '{}',
       to_char(m.sent_at at time zone 'UTC', 'YYYY-MM')
  from messages m
"""


def count(connection: psycopg.Connection, where: str) -> dict[str, Any]:
    """Count the messages that meet a condition, in Python."""
    rows = connection.execute(f"{ROWS} where {where}").fetchall()

    def by(column: int) -> dict[Any, int]:
        return Counter(value for _, value in {(row[0], row[column]) for row in rows})

    replies = by(4)
    return {
        "total": len({row[0] for row in rows}),
        "lists": by(1),
        "years": by(2),
        "authors": by(3),
        "months": by(5),
        "kinds": {"reply": replies.get(True, 0), "first": replies.get(False, 0)},
    }


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("list:harbor-users", "m.list = 'harbor-users'"),
        ("-list:harbor-users", "m.list <> 'harbor-users'"),
        ("from:ingrid or has:attachment", "m.from_email ~ 'ingrid' or m.attachments <> '[]'"),
        ('list:harbor-dev "lease"', "m.list = 'harbor-dev' and m.search @@ 'leas'"),
        ("list:harbor-dev lease queue sort:date",
         "m.list = 'harbor-dev' and m.search @@ 'leas & queue'"),
        ("from:nobody@nowhere.example", "false"),
    ],
)  # fmt: skip
def test_facets_count_all_messages_that_meet_conditions(
    search: Search, connection: psycopg.Connection, query: str, where: str
) -> None:
    found = search(query, facets=True, limit=1).facets
    expected = count(connection, where)
    assert found is not None
    assert not found.at_least
    for name in ("total", "lists", "months", "years"):
        assert getattr(found, name) == expected[name]
    assert [*found.months] == sorted(found.months)
    counts = [*found.authors.values()]
    assert counts == sorted(counts, reverse=True)
    assert {*found.authors.items()} <= {*expected["authors"].items()}
    kinds = {kind: found.kinds.get(kind, 0) for kind in ("reply", "first")}
    assert kinds == expected["kinds"]


@pytest.mark.parametrize("mode", MODES)
def test_facets_count_the_candidates_of_a_ranked_query(search: Search, mode: str) -> None:
    response = search("lease worker", mode=mode, facets=True, limit=100)
    assert response.facets is not None
    assert response.facets.at_least
    found = {one for hit in response.hits for one in (hit.message_id, *hit.copies)}
    assert response.facets.total >= len(found) > 0
    assert response.as_json()["facets"]["total"] == response.facets.total


def test_facets_of_a_pasted_id_count_one(search: Search) -> None:
    facets = search(ROOT, facets=True).facets
    assert facets is not None
    assert (facets.total, facets.at_least) == (1, False)


@pytest.mark.parametrize("query", ["lease worker", '"lease"', "list:harbor-dev lease"])
@pytest.mark.parametrize("mode", MODES)
def test_facets_leave_out_low_scores(search: Search, query: str, mode: str) -> None:
    scores = [hit.score for hit in search(query, mode=mode, limit=100, group="message").hits]
    cut = search(query, mode=mode, min_score=scores[2], facets=True).facets
    assert cut is not None
    assert cut.total == sum(score >= scores[2] for score in scores)
    none = search(query, mode=mode, min_score=1.01, facets=True).facets
    assert none is not None
    assert none.total == 0


def test_facets_count_all_messages_with_a_phrase_of_stop_words(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_DEPTH", 2)
    facets = search('"the lease"', facets=True).facets
    found = search('"the lease" sort:date', limit=100, group="message").hits
    assert facets is not None
    assert (facets.total, facets.at_least) == (len(found), False)
    assert len(found) > 2


@pytest.mark.parametrize(
    "query", ['"the lease"', '"lease"', 'list:harbor-users OR "lease"', "lease or from:ingrid"]
)
def test_facets_count_at_least_the_hits(
    search: Search, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr(module, "MAX_DEPTH", 2)
    monkeypatch.setattr(filters, "MAX_WALKED", 1)
    monkeypatch.setattr(look_up, "MOST_COMPARED", 0)
    response = search(query, facets=True, limit=100)
    facets = response.facets
    assert facets is not None
    assert facets.at_least
    assert facets.total >= len(response.hits) > 2
    assert {*facets.lists} >= {name for hit in response.hits for name in hit.lists}


def test_facets_stop_at_a_bound(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COUNTED", 5)
    facets = search("list:harbor-users", facets=True).facets
    assert facets is not None
    assert (facets.total, facets.at_least) == (6, True)


def test_facets_are_counted_only_on_request(search: Search) -> None:
    assert search("lease").facets is None
