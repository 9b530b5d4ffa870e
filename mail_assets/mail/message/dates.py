"""Parse dates of Date, Received and From_ lines, and decide when a message was sent.

Formats: RFC 5322 section 3.3, and the variants that mail programs wrote. Every `datetime` here is
aware and in UTC.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from mail_assets.mail.message.headers import decode_value

# --- time zones ---

MAX_OFFSET = 14 * 60  # minutes: Kiribati is the farthest from Greenwich

_HOURS = {
    **dict.fromkeys(["z", "ut", "utc", "gmt", "wet"], 0),
    **dict.fromkeys(["bst", "cet", "met", "mez", "west"], 1),
    **dict.fromkeys(["cest", "mest", "mesz", "metdst", "eet", "ze2"], 2),
    **dict.fromkeys(["msk", "eest"], 3),
    **{"sast": 2, "msd": 4, "hkt": 8, "sgt": 8, "awst": 8, "jst": 9, "kst": 9, "aest": 10},
    **{"aedt": 11, "nzst": 12, "nzdt": 13, "brst": -2, "brt": -3, "ast": -4, "adt": -3},
    **{"akst": -9, "akdt": -8, "hst": -10},
    **{"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7},
}
_US_ZONE = re.compile(r"\b(eastern|central|mountain|pacific)\s+(standard|daylight)\b")
# Zones that break the rule, with the offsets that the PostgreSQL archives give them.
_ODD_ZONES = {"+-4-30": 270, "+-100": 60, "+0-900": -540, "mexico/general": -300}

_COMMENT = re.compile(r"\(([^()]*)\)?")
_OFFSET = re.compile(
    r"(?:gmt|utc|ut)?\s*([+-]+)\s*(\d{1,2})[:.-]?(\d{2})?(?!\d)|(\d{2})(\d{2})(?!\d)"
)
_ZONE_NAME = re.compile(r"[a-z]{1,6}\d?(?![a-z])")


def parse_offset(tail: str) -> tuple[int, bool]:
    """Return the minutes east of Greenwich in the text after a time, and whether they are certain.

    If the offset is impossible, the zone's name in a comment counts: `+6700 (EST)` is EST.
    """
    zone = _COMMENT.sub(" ", tail).strip()
    minutes = _ODD_ZONES.get(zone)
    if minutes is not None:
        return minutes, False
    number = _OFFSET.match(zone)
    if number:
        sign = -1 if (number[1] or "+").endswith("-") else 1
        hours, rest = int(number[2] or number[4]), int(number[3] or number[5] or 0)
        if hours * 60 + rest <= MAX_OFFSET and rest < 60:
            return sign * (hours * 60 + rest), len(number[1] or "") == 1
    for name in (zone, *_COMMENT.findall(tail)):
        named = _named_zone(name.strip())
        if named is not None:
            return named, number is None and " " not in name.strip()
    return 0, not zone


def _named_zone(name: str) -> int | None:
    if us := _US_ZONE.search(name):
        return _HOURS[us[1][0] + ("s" if us[2] == "standard" else "d") + "t"] * 60
    found = _ZONE_NAME.match(name)
    hours = _HOURS.get(found[0]) if found else None
    return None if hours is None else hours * 60


# --- dates ---

MAX_DATES = 5  # additional Date fields of a message that are read
MAX_RAW = 1_000  # characters of a date field kept and read

# The first three letters of each month, four if three are ambiguous: in English, then in ca cs da
# de el es et fi fr hu it nl no pl pt ro ru sv tr uk. Croatian is missing, because its lipanj,
# srpanj and listopad are different months than in Czech and Polish.
_MONTHS = {
    name: number
    for number, names in enumerate(
        [
            "jan ene gen jän jaa tam sty led oca ian ιαν янв січ",
            "feb fev fév vee hel lut úno şub φεβ фев лют",
            "mar mär már mrz maa bře μαρ мар бер",
            "apr avr abr huh kwi dub nis ápr απρ апр кві",
            "may mai mag maj mei tou kvě máj μαϊ μάι май мая тра",
            "jun juin giu juun kes cze čer čvn haz jún iun ιουν ιούν июн чер",
            "jul juil lug juul hei lip čvc tem júl iul ιουλ ιούλ июл лип",
            "aug aoû aou ago elo sie srp ağu αυγ авг сер",
            "sep set syy wrz zář eyl sze σεπ сен вер",
            "oct okt ott out lok paź říj eki οκτ окт жов",
            "nov noe noi marr lis kas νοε ноя лис",
            "dec déc dez dic des det jou gru pro ara δεκ дек гру",
        ],
        start=1,
    )
    for name in names.split()
}
_ENGLISH = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# `Mon, 05 Jan 2026 15:18:12 +0100 (CET)`: the form of RFC 5322 section 3.3
_CANONICAL = re.compile(
    r"\s*(?:[A-Z][a-z][a-z], +)?(\d\d?) ([A-Z][a-z][a-z]) ([12]\d{3}) "
    r"([01]?\d|2[0-3]):([0-5]\d):([0-5]\d) ([+-](?:0\d|1[0-3])[0-5]\d)"
    r"(?: ?\([A-Za-z ]{1,60}\))?\s*\Z",
    re.ASCII,
)
_NUMBERS = {name: number for number, name in enumerate(_ENGLISH, start=1)}

_TIME = re.compile(
    r"(?<![\d:])(\d{1,2})[:：](\d{2})(?:[:：](\d{2}))?(?:[.,]\d+)?(?:\s*([AaPp])\.?\s?[Mm]\b)?"
)
# The same with other separators, in places where they cannot belong to a date or a zone
_ODD_TIME = re.compile(
    r"(?<![\d.+-])(\d{1,2})(?:[.h]|\s?uhr\s?)(\d{2})(?:[.m](\d{2})s?)?(?![.\d])"
    r"(?:[,]\d+)?(?:\s*([AaPp])\.?\s?[Mm]\b)?",
    re.I,
)
_COMPACT = re.compile(r"(?<!\d)(\d{4})(\d\d)(\d\d)T?(\d\d)(\d\d)(\d\d)(?!\d)")
_AFTERNOON = ("下午", "午後", "오후")
_NOON = re.compile(rf"(上午|午前|오전|{'|'.join(_AFTERNOON)})\s?$")
_DAY_MONTH_YEAR = re.compile(
    r"(?<!\d)(\d{1,2})[\s\-./,]{0,3}([^\W\d_]{3,12})[\s\-./,']{0,3}(\d{2,5})(?![\d:])"
)
_SPELLED = re.compile(  # `5th of January 2026`, `5 de enero de 2026`
    r"(?<!\d)(\d{1,2})(?:st|nd|rd|th|er|[.ºª°])?(?:\s(?:of|de|del|di|d'))?\s{1,3}"
    r"([^\W\d_]{3,12})[\s,.]{1,3}(?:(?:of|de|del)\s)?(\d{4})(?![\d:])",
    re.I,
)
_DAY_DOT_MONTH = re.compile(r"(?<![\d.])(\d{1,2})\. ?(\d{1,2})\. ?(\d{4})(?![\d.:])")
_SLASHES = re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})/(\d{4})(?![\d/:])")
_MONTH_DAY = re.compile(r"(?<!\w)([^\W\d_]{3,12})\.?\s{1,3}(\d{1,2})(?![\d:])")
_YEAR = re.compile(r"(?<![\d:+-])(\d{4})(?![\d:])")
_YEAR_MONTH_DAY = re.compile(
    r"(?<!\d)(\d{4})\s?[-/.年년]\s?(\d{1,2})\s?[-/.月월]\s?(\d{1,2})(?!\d)"
)


class ParsedDate(NamedTuple):
    """A parsed date; `repaired` if a strict RFC 5322 parser would read the text differently."""

    at: datetime
    repaired: bool


class _Day(NamedTuple):
    year: int
    month: int
    day: int
    repaired: bool
    year_at: tuple[int, int]  # span of the year
    at: tuple[int, int]  # span of at least day and month


def parse_date(text: str) -> ParsedDate | None:
    """Return the date in a text, or None without one; a missing zone means UTC."""
    text = text[:MAX_RAW]
    return _canonical(text) or _read_any(text)


def _canonical(text: str) -> ParsedDate | None:
    """Return a date in the standard form, or None; ten times as fast as `_read_any`."""
    found = _CANONICAL.match(text)
    if found is None:
        return None
    day, month, year, *time, zone = found.groups()
    local = _in_utc(year, month, day, *time)
    return ParsedDate(local - _offset(zone), False) if local else None


def _in_utc(
    year: str, month: str, day: str, hour: str, minute: str, second: str
) -> datetime | None:
    try:
        return datetime(
            int(year), _NUMBERS[month], int(day), int(hour), int(minute), int(second), 0, UTC
        )
    except (KeyError, ValueError):  # no such month or day
        return None


@lru_cache(maxsize=64)  # there are few zones
def _offset(zone: str) -> timedelta:
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:]))
    return -offset if zone[0] == "-" else offset


def _read_any(text: str) -> ParsedDate | None:
    day, time = _day(text), _TIME.search(text)
    is_odd = time is None
    if day and time is None:
        time = _ODD_TIME.search(_without(text, day.at))
    if day is None or time is None:
        compact = _COMPACT.sub(r"\1-\2-\3 \4:\5:\6", text)
        return _read_any(compact) if compact != text else None
    hour = int(time[1])
    noon = None if text.isascii() else _NOON.search(text, 0, time.start())
    if time[4] or noon:
        is_afternoon = time[4] in "Pp" if time[4] else noon is not None and noon[1] in _AFTERNOON
        hour = hour % 12 + 12 * is_afternoon
    # asctime puts the year where the zone would be
    minutes, sure = parse_offset(_without(text, day.year_at)[time.end() :].lower())
    minute, second = int(time[2]), min(int(time[3] or 0), 59)
    if is_midnight := hour == 24 and not minute and not second:  # the end of the day (ISO 8601)
        hour = 0
    repaired = day.repaired or is_odd or is_midnight or noon is not None or not sure
    try:
        local = datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=UTC)
        return ParsedDate(local + timedelta(days=is_midnight, minutes=-minutes), repaired)
    except (ValueError, OverflowError):
        return None


def _without(text: str, span: tuple[int, int]) -> str:
    begin, end = span
    return text[:begin] + " " * (end - begin) + text[end:]


def _day(text: str) -> _Day | None:
    for found in _DAY_MONTH_YEAR.finditer(text):
        if month := _month_number(found[2]):
            # mail of the 1990s has two digits (RFC 822), which RFC 5322 accepts
            is_odd = len(found[3]) not in (2, 4) or found[3][:-2].startswith("0")
            repaired = is_odd or _is_foreign(found[2])
            year = _year(found[3])
            return _Day(year, month, int(found[1]), repaired, found.span(3), found.span())
    for found in _MONTH_DAY.finditer(text):
        if (month := _month_number(found[1])) and (year_at := _YEAR.search(text, found.end())):
            year = _year(year_at[1])
            return _Day(year, month, int(found[2]), False, year_at.span(), found.span())
    for found in _SPELLED.finditer(text):
        if month := _month_number(found[2]):
            year = _year(found[3])
            return _Day(year, month, int(found[1]), True, found.span(3), found.span())
    if iso := _YEAR_MONTH_DAY.search(text):
        return _Day(int(iso[1]), int(iso[2]), int(iso[3]), True, iso.span(1), iso.span())
    if dotted := _DAY_DOT_MONTH.search(text):
        year = int(dotted[3])
        return _Day(year, int(dotted[2]), int(dotted[1]), True, dotted.span(3), dotted.span())
    if slashed := _SLASHES.search(text):
        first, second, year = (int(number) for number in slashed.groups())
        if first > 12 or second > 12 or first == second:  # else the order could be American
            month, day = (first, second) if second > 12 else (second, first)
            return _Day(year, month, day, True, slashed.span(3), slashed.span())
    return None


def _month_number(name: str) -> int | None:
    name = name.lower()
    return _MONTHS.get(name[:4]) or _MONTHS.get(name[:3])


def _is_foreign(month: str) -> bool:
    return month[:3].capitalize() not in _ENGLISH


def _year(digits: str) -> int:
    """Return the year: `04` is 2004, `99` is 1999, `102` counts from 1900 (RFC 5322 section 4.3).

    `0102` counts from 1900 too. So does `19102`, by a program that wrote 19 before the count.
    """
    year = int(digits)
    if 19_100 <= year < 19_200:
        return year - 17_100
    if year < 50:
        return year + 2000
    return year + 1900 if year < 1000 else year


# --- the date of a message ---

BEFORE_RECEIVED, AFTER_RECEIVED = timedelta(days=7), timedelta(days=1)
OUTSIDE_MONTH = timedelta(days=45)


class SentAt(NamedTuple):
    """The accepted date of a message."""

    at: datetime
    source: str  # date, received, from_line or archive_month
    raw: str  # the Date field as written
    repaired: bool


def read_hops(received: Iterable[bytes]) -> Iterator[ParsedDate | None]:
    """Yield the date of each Received field, after its last semicolon (RFC 5322 section 3.6.7)."""
    return (parse_date(decode_value(hop[hop.rfind(b";") + 1 :])) for hop in received)


def decide_sent_at(
    dates: list[str], received: Iterable[ParsedDate | None], from_line: str, month: str
) -> SentAt:
    """Return the first credible date of Date, earliest Received and From_ line, else the month.

    Date must be at most 7 days before the earliest Received and at most 1 day after the topmost.
    The topmost is by the list's own server; a sender could write the others. Every source must be
    within 45 days of the archive's month (`YYYY-MM`).

    `received` has the dates by `read_hops`; for nearly all mail only the first is needed. The
    earliest hop gives all copies of a message the same date, because they share it. A hop more than
    7 days before the latest comes from a wrong clock and does not count.
    """
    first, low, high = _believable(month)
    raw = dates[0][:MAX_RAW] if dates else ""
    read = filter(None, map(parse_date, dates))
    own = next(read, None)
    later = (hop.at for hop in received if hop)
    hops: list[datetime] = []
    if own and low <= own.at <= high and _fits(own.at, hops, later):
        return SentAt(own.at, "date", raw, own.repaired)
    for other in islice(read, MAX_DATES):
        if low <= other.at <= high and _fits(other.at, hops, later):
            return SentAt(other.at, "date", raw, True)
    hops += later
    sane = [hop for hop in hops if low <= hop <= high]
    if sane and sane[0] is hops[0]:
        sane = [hop for hop in sane if hop <= hops[0] + AFTER_RECEIVED]
    if sane:
        first_hop = min(hop for hop in sane if hop >= max(sane) - BEFORE_RECEIVED)
        return SentAt(first_hop, "received", raw, True)
    line = parse_date(from_line)
    if line and low <= line.at <= high:
        return SentAt(line.at, "from_line", raw, True)
    return SentAt(first, "archive_month", raw, True)


def _fits(at: datetime, hops: list[datetime], later: Iterator[datetime]) -> bool:
    """Return whether a date fits the hops; hops that are needed move from `later` to `hops`."""
    latest, earliest = at + BEFORE_RECEIVED, at - AFTER_RECEIVED
    hops += islice(later, 0 if hops else 1)
    if not hops:
        return True
    if hops[0] < earliest:
        return False
    if min(hops) <= latest:
        return True
    for hop in later:
        hops.append(hop)
        if hop <= latest:
            return True
    return False


# --- the arrival of a message ---

#: Earlier dates are wrong: a clock at zero writes 1970, and so does every public-inbox From_ line.
_FIRST_ARRIVAL = datetime(1971, 1, 1, tzinfo=UTC)
# The sender chooses the address before the date, so the last weekday counts.
_WEEKDAY = r"[ \t](?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) "
_ASCTIME = re.compile(
    _WEEKDAY + r"([A-Z][a-z][a-z]) ([ 0-3]\d) ([0-2]\d):([0-5]\d):([0-5]\d) (\d{4})\Z", re.ASCII
)
_ASCTIME_SIZE = len(" Mon Jan  5 15:18:12 2026")
#: Date in the From_ line of every patch that git writes as a mail.
_DATE_OF_GIT = datetime(2001, 9, 17, tzinfo=UTC)
_NEW_YEAR = (1, 1, 0, 0, 0)
#: From_ lines are made up if a share `_MOST_MADE_UP` of them is equal, at least `_EQUAL` lines if
#: they have an address. They are an export's if the share has one sender and spans less than
#: `_EXPORT`, in an archive of at least `_EXPORTED` lines.
_MOST_MADE_UP, _EQUAL, _EXPORTED, _EXPORT = 0.8, 3, 20, timedelta(hours=1)
_WITH_ADDRESS = re.compile(rb"[a-z0-9]@[a-z0-9]", re.I)
_LAST_WEEKDAY = re.compile(rf".*{_WEEKDAY}(.*)", re.S)


class Arrival(NamedTuple):
    """Time at which a message had reached its archive, and the field that gives it."""

    at: datetime
    source: str  # received or from_line


def decide_arrival(topmost: ParsedDate | None, from_line: str, dialect: str) -> Arrival | None:
    """Return the later date of the topmost Received field and the From_ line, or None without any.

    The sender writes Date and every Received field except the topmost, which the list's own server
    adds. A message may lack that field, so the later date counts: a sender can make an arrival
    later but never earlier. Pipermail's From_ lines do not count, because they copy the Date field.
    """
    hop = read_received(topmost)
    line = None if dialect == "pipermail" else _parse_from_line(from_line)
    if line and line >= _FIRST_ARRIVAL and not (hop and hop.at >= line) and not _is_made_up(line):
        return Arrival(line, "from_line")
    return hop


def read_received(topmost: ParsedDate | None) -> Arrival | None:
    """Return the arrival that the topmost Received field gives."""
    if topmost is None or topmost.at < _FIRST_ARRIVAL:
        return None
    return Arrival(topmost.at, "received")


def _is_made_up(at: datetime) -> bool:
    """Return whether programs without a known time write this time."""
    return at == _DATE_OF_GIT or at.timetuple()[1:6] == _NEW_YEAR


def find_made_up(from_lines: Sequence[bytes]) -> frozenset[bytes]:
    """Return the From_ lines that the program that wrote an archive made up.

    Most lines are equal, or most have one sender and the time of the export.
    """
    least = max(2, _MOST_MADE_UP * len(from_lines))
    counts = Counter(from_lines)
    if (usual := _most_frequent(counts, least)) is not None:
        # two mails of one person can arrive in the same second
        is_certain = counts[usual] >= _EQUAL or not _WITH_ADDRESS.search(usual)
        return frozenset([usual] if is_certain else [])
    senders = Counter(line.split(b" ", 2)[1] for line in from_lines if b" " in line)
    sender = _most_frequent(senders, least)
    if sender is None or len(from_lines) < _EXPORTED:
        return frozenset()
    lines = {line for line in counts if line.split(b" ", 2)[1:2] == [sender]}
    parsed = (_parse_from_line(line.decode("latin-1")) for line in from_lines if line in lines)
    times = sorted(at for at in parsed if at)
    last = times[math.ceil(least) - 1 :]
    took = (end - begin for begin, end in zip(times, last, strict=False))
    return frozenset(lines) if min(took, default=_EXPORT) < _EXPORT else frozenset()


def _most_frequent(counts: Counter[bytes], least: float) -> bytes | None:
    value, count = next(iter(counts.most_common(1)), (None, 0))
    return value if count >= least else None


def _parse_from_line(line: str) -> datetime | None:
    found = _ASCTIME.match(line, max(0, len(line) - _ASCTIME_SIZE))
    if found is None:
        rest = _LAST_WEEKDAY.match(line)
        date = parse_date(rest[1] if rest else line.partition(" ")[2].partition(" ")[2])
        return date.at if date else None
    month, day, *time, year = found.groups()
    return _in_utc(year, month, day, *time)


@lru_cache(maxsize=64)  # every message of a month needs it
def month_bounds(month: str) -> tuple[datetime, datetime]:
    """Return the first moment of a month `YYYY-MM` and of the next month.

    Raises:
        ValueError: the text is not a month.
    """
    first = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)
    return first, (first + timedelta(days=31)).replace(day=1)


@lru_cache(maxsize=64)
def _believable(month: str) -> tuple[datetime, datetime, datetime]:
    first, end = month_bounds(month)
    return first, first - OUTSIDE_MONTH, end + OUTSIDE_MONTH
