"""Dates and zones, well-formed and repaired, and the date of a message."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message import dates
from mail_assets.mail.message.dates import (
    MAX_OFFSET,
    decide_arrival,
    decide_sent_at,
    find_made_up,
    parse_date,
    parse_offset,
)

FIVE = "Mon, 5 Jan 2026 15:18:12"


def at(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)


@pytest.mark.parametrize(("text", "expected"), [
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
    ("Mon, 5 Jan 04 15:18:12 +0000", "2004-01-05 15:18:12"),
    ("Mon, 5 Jan 26 15:18:12 +0000", "2026-01-05 15:18:12"),
    ("Sun, 22 Jun 97 16:16:43 -0700", "1997-06-22 23:16:43"),
])  # fmt: skip
def test_well_formed_dates_need_no_repair(text: str, expected: str) -> None:
    assert parse_date(text) == (at(expected), False)


@pytest.mark.parametrize(("text", "expected"), [
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
    ("Mon, 5 Jan 2026 24:00:00 +0000", "2026-01-06 00:00:00"),
    ("Wed, 31 Dec 2025 24:00:00 +0100", "2025-12-31 23:00:00"),
    ("5 Jan 2026 24:00 +0000", "2026-01-06 00:00:00"),
    ("01/25/2026 15:18", "2026-01-25 15:18:00"),
    ("25/01/2026 15:18", "2026-01-25 15:18:00"),
    ("Mon, 5 Jan 2026 15.18 +0100", "2026-01-05 14:18:00"),
    ("5 janvier 2026 à 15h18", "2026-01-05 15:18:00"),
    ("2026年1月5日 上午12:18", "2026-01-05 00:18:00"),
])  # fmt: skip
def test_broken_dates_are_read_with_a_flag(text: str, expected: str) -> None:
    assert parse_date(text) == (at(expected), True)


@pytest.mark.parametrize("text", [
    "", "yesterday", "Mon, 5 Jan 2026", "15:18:12", "31 Feb 2026 10:00:00 +0000",
    "5 Jan 2026 25:00:00 +0000", "5 Foo 2026 10:00:00 +0000", "99 Jan 2026 10:00 +0000",
    # it could be another date
    "Mon, 5 Jan 2026 24:00:01 +0000", "01/02/2026 15:18", "5 Jan 2026 1.2.3",
])  # fmt: skip
def test_text_without_a_date_gives_none(text: str) -> None:
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


@settings(max_examples=200)
@given(pieces=st.tuples(*map(st.sampled_from, PIECES.values())))
def test_canonical_date_is_read_as_any_other_would_be(pieces: tuple[str, ...]) -> None:
    week, day, month, year, time, zone, comment = pieces
    text = f"{week}{day} {month} {year} {time} {zone}{comment}"
    quick = dates._canonical(text)
    assert quick is None or quick == dates._read_any(text)


LINE = "From a@b.org Tue Jan  6 00:00:00 2026"
HOPS = [
    "from list by archive; Mon, 5 Jan 2026 15:30:00 +0000",
    "from home by list (x; y); Mon, 5 Jan 2026 15:20:00 +0000",
]
#: Fields below the list's own one, which a sender can forge.
FORGED = [*HOPS, "from me by me; Wed, 4 Feb 2026 15:20:00 +0000"]


@pytest.mark.parametrize(("dates", "received", "line", "source", "expected"), [
    ([f"{FIVE} +0000"], HOPS, LINE, "date", "2026-01-05 15:18:12"),
    ([f"{FIVE} +0000"], [], "", "date", "2026-01-05 15:18:12"),
    (["Tue, 30 Dec 2025 15:00:00 +0000"], HOPS, LINE, "date", "2025-12-30 15:00:00"),
    (["nonsense", f"{FIVE} +0000"], HOPS, LINE, "date", "2026-01-05 15:18:12"),
    (["Sat, 27 Dec 2025 15:00:00 +0000"], HOPS, LINE, "received", "2026-01-05 15:20:00"),
    (["Wed, 7 Jan 2026 15:00:00 +0000"], HOPS, LINE, "received", "2026-01-05 15:20:00"),
    (["Wed, 5 Jan 2028 15:18:12 +0000"], HOPS, LINE, "received", "2026-01-05 15:20:00"),
    (["Wed, 4 Feb 2026 15:00:00 +0000"], FORGED, LINE, "received", "2026-01-05 15:20:00"),
    ([""], HOPS, LINE, "received", "2026-01-05 15:20:00"),
    ([], HOPS, LINE, "received", "2026-01-05 15:20:00"),
    (["Mon, 5 Jan 1970 00:00:00 +0000"], [], LINE, "from_line", "2026-01-06 00:00:00"),
    ([], ["x; Mon, 5 Jan 2015 15:30:00 +0000"], LINE, "from_line", "2026-01-06 00:00:00"),
    ([], [], "From nobody Sat Nov 21 10:00:00 2026", "archive_month", "2026-01-01 00:00:00"),
    ([], [], "", "archive_month", "2026-01-01 00:00:00"),
])  # fmt: skip
def test_date_is_believed_within_its_bounds(
    dates: list[str], received: list[str], line: str, source: str, expected: str
) -> None:
    found = decide_sent_at(dates, map(parse_date, received), line, "2026-01")
    assert (found.source, found.at) == (source, at(expected))
    assert found.raw == (dates[0] if dates else "")
    assert found.repaired == (source != "date")


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from(["Jan", " ", "5", "2026", "12:30", ":", "+", "-", "0500", "(", ")", ";"])
    )
)
def test_any_text_gives_a_utc_date_or_none(words: list[str]) -> None:
    text = "".join(words)
    found = decide_sent_at([text], [parse_date(text)], text, "2026-01")
    assert found.at.tzinfo is UTC


@settings(max_examples=200)
@given(
    hours=st.lists(st.integers(-40 * 24, 40 * 24), min_size=1, max_size=5),
    unreadable=st.integers(0, 4),
)
def test_date_must_fit_received_dates_read_lazily(hours: list[int], unreadable: int) -> None:
    own = at("2026-01-15 12:00:00")
    hops = [own + timedelta(hours=hour) for hour in hours]
    lines = [f"{hop:%d %b %Y %H:%M:%S} +0000" for hop in hops]
    lines.insert(unreadable, "by mail.example.org")
    found = decide_sent_at(["15 Jan 2026 12:00:00 +0000"], map(parse_date, lines), "", "2026-01")
    fits = min(hops) - timedelta(days=7) <= own <= hops[0] + timedelta(days=1)
    assert (found.source == "date") == fits
    if not fits and found.source == "received":
        sane = [
            hop for hop in hops if at("2025-11-17 00:00:00") <= hop <= at("2026-03-18 00:00:00")
        ]
        if hops[0] in sane:
            sane = [hop for hop in sane if hop <= hops[0] + timedelta(days=1)]
        assert found.at == min(hop for hop in sane if hop >= max(sane) - timedelta(days=7))


def test_copies_of_undated_mail_are_sent_at_the_same_time() -> None:
    last_hops = [
        "from list by ann; Mon, 5 Jan 2026 15:30:07 +0000",
        "from list by bob; Mon, 5 Jan 2026 15:31:59 +0000",
    ]
    first, second = (
        decide_sent_at([], map(parse_date, [hop, *HOPS]), LINE, "2026-01") for hop in last_hops
    )
    assert first == second


def test_clock_that_was_wrong_does_not_date_undated_mail() -> None:
    wrong = "from home by list; Sat, 20 Dec 2025 15:20:00 +0000"
    assert decide_sent_at([], map(parse_date, [*HOPS, wrong]), LINE, "2026-01").at == at(
        "2026-01-05 15:20:00"
    )


@pytest.mark.parametrize(("zone", "offset"), [
    ("", (0, True)),
    ("+0100", (60, True)),
    ("EST", (-300, True)),
    ("+0200 (MET DST)", (120, True)),
    ("+6700 (EST)", (-300, False)),
    ("Eastern Daylight Time", (-240, False)),
    ("nowhere", (0, False)),
])  # fmt: skip
def test_zone_is_minutes_east_and_sure_or_not(zone: str, offset: tuple[int, bool]) -> None:
    assert parse_offset(f" {zone}".lower()) == offset


@pytest.mark.parametrize(("zone", "minutes"), [
    ("+500", 300),
    ("-800", -480),
    ("+05-30", 330),
    ("+1.00", 60),
    ("0 (GMT)", 0),
    ("ZE2", 120),
    ("METDST", 120),
    ("GMT+0100", 60),
    ("+5", 300),
    ("Z", 0),
])  # fmt: skip
def test_sloppy_zones_are_understood(zone: str, minutes: int) -> None:
    assert parse_offset(f" {zone}".lower())[0] == minutes


@pytest.mark.parametrize("text", [
    "Mon, 5 Jan 2026 15.18.12 +0000", "Mon Jan  5 15.18.12 2026", "5.1.2026 15.18.12",
    "05.01.2026, 15:18:12", "2026-01-05T15:18:12Z", "2026-01-05T16:18:12.345+01:00",
    "20260105T151812Z", "20260105151812", "Mon, 5 Jan 2026 3.18.12 PM",
    "5th of January 2026 15:18:12", "5 de enero de 2026 12:18:12 -0300", "2026年1月5日 15:18:12",
    "2026年1月5日(月) 下午3:18:12", "2026. 1. 5. 오후 3:18:12", "Mon, 5 Jan 26 15h18m12s",
    "Montag, 5. Januar 2026 15.18.12 Uhr",
])  # fmt: skip
def test_dates_in_other_forms_are_read_with_a_flag(text: str) -> None:
    assert parse_date(text) == (at("2026-01-05 15:18:12"), True)


def test_second_date_field_counts_if_the_first_is_not_credible() -> None:
    dates = ["Mon, 5 Jan 1970 00:00:00 +0000", f"{FIVE} +0000"]
    found = decide_sent_at(dates, [], "", "2026-01")
    assert (found.at, found.source, found.repaired) == (at("2026-01-05 15:18:12"), "date", True)
    assert found.raw == dates[0]


HOP = "Sun, 10 Mar 2024 08:00:00 +0000"
LINE = "Sun Mar 10 09:00:00 2024"
AT_EIGHT, AT_NINE = "2024-03-10 08:00 received", "2024-03-10 09:00 from_line"


@pytest.mark.parametrize(("received", "from_line", "dialect", "expected"), [
    (HOP, "", "plain", AT_EIGHT),
    ("", f"From a@x {LINE}", "plain", AT_NINE),
    (HOP, f"From a@x {LINE}", "plain", AT_NINE),
    (HOP, "From a@x Sun Mar 10 07:00:00 2024", "plain", AT_EIGHT),
    (HOP, "From mboxrd@z Thu Jan  1 00:00:00 1970", "mboxrd", AT_EIGHT),
    ("", "From mboxrd@z Thu Jan  1 00:00:00 1970", "mboxrd", None),
    ("", "From nobody Mon Sep 17 00:00:00 2001", "plain", None),
    (HOP, f"From {'0' * 40} Mon Sep 17 00:00:00 2001", "plain", AT_EIGHT),
    ("", "From nobody Mon Jan  1 00:00:00 2001", "plain", None),
    (HOP, "From MAILER-DAEMON Mon Jan  1 00:00:00 2035", "plain", AT_EIGHT),
    ("", "From MAILER-DAEMON Thu Jan 01 1970", "plain", None),
    ("", f"From a at x  {LINE}", "pipermail", None),
    (HOP, f"From a at x  {LINE}", "pipermail", AT_EIGHT),
    ("", f'From " Mon Jan 01 00:00:00 2001"@x {LINE}', "plain", AT_NINE),
    ("", f"From 1-Jan-2001-00:00:00@x {LINE}", "plain", AT_NINE),
    ("", "From 1@x Sun Mar 10 11:00:00 +0200 2024", "plain", AT_NINE),
    ("", "From a@x Sun Mar 10 04:00:00 EST 2024", "plain", AT_NINE),
    ("", f"From - {LINE}", "plain", AT_NINE),
    ("", "From ", "plain", None),
    ("nonsense", "From a@x Sun Feb 30 09:00:00 2024", "plain", None),
    ("", "", "plain", None),
])  # fmt: skip
def test_arrival_is_the_later_of_both_fields(
    received: str, from_line: str, dialect: str, expected: str | None
) -> None:
    found = decide_arrival(parse_date(received), from_line, dialect)
    assert (found and f"{found.at:%Y-%m-%d %H:%M} {found.source}") == expected


def _lines(form: str, *times: str) -> list[bytes]:
    return [form.format(time).encode() for time in times]


@pytest.mark.parametrize(
    ("lines", "made_up"),
    [
        (_lines("From mboxrd@z Thu Jan  1 00:00:00 1970", *"abc"), 3),
        (_lines("From MAILER-DAEMON Thu Jan 01 1970", *"abc"), 3),
        (_lines("From - Mon Jan  5 15:18:12 2026", *"abcd"), 4),
        (_lines("From jo@x Mon Jan  5 15:18:12 2026", *"ab"), 0),  # two mails in the same second
        ([*_lines("From ???@??? Mon Jan 05 15:18:12 2026", *"abcd"), b"From a Mon"], 4),
        (_lines("From MAILER-DAEMON Sat Nov 21 10:{}:00 2026", *map(str, range(10, 40))), 30),
        (_lines("From - Sat Nov 21 10:{}:00 2026", *map(str, range(10, 25))), 0),  # too few
        (_lines("From ???@??? Sat Nov {} 10:00:00 2026", *map(str, range(1, 29))), 0),
        (_lines("From {}@x Sat Nov 21 10:00:00 2026", *map(str, range(30))), 0),
        (_lines("From a@x Mon Jan  5 15:18:12 2026", "a"), 0),
        (_lines("From a@x Mon Jan  5 15:18:1{} 2026", *"1123"), 0),
        ([], 0),
    ],
)
def test_lines_of_one_export_are_made_up(lines: list[bytes], made_up: int) -> None:
    found = find_made_up(lines)
    assert sum(line in found for line in lines) == made_up
