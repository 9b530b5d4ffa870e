"""Days and periods as people type them: 2024, 2024-05, 2024-05-17, 2y, 10d, 2024-05..2024-06."""

import calendar
import datetime as dt
import re

from mail_assets.search.expression import Period
from mail_assets.search.request import EmptyPeriodError, RequestError, quote

_DAY = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?", re.ASCII)
_AGO = re.compile(r"(\d{1,5})([dwmy])", re.ASCII)
#: Months of a unit; days are counted as such.
_MONTHS = {"m": 1, "y": 12}
_DAYS = {"d": 1, "w": 7}


def parse_day(text: str, today: dt.date | None = None) -> dt.date:
    """Read "2024", "2024-05" or "2024-05-17" as its first day, and "10d", "2w", "3m", "2y" as ago.

    `today` is that of UTC where it is not given.

    Raises:
        RequestError: it is none of these.
    """
    return _parse_period(text, today)[0]


def parse_period(text: str, today: dt.date | None = None) -> Period:
    """Read a day, month or year as all of it, and "START..END", each of which may be missing.

    Raises:
        RequestError: it is none of these, or ends before it begins.
    """
    first, dots, last = text.partition("..")
    if not dots:
        return Period(*_parse_period(text, today))
    start = _parse_period(first, today)[0] if first.strip() else None
    end = _parse_period(last, today)[1] if last.strip() else None
    if start is None and end is None:
        raise RequestError(f"{quote(text)} is no period: write START..END")
    check_period(start, end)
    return Period(start, end)


def check_period(start: dt.date | None, end: dt.date | None) -> None:
    """Refuse a period without a day.

    Raises:
        RequestError: it ends before it begins.
    """
    if start and end and start >= end:
        raise EmptyPeriodError(f"nothing is after {start} and before {end}")


def _parse_period(text: str, today: dt.date | None) -> tuple[dt.date, dt.date | None]:
    """Return the first day, and the day after the last, None where the calendar ends before."""
    text = text.strip()
    try:
        if match := _DAY.fullmatch(text):
            start = dt.date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
            if match[3]:
                return start, _next_day(start)
            if start.year == dt.MAXYEAR and (start.month == 12 or not match[2]):
                return start, None
            return start, _shift_months(start, 1 if match[2] else 12)
        if match := _AGO.fullmatch(text):
            day = today or dt.datetime.now(dt.UTC).date()
            number, unit = int(match[1]), match[2]
            if unit in _MONTHS:
                start = _shift_months(day, -number * _MONTHS[unit])
            else:
                start = day - dt.timedelta(number * _DAYS[unit])
            return start, _next_day(start)
    except (ValueError, OverflowError):
        pass
    raise RequestError(
        f"{quote(text)} is no day: write YYYY, YYYY-MM, YYYY-MM-DD, or 10d, 2w, 3m, 2y ago"
    )


def _next_day(day: dt.date) -> dt.date | None:
    return None if day == dt.date.max else day + dt.timedelta(1)


def _shift_months(day: dt.date, months: int) -> dt.date:
    """Return the same day of another month, its last where that is shorter.

    Raises:
        ValueError: that is before year 1 or after 9999.
    """
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        raise ValueError(year)
    return dt.date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))
