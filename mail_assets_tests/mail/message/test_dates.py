"""Dates as written, and repaired."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message import dates
from mail_assets.mail.message.dates import MAX_OFFSET, parse_date

FIVE = "Mon, 5 Jan 2026 15:18:12"


def at(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{FIVE} +0000", "2026-01-05 15:18:12"),
        (f"{FIVE} -0500 (EST)", "2026-01-05 20:18:12"),
        (f"{FIVE} +0530", "2026-01-05 09:48:12"),
        (f"{FIVE} GMT", "2026-01-05 15:18:12"),
        (f"{FIVE} PDT", "2026-01-05 22:18:12"),
        (f"{FIVE} +0200 (MET DST)", "2026-01-05 13:18:12"),
        ("5 Jan 2026 15:18 +0000", "2026-01-05 15:18:00"),
        ("Mon Jan  5 15:18:12 2026", "2026-01-05 15:18:12"),
        ("Mon Jan  5 15:18:12 EST 2026", "2026-01-05 20:18:12"),
        ("Mon Jan 05 15:18:12 +0100 2026", "2026-01-05 14:18:12"),
        ("From a@b.org Mon Jan  5 15:18:12 2026", "2026-01-05 15:18:12"),
        ("From user at example.org  Tue Apr  1 12:21:37 2003", "2003-04-01 12:21:37"),
        ("Sun, 31 Dec 2000 23:59:60 +0000", "2000-12-31 23:59:59"),
    ],
)
def test_well_formed_dates_need_no_repair(text: str, expected: str) -> None:
    assert parse_date(text) == (at(expected), False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mon, 5 Jan 26 15:18:12 +0000", "2026-01-05 15:18:12"),
        ("Sun, 22 Jun 97 16:16:43 -0700", "1997-06-22 23:16:43"),
        ("Wed, 4 Sep 102 10:00:00 +0000", "2002-09-04 10:00:00"),
        ("Wed, 4 Sep 0102 10:00:00 +0000", "2002-09-04 10:00:00"),
        (f"{FIVE} +6700 (EST)", "2026-01-05 20:18:12"),
        (f"{FIVE} -7700 (EST)", "2026-01-05 20:18:12"),
        (f"{FIVE} -1600", "2026-01-05 15:18:12"),
        (f"{FIVE} +-0500", "2026-01-05 20:18:12"),
        (f"{FIVE} --0400", "2026-01-05 19:18:12"),
        (f"{FIVE} +-4-30", "2026-01-05 10:48:12"),
        (f"{FIVE} +-100", "2026-01-05 14:18:12"),
        (f"{FIVE} +0-900", "2026-01-06 00:18:12"),
        (f"{FIVE} 0530", "2026-01-05 09:48:12"),
        (f"{FIVE} Eastern Daylight Time", "2026-01-05 19:18:12"),
        (f"{FIVE} Pacific Standard Time", "2026-01-05 23:18:12"),
        (f"{FIVE} Mexico/General", "2026-01-05 20:18:12"),
        (f"{FIVE} nowhere", "2026-01-05 15:18:12"),
        ("2002/09/14 Sat 12:00:00 +0000", "2002-09-14 12:00:00"),
        ("14-Juin-2002 12:00:00 +0000", "2002-06-14 12:00:00"),
        ("14-Juil-2002 12:00:00 +0000", "2002-07-14 12:00:00"),
        ("Wed, 4 Sep 19102 10:00:00 +0000", "2002-09-04 10:00:00"),
        ("5.1.2026 15:18:12 +0100", "2026-01-05 14:18:12"),
        ("Пн, 5 янв. 2026 15:18:12 +0300", "2026-01-05 12:18:12"),
        ("ma, 5 tammi 2026 15:18:12 +0200", "2026-01-05 13:18:12"),
        ("pon, 5 sty 2026 15:18:12 +0100", "2026-01-05 14:18:12"),
        ("po, 5 led 2026 15:18:12 +0100", "2026-01-05 14:18:12"),
        ("Pzt, 5 Oca 2026 15:18:12 +0300", "2026-01-05 12:18:12"),
        ("Δευ, 5 Ιαν 2026 15:18:12 +0200", "2026-01-05 13:18:12"),
        ("mån, 5 maj 2025 15:18:12 +0200", "2025-05-05 13:18:12"),
        ("Di, 14 Mär 2006 12:00:00 +0100", "2006-03-14 11:00:00"),
    ],
)
def test_broken_dates_are_read_and_say_so(text: str, expected: str) -> None:
    assert parse_date(text) == (at(expected), True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "Mon, 5 Jan 2026",
        "15:18:12",
        "31 Feb 2026 10:00:00 +0000",
        "5 Jan 2026 25:00:00 +0000",
        "5 Foo 2026 10:00:00 +0000",
        "99 Jan 2026 10:00 +0000",
    ],
)
def test_what_is_no_date_gives_none(text: str) -> None:
    assert parse_date(text) is None


@settings(max_examples=200)
@given(
    st.datetimes(datetime(1970, 1, 2), datetime(2068, 12, 30)).map(
        lambda d: d.replace(microsecond=0)
    ),
    st.integers(-MAX_OFFSET, MAX_OFFSET),
)
def test_every_rfc_5322_date_comes_back(local: datetime, minutes: int) -> None:
    zone = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{abs(minutes) % 60:02}"
    found = parse_date(f"{local:%a, %d %b %Y %H:%M:%S} {zone}")
    assert found is not None
    assert not found.repaired
    assert (local.replace(tzinfo=UTC) - found.at).total_seconds() == minutes * 60


PIECES = {
    "day of week": ["", "Mon, ", "Mon,  ", "Xyz, ", " Tue, ", "mon, ", "Mon "],
    "day": ["1", "05", "29", "30", "31", "32", "0"],
    "month": ["Jan", "Feb", "Dec", "jan", "Okt", "Xyz"],
    "year": ["2026", "1000", "0999", "2999", "3026", "26"],
    "time": ["00:00:00", "23:59:59", "24:00:00", "15:18:60", "15:18", "9:18:12"],
    "zone": ["+0000", "-0000", "+1359", "-1400", "+1401", "+0060", "GMT", "--0400", "+-100", ""],
    "comment": ["", " (CET)", " (EST)", " (Eastern Standard Time)", "\n", " 2020", " (CET) x"],
}


@settings(max_examples=1_000)
@given(pieces=st.tuples(*map(st.sampled_from, PIECES.values())))
def test_a_canonical_date_is_read_as_any_other_would_be(pieces: tuple[str, ...]) -> None:
    week, day, month, year, time, zone, comment = pieces
    text = f"{week}{day} {month} {year} {time} {zone}{comment}"
    quick = dates._canonical(text)
    assert quick is None or quick == dates._read_any(text)
