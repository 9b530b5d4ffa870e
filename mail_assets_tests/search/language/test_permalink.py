"""A permalink gives the request that it was made from; a request has a description in words."""

import contextlib
import datetime as dt
import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mail_assets.search.language.fields import write_field
from mail_assets.search.language.permalink import build_permalink, describe_request
from mail_assets.search.language.request import GROUPS, MODES, SORTS, Request, RequestError
from mail_assets.search.language.syntax import parse_request
from mail_assets_tests.sample_corpus import Search

TODAY = dt.date(2024, 3, 31)


def asked(request: Request) -> tuple[Any, ...]:
    read = parse_request(request, TODAY)
    options = ("mode", "group", "sort", "limit", "offset", "min_score")
    return (
        read.text,
        {*read.clauses},
        read.message_ids,
        [str(getattr(read.request, name)) for name in options],
    )


def check(request: Request) -> None:
    link = build_permalink(parse_request(request, TODAY))
    tomorrow = TODAY + dt.timedelta(1)
    again = parse_request(Request(link), tomorrow)
    assert asked(Request(link)) == asked(request), (request, link)
    assert build_permalink(again) == link


SIGNS = st.sampled_from(
    ['"', '""', "'", "\\", "\\\\", ":", "-", "--", "(", ")", "*", "or", "OR", " ", "\t", "\n",
     "\u00a0", "\u3000", "\u200b", "\u202e", "é", "ж", "🦆", "<", ">", "@", "/", "=", ",", "&", "|",
     "a", "B", "9", "_", ".", "from:", "list:", "after:", "2y", "mode:", "hybrid", "x y", "%", "$1",
     "NOT", "AND", "“", "”", "„", "«", "»", "—", "\u2212", "\uff0d", "\uff1a", "ｆｒｏｍ", "ＯＲ",
     "\u00ad", "\ufeff", "[", "]", "{", "+", "#", "~", "subject:", "id:"]
)  # fmt: skip
TEXT = st.lists(SIGNS | st.text(max_size=3), max_size=8).map("".join)
TERMS = st.sampled_from(
    ['"a b"', "-bad", '-"a b"', "leas*", "-leas*", "from:a", 'from:"a ""b"', "-from:a", "or", "OR",
     "list:x", "-list:x", "has:patch", "-is:reply", "after:2y", "before:2024", "date:2020..2023",
     "(", ")", "-(", "x", "\\-y", "\\or", "list\\:x", "sort:date", "limit:7", "score:1e-05",
     'subject:"\t"', "thread:<a@b>", "month:2024-03", "http://a.org/b", "c:\\new", "file:a.c",
     "id:a@b", "f(x", "f(", "(y(", "'s", '<"a"@b>', "<a(@b>", "<x@y)>", "NOT", "AND", "NOT a",
     "a AND", "AND NOT", "-Wall", "-t", "--x", "-7.5", "-/usr", "->x", "9.6*", ".pg*", "—x",
     "\u2212a", "“a b”", "„a b“", "subject:[a b]", "subject:-x", "subject:(a b)", "from:(a", "c#",
     "-from:(a b)", "id:abc", "id:<a b>", "subject:'a b'", "sort:oldest", "sort:newest", "From:a",
     "from: a", "\\NOT", "\\AND", "IF NOT", "NOT NULL", "file:*.c", "ｆｒｏｍ:a", "-NOT", "-or",
     "x\u00ady", "--x.9*"]
)  # fmt: skip
FIELDS = st.builds(
    write_field, st.sampled_from(["from", "to", "subject", "file", "thread", "id"]), TEXT
)
QUERY = st.lists(TERMS | TEXT | FIELDS, max_size=9).map(" ".join)
DAY = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
NAME = TEXT.filter(str.strip)


@given(
    st.fixed_dictionaries(
        {"query": QUERY},
        optional={
            "mode": st.sampled_from(MODES),
            "group": st.sampled_from(GROUPS),
            "sort": st.sampled_from(SORTS),
            "limit": st.integers(1, 100),
            "offset": st.integers(0, 500),
            "min_score": st.floats(allow_nan=False, allow_infinity=False),
            "lists": st.lists(NAME, max_size=3).map(tuple),
            "sender": TEXT,
            "without": st.lists(NAME, max_size=2).map(tuple),
            "after": DAY,
            "before": DAY,
        },
    )
)
@example({"query": '(x or <"a"@b>)'})
@example({"query": '<"a"@b> AND NOT'})
@settings(max_examples=200)
def test_permalink_asks_for_the_same_again(fields: dict[str, Any]) -> None:
    try:
        request = Request(**fields)
        parse_request(request, TODAY)
    except RequestError:
        return
    check(request)


