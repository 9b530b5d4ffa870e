"""Which of a message's dates is believed."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.dates import decide_sent_at

FIVE = "Mon, 5 Jan 2026 15:18:12"


def at(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)


LINE = "From a@b.org Tue Jan  6 00:00:00 2026"
HOPS = [
    "from list by archive; Mon, 5 Jan 2026 15:30:00 +0000",
    "from home by list (x; y); Mon, 5 Jan 2026 15:20:00 +0000",
]


@pytest.mark.parametrize(
    ("dates", "received", "line", "source", "expected"),
    [
        ([f"{FIVE} +0000"], HOPS, LINE, "date", "2026-01-05 15:18:12"),
        ([f"{FIVE} +0000"], [], "", "date", "2026-01-05 15:18:12"),
        (["Tue, 30 Dec 2025 15:00:00 +0000"], HOPS, LINE, "date", "2025-12-30 15:00:00"),
        (["nonsense", f"{FIVE} +0000"], HOPS, LINE, "date", "2026-01-05 15:18:12"),
        (["Sat, 27 Dec 2025 15:00:00 +0000"], HOPS, LINE, "received", "2026-01-05 15:20:00"),
        (["Wed, 7 Jan 2026 15:00:00 +0000"], HOPS, LINE, "received", "2026-01-05 15:20:00"),
        (["Wed, 5 Jan 2028 15:18:12 +0000"], HOPS, LINE, "received", "2026-01-05 15:20:00"),
        ([""], HOPS, LINE, "received", "2026-01-05 15:20:00"),
        ([], HOPS, LINE, "received", "2026-01-05 15:20:00"),
        (["Mon, 5 Jan 1970 00:00:00 +0000"], [], LINE, "from_line", "2026-01-06 00:00:00"),
        ([], ["x; Mon, 5 Jan 2015 15:30:00 +0000"], LINE, "from_line", "2026-01-06 00:00:00"),
        ([], [], "From nobody Sat Nov 21 10:00:00 2026", "archive_month", "2026-01-01 00:00:00"),
        ([], [], "", "archive_month", "2026-01-01 00:00:00"),
    ],
)
def test_a_date_is_believed_within_its_bounds(
    dates: list[str], received: list[str], line: str, source: str, expected: str
) -> None:
    found = decide_sent_at(dates, received, line, "2026-01")
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
    found = decide_sent_at([text], [text], text, "2026-01")
    assert found.at.tzinfo is UTC


@settings(max_examples=200)
@given(
    hours=st.lists(st.integers(-40 * 24, 40 * 24), min_size=1, max_size=5),
    unreadable=st.integers(0, 4),
)
def test_date_must_fit_all_received_dates_though_not_all_are_read(
    hours: list[int], unreadable: int
) -> None:
    own = at("2026-01-15 12:00:00")
    hops = [own + timedelta(hours=hour) for hour in hours]
    lines = [f"{hop:%d %b %Y %H:%M:%S} +0000" for hop in hops]
    lines.insert(unreadable, "by mail.example.org")
    found = decide_sent_at(["15 Jan 2026 12:00:00 +0000"], iter(lines), "", "2026-01")
    fits = min(hops) - timedelta(days=7) <= own <= max(hops) + timedelta(days=1)
    assert (found.source == "date") == fits
    if not fits and found.source == "received":
        sane = [
            hop for hop in hops if at("2025-11-17 00:00:00") <= hop <= at("2026-03-18 00:00:00")
        ]
        assert found.at == min(hop for hop in sane if hop >= max(sane) - timedelta(days=7))


def test_copies_of_undated_mail_are_sent_at_the_same_time() -> None:
    last_hops = [
        "from list by ann; Mon, 5 Jan 2026 15:30:07 +0000",
        "from list by bob; Mon, 5 Jan 2026 15:31:59 +0000",
    ]
    first, second = (decide_sent_at([], [hop, *HOPS], LINE, "2026-01") for hop in last_hops)
    assert first == second


def test_a_clock_that_was_wrong_does_not_date_undated_mail() -> None:
    wrong = "from home by list; Sat, 20 Dec 2025 15:20:00 +0000"
    assert decide_sent_at([], [*HOPS, wrong], LINE, "2026-01").at == at("2026-01-05 15:20:00")
