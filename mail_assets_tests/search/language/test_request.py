"""A request is checked when it is made."""

import contextlib
import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.search.language.fields import parse_day
from mail_assets.search.language.request import (
    MAX_LIMIT,
    MAX_QUERY,
    MAX_TYPED,
    Request,
    RequestError,
)


@pytest.mark.parametrize(("fields", "reason"), [
    ({"query": ""}, "empty"),
    ({"query": " \n\t\u3000"}, "empty"),
    ({"query": "a\0b"}, "query contains a NUL"),
    ({"query": "a\udcff"}, "query 'a\\\\udcff' is not valid Unicode"),
    ({"query": "x" * 100_001}, f"100001 characters, at most {MAX_TYPED}"),
    ({"query": "x", "sender": "a\0b"}, "sender contains a NUL"),
    ({"query": "x", "sender": "\ud800"}, "sender .* not valid Unicode"),
    ({"query": "x", "mode": "fuzzy"}, "'fuzzy': allowed are hybrid, semantic, fulltext"),
    ({"query": "x", "limit": 0}, "limit 0"),
    ({"query": "x", "limit": MAX_LIMIT + 1}, "limit 101"),
    ({"query": "x", "offset": -1}, "offset -1: allowed are 0 to 500"),
    ({"query": "x", "offset": 501}, "offset 501"),
    ({"query": "x", "group": "list"}, "group 'list': allowed are conversation, message"),
    ({"query": "x", "min_score": float("nan")}, "minimum score nan"),
    ({"query": "x", "near": "a\0"}, "near contains a NUL"),
    ({"query": "x", "sender": "y" * 60_000}, "the sender has 60000 characters"),
    ({"query": "x", "after": dt.date(2024, 3, 1), "before": dt.date(2024, 3, 1)},
     "nothing is after"),
])  # fmt: skip
def test_request_is_refused_with_its_reason(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(RequestError, match=reason):
        Request(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("query", ["x" * MAX_QUERY, "🦆", "'", "-", "%", "\\", "\u202e", "\ufffd"])
def test_any_other_text_is_a_query(query: str) -> None:
    assert Request(query).query == query


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024", dt.date(2024, 1, 1)),
        ("2024-05", dt.date(2024, 5, 1)),
        (" 2024-05-17 ", dt.date(2024, 5, 17)),
        ("2024-02-29", dt.date(2024, 2, 29)),
        ("20240517", dt.date(2024, 5, 17)),
        ("202405", dt.date(2024, 5, 1)),
        ("yesterday", dt.date(2024, 2, 29)),
        ("today", dt.date(2024, 3, 1)),
        ("0001", dt.date(1, 1, 1)),
    ],
)
def test_day_is_a_year_a_month_or_a_day(text: str, day: dt.date) -> None:
    assert parse_day(text, today=dt.date(2024, 3, 1)) == day


@pytest.mark.parametrize(
    "text",
    ["", "0000", "24", "2024-5", "2024-13", "2023-02-29", "2024-01-01T00", "tomorrow", "٢٠٢٤"],
)
def test_other_text_is_refused_as_a_day(text: str) -> None:
    with pytest.raises(RequestError, match="is no day: write YYYY"):
        parse_day(text)


@given(st.text(max_size=30) | st.from_regex(r"\d{4}(-\d\d){0,2}", fullmatch=True))
def test_any_text_is_read_as_a_day_or_refused(text: str) -> None:
    with contextlib.suppress(RequestError):
        assert parse_day(text).isoformat().startswith(text.strip()[:4])
