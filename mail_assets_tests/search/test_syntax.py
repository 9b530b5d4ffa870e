"""Filters written in a query, and a request as one query."""

import datetime as dt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.search.request import GROUPS, KINDS, MODES, Request, RequestError
from mail_assets.search.syntax import apply_query_filters, build_permalink
from mail_assets_tests.sample_corpus import ROOT, Search, ids


@pytest.mark.parametrize(
    ("query", "question", "fields"),
    [
        ("lease from:ingrid", "lease", {"sender": "ingrid"}),
        ('from:"Ingrid S" lease', "lease", {"sender": "Ingrid S"}),
        ("to:dev@x.org a", "a", {"receiver": "dev@x.org"}),
        ("list:a list:b c", "c", {"lists": ("a", "b")}),
        ("subject:vacuum x", "x", {"subject": "vacuum"}),
        ("x after:2024-03 y before:2024-04-02", "x y", {
            "after": dt.date(2024, 3, 1), "before": dt.date(2024, 4, 2)}),
        ("thread:<a@b> x", "x", {"thread": "<a@b>"}),
        ("month:2024-03 month:2024-04 x", "x", {"months": ("2024-03", "2024-04")}),
        ("has:patch is:reply x", "x", {"kinds": ("patch", "reply")}),
        ("has:attachment", "", {"has_attachment": True}),
        ("file:fix.patch x", "x", {"attachment": "fix.patch"}),
        ("x mode:semantic group:thread limit:3 offset:6 score:0.5", "x", {
            "mode": "semantic", "group": "thread", "limit": 3, "offset": 6, "min_score": 0.5}),
        # what is no field is text
        ("std::sort http://x.org/a b:c from: x", "std::sort http://x.org/a b:c from: x", {}),
        ("ERROR: from:", "ERROR: from:", {}),
        (r"from\:ingrid x", "from:ingrid x", {}),
        ("(from:ingrid)", "(from:ingrid)", {}),
    ],
)  # fmt: skip
def test_filters_are_read_out_of_a_query(query: str, question: str, fields: dict[str, Any]) -> None:
    assert apply_query_filters(Request(query)) == Request(question, **fields)


def test_a_field_of_the_query_goes_before_that_of_the_request() -> None:
    read = apply_query_filters(Request("x from:a", sender="b", subject="c"))
    assert (read.sender, read.subject) == ("a", "c")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("x before:yesterday", "'yesterday' is no day"),
        ("x has:fun", "kind 'fun': allowed are patch, reply, first"),
        ("x mode:fuzzy", "mode 'fuzzy'"),
        ("x limit:many", "limit 'many': must be a number"),
        ("x limit:0", "limit 0"),
        ("x score:nan", "minimum score nan"),
        ("x month:2024", "month '2024'"),
        ("x after:2024 before:2023", "nothing is after"),
    ],
)
def test_a_filter_that_says_nothing_is_refused(query: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        apply_query_filters(Request(query))


WORD = st.text("abcXYZ.@-_é", min_size=1, max_size=8)
DAY = st.dates(dt.date(1995, 1, 1), dt.date(2030, 1, 1))


@given(
    st.fixed_dictionaries(
        {"query": st.lists(WORD | st.sampled_from(["from:x", "a:b", '"x y"', "-z"])).map(" ".join)},
        optional={
            "mode": st.sampled_from(MODES),
            "group": st.sampled_from(GROUPS),
            "limit": st.integers(1, 100),
            "offset": st.integers(0, 500),
            "min_score": st.floats(0, 1),
            "lists": st.lists(WORD, max_size=3).map(tuple),
            "months": st.sampled_from([("2024-03",), ("2024-03", "2024-04")]),
            "sender": WORD | st.just("Ingrid S"),
            "receiver": WORD,
            "subject": WORD,
            "thread": WORD,
            "attachment": WORD,
            "kinds": st.lists(st.sampled_from(KINDS), unique=True).map(tuple),
            "has_attachment": st.booleans(),
            "after": DAY,
        },
    )
)
@settings(deadline=None, max_examples=200)
def test_a_permalink_asks_for_the_same_again(fields: dict[str, Any]) -> None:
    try:
        request = apply_query_filters(Request(**fields))
    except RequestError:
        return
    if request.query.strip() or request.has_filters:
        link = build_permalink(request)
        assert apply_query_filters(Request(link)) == apply_query_filters(
            Request(build_permalink(Request(link)))
        )
        again = apply_query_filters(Request(link))
        assert again.query.split() == request.query.split()
        assert {**vars(again), "query": ""} == {**vars(request), "query": ""}


def test_filters_in_a_query_reach_the_search(search: Search) -> None:
    one = search("lease from:ingrid list:harbor-users is:reply after:2024-03")
    same = search(
        "lease", sender="ingrid", lists=("harbor-users",), kinds=("reply",),
        after=dt.date(2024, 3, 1),
    )  # fmt: skip
    assert ids(one) == ids(same) != []
    assert ids(search(one.permalink)) == ids(one)


@pytest.mark.parametrize(
    "query", [ROOT, f"<{ROOT}>", f" mid:{ROOT} ", f"https://lists.example.org/harbor-users/{ROOT}/"]
)
def test_a_pasted_message_id_finds_that_message(search: Search, query: str) -> None:
    response = search(query)
    assert ids(response) == [ROOT]
    assert response.hits[0].chunks


def test_filters_alone_find_the_newest(search: Search) -> None:
    hits = search("list:harbor-dev", limit=5).hits
    times = [hit.sent_at for hit in hits]
    assert len(hits) == 5
    assert times == sorted(times, reverse=True)
    assert all("harbor-dev" in hit.lists for hit in hits)
    later = search("list:harbor-dev", limit=2, offset=3).hits
    assert [hit.message_id for hit in later] == [hit.message_id for hit in hits[3:]]
