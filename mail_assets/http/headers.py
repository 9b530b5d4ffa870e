"""Header fields of HTTP: a file's version, the conditions of a request, and Retry-After."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"')  # RFC 9110, 8.8.3, without its obsolete bytes


def file_version(headers: Mapping[str, str]) -> str:
    """Return the ETag or else Last-Modified, as sent; "" where there is neither."""
    etag = headers.get("ETag", "").strip()
    return etag if _ETAG.fullmatch(etag) else headers.get("Last-Modified", "").strip()


def conditional_headers(version: str) -> dict[str, str]:
    """Return the fields that spare the download of a file that is still of this version."""
    if _ETAG.fullmatch(version):
        return {"If-None-Match": version}
    return {} if _parse_date(version) is None else {"If-Modified-Since": version}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait: RFC 9110, 10.2.3, a number or a date."""
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    date = _parse_date(value)
    return None if date is None else max(0.0, (date - datetime.now(UTC)).total_seconds())


def _parse_date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # a year may be any number
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
