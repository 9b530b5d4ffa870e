"""Versions, conditions and waits in header fields."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from mail_assets.http.requests import conditional_headers, file_version, retry_after

DATE = "Mon, 05 Jan 2026 15:18:12 GMT"


@pytest.mark.parametrize(
    ("headers", "version"),
    [
        ({"ETag": '"abc"', "Last-Modified": DATE}, '"abc"'),
        ({"ETag": 'W/"abc"'}, 'W/"abc"'),
        ({"ETag": "unquoted", "Last-Modified": DATE}, DATE),
        ({"Last-Modified": DATE}, DATE),
        ({}, ""),
    ],
)
def test_a_version_is_the_etag_or_else_the_date(headers: dict[str, str], version: str) -> None:
    assert file_version(headers) == version


@pytest.mark.parametrize(
    ("version", "conditions"),
    [
        ('"abc"', {"If-None-Match": '"abc"'}),
        (DATE, {"If-Modified-Since": DATE}),
        ("sha256:00", {}),
        ("a\r\nEvil: 1", {}),
        ("", {}),
    ],
)
def test_only_a_version_from_a_header_becomes_a_condition(
    version: str, conditions: dict[str, str]
) -> None:
    assert conditional_headers(version) == conditions


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        (DATE, 0.0),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("", None),
    ],
)
def test_a_wait_is_seconds_or_a_date_that_may_be_past(value: str, seconds: float | None) -> None:
    assert retry_after({"Retry-After": value}) == seconds


def test_a_date_to_come_is_so_many_seconds_away() -> None:
    began = datetime.now(UTC)
    later = format_datetime(began + timedelta(seconds=40), usegmt=True)
    found = retry_after({"Retry-After": later})
    took = (datetime.now(UTC) - began).total_seconds()
    assert found is not None
    assert 39 - took <= found <= 40


def test_no_header_asks_for_nothing() -> None:
    assert retry_after({}) is None
