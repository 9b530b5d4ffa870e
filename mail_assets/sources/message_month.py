"""Decide in which month a message is filed, where a source keeps single messages.

The rule is one for all such sources, and it is the parser's own (`decide_sent_at`):

1. the month, in UTC, of the Date field, where the Received fields do not contradict it;
2. else that of the Received fields;
3. else the time at which the message arrived, as its source knows it: the committer's time of a
   commit, the delivery time in the name of a Maildir file, the From_ line of an mbox, the time of
   change of a file;
4. else 1970-01, which lists.toml leaves out and `backfill` names.

A date before 1971 is a clock at zero, and one more than a day ahead of the clock is wrong: the
next of these is taken.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain

from mail_assets.mail.message.dates import decide_sent_at, parse_date
from mail_assets.mail.message.headers import (
    Headers,
    decode_fields,
    decode_value,
    parse_header_block,
)
from mail_assets.sources.mboxrd import strip_envelope

RULE = "1"  #: raise it when messages would be filed otherwise
NO_DATE = "1970-01"

_FIRST = datetime(1971, 1, 1, tzinfo=UTC)
_AHEAD = timedelta(days=1)


def month_of_message(raw: bytes, arrived: datetime | None) -> str:
    """Return the month of a message, "YYYY-MM"; `arrived` is None where nobody knows."""
    raw = strip_envelope(raw)
    headers, _, _ = parse_header_block(raw, 0, len(raw))
    latest = datetime.now(UTC) + _AHEAD
    dates = [text for text in decode_fields(headers, "date") if _is_possible(text, latest)]

    def received() -> Iterator[str]:
        return (text for text in _received(headers) if _is_possible(text, latest))

    # the parser knows the month of the archive, which is not known yet: ask with each candidate
    for text in chain(dates[:1], received()):
        candidate = parse_date(text)
        if candidate is None:
            continue
        sent = decide_sent_at(dates, received(), "", f"{candidate.at:%Y-%m}")
        if sent.source != "archive_month":
            return f"{sent.at:%Y-%m}"
    if arrived and _FIRST <= arrived <= latest:
        return f"{arrived:%Y-%m}"
    return NO_DATE


def _received(headers: Headers) -> Iterator[str]:
    # the date is behind the last semicolon (RFC 5322 section 3.6.7)
    for hop in headers.get("received", ()):
        yield decode_value(hop[hop.rfind(b";") + 1 :])


def _is_possible(text: str, latest: datetime) -> bool:
    found = parse_date(text)
    return found is not None and _FIRST <= found.at <= latest
