"""Header fields of HTTP: what tells one version of a file from another, and when to come again.

What does not live here: the body (`sources.content_coding`), and acting on any of it.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"')  # RFC 9110, 8.8.3, without its obsolete bytes


def version_of(headers: Mapping[str, str]) -> str:
    """Return the ETag or else Last-Modified, as sent; "" where there is neither."""
    etag = headers.get("ETag", "").strip()
    return etag if _ETAG.fullmatch(etag) else headers.get("Last-Modified", "").strip()


def conditions(known: str) -> dict[str, str]:
    """Return the fields that spare the download where the archive is still the `known` one."""
    if _ETAG.fullmatch(known):
        return {"If-None-Match": known}
    return {} if _date(known) is None else {"If-Modified-Since": known}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait: RFC 9110, 10.2.3, a number or a date."""
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    date = _date(value)
    return None if date is None else max(0.0, (date - datetime.now(UTC)).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # a year may be any number
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