def test_permalinks_of_long_random_queries_ask_for_the_same() -> None:
    chance = random.Random("permalinks")
    pieces = ['"', "(", ")", "-", "or", "from:", "list:a", "-from:b", "x", "y z", "\\", ":", "*"]
    pieces += ['"two words"', "leas*", "after:10d", '-"no"', "has:patch", "-(", "to:", "f(", "é"]
    pieces += [
        "NOT",
        "AND",
        "9.6*",
        "-Wall",
        "->",
        "subject:(",
        "subject:[a b]",
        "“",
        "”",
        "—",
        "：",
    ]
    pieces += ["-7", "-.x", "id:", "from:", "'", "[", "]", "<", ">", "IF NOT", "ＮＯＴ", "\\NOT"]
    for _ in range(2_000):
        parts = chance.choices(pieces, k=chance.randrange(1, 25))
        query = "".join(part + chance.choice([" ", " ", "", "\t"]) for part in parts)
        with contextlib.suppress(RequestError):
            parse_request(request := Request(query), TODAY)
            check(request)


@pytest.mark.parametrize(
    ("request_", "link"),
    [
        (Request("lease", sender="tom"), "from:tom lease"),
        (Request("lease", sender="Ingrid S"), 'from:"Ingrid S" lease'),
        (Request("lease", sender='a "b" c'), 'from:"a ""b"" c" lease'),
        (Request("lease", lists=("a", "b")), "(list:a OR list:b) lease"),
        (Request("list:c", lists=("a",)), "(list:a) (list:c)"),
        (Request("after:2y x"), "after:2022-03-31 x"),
        (Request("x", without=("a@b",)), "-id:a@b x"),
        (Request("x", sort="date", limit=5), "sort:date limit:5 x"),
        (Request(r"\from:tom"), r"\from:tom"),
        (Request("x has:attachments"), "kind:attachment x"),
        (Request('lock -windows -"two words"'), 'lock -windows -"two words"'),
        (Request("[PATCH -next] x"), r"[PATCH \-next] x"),
        (Request("[PATCH NOT next x] y"), '[PATCH -"next" x] y'),
        (Request("lease list:a after:2024"), "after:2024-01-01 list:a lease"),
        (Request("list:a lease", lists=("a",)), "list:a lease"),
        (Request("is:reply -list:b (list:c or list:d)"), "kind:reply -list:b (list:c OR list:d)"),
    ],
)
def test_permalink_is_what_a_person_would_type(request_: Request, link: str) -> None:
    assert build_permalink(parse_request(request_, TODAY)) == link


@pytest.mark.parametrize(("query", "said"), [
    ("lease renew", "words: lease renew · mode: hybrid"),
    ('lease leas* "could not open" -toast from:tom OR from:ingrid after:2y',
     'words: lease · words that begin with leas · phrase "could not open" · not: "toast" · '
     "(from: tom or from: ingrid) · after 2022-03-31 · mode: hybrid"),
    ("lease renew sort:date", "every word of: lease renew · newest first"),
    ("-from:tom has:patch", "not: from: tom · kind: patch · newest first"),
    ("date:2023..2024", "date: 2023-01-01 to before 2025-01-01 · newest first"),
    ("date:2023-2024", "date: 2023-01-01 to before 2025-01-01 · newest first"),
    ("date:2023/02", "date: 2023-02-01 to before 2023-03-01 · newest first"),
    ("date:2023..", "date: 2023-01-01 to the newest · newest first"),
    ("date:..2023", "date: before 2024-01-01 · newest first"),
    ("-(from:tom has:patch)", "not: (from: tom and kind: patch) · newest first"),
    ("mode:0644 x", "words: mode:0644 x · mode: hybrid"),
    ("<a@b.org>", "the message a@b.org, if there is one · words: <a@b.org> · mode: hybrid"),
    ("x mode:semantic score:0.5", "words: x · mode: semantic · score: 0.5"),
])  # fmt: skip
def test_query_is_described_in_words(query: str, said: str) -> None:
    assert describe_request(parse_request(Request(query), dt.date(2024, 3, 31))) == said


def test_explanation_begins_with_the_query_as_understood(search: Search) -> None:
    explain = search("lease -worker", explain=True).explain
    assert explain is not None
    assert next(iter(explain.items())) == ("query", 'words: lease · not: "worker" · mode: hybrid')
