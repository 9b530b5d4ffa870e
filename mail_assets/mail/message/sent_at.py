"""Decide when a message was sent: the first of its dates that can be believed."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import tee
from typing import NamedTuple

from mail_assets.mail.message.dates import MAX_RAW, parse_date

BEFORE_RECEIVED, AFTER_RECEIVED = timedelta(days=7), timedelta(days=1)
OUTSIDE_MONTH = timedelta(days=45)


class SentAt(NamedTuple):
    """The accepted date. source: `date`, `received`, `from_line` or `archive_month`."""

    at: datetime
    source: str
    raw: str  # the Date field as written
    repaired: bool


def decide_sent_at(dates: list[str], received: Iterable[str], from_line: str, month: str) -> SentAt:
    """The first date to be believed of Date, earliest Received and From_ line, else the month.

    Date must lie between 7 days before the earliest Received and 1 day after the latest, and
    every source within 45 days of the archive's month (`YYYY-MM`). received holds the dates of
    the Received fields, read only as far as needed: of five the topmost mostly settles it. All
    copies of a message share its earliest hops, so the earliest dates them alike; one more than 7
    days before the latest is of a clock that was wrong.
    """
    first, low, high = _believable(month)
    raw = dates[0][:MAX_RAW] if dates else ""
    own = next((x for x in map(parse_date, dates) if x), None)
    hops, again = tee(hop.at for hop in map(parse_date, received) if hop)
    if own and low <= own.at <= high and _fits(own.at, hops):
        return SentAt(own.at, "date", raw, own.repaired)
    sane = [hop for hop in again if low <= hop <= high]
    if sane:
        first_hop = min(hop for hop in sane if hop >= max(sane) - BEFORE_RECEIVED)
        return SentAt(first_hop, "received", raw, True)
    line = parse_date(from_line)
    if line and low <= line.at <= high:
        return SentAt(line.at, "from_line", raw, True)
    return SentAt(first, "archive_month", raw, True)


def _fits(at: datetime, hops: Iterable[datetime]) -> bool:
    """Tell whether `min(hops) - BEFORE_RECEIVED <= at <= max(hops) + AFTER_RECEIVED`, if any."""
    hop = None
    early = late = False
    lowest, highest = at - AFTER_RECEIVED, at + BEFORE_RECEIVED
    for hop in hops:
        early = early or hop <= highest
        late = late or hop >= lowest
        if early and late:
            return True
    return hop is None


@lru_cache(maxsize=64)  # a month is asked for with each of its messages
def month_bounds(month: str) -> tuple[datetime, datetime]:
    """First moment of a month `YYYY-MM` and of the next; ValueError for any other text."""
    first = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)
    return first, (first + timedelta(days=31)).replace(day=1)


@lru_cache(maxsize=64)
def _believable(month: str) -> tuple[datetime, datetime, datetime]:
    """First moment of a month, and the bounds of what a message in its archive may be dated."""
    first, end = month_bounds(month)
    return first, first - OUTSIDE_MONTH, end + OUTSIDE_MONTH
