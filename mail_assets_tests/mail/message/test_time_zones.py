"""Time zones as mail programs wrote them."""

import pytest

from mail_assets.mail.message.dates import parse_offset


@pytest.mark.parametrize(
    ("zone", "offset"),
    [
        ("", (0, True)),
        ("+0100", (60, True)),
        ("EST", (-300, True)),
        ("+0200 (MET DST)", (120, True)),
        ("+6700 (EST)", (-300, False)),
        ("Eastern Daylight Time", (-240, False)),
        ("nowhere", (0, False)),
    ],
)
def test_a_zone_is_minutes_east_and_sure_or_not(zone: str, offset: tuple[int, bool]) -> None:
    assert parse_offset(f" {zone}".lower()) == offset


@pytest.mark.parametrize(
    ("zone", "minutes"),
    [
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
    ],
)
def test_sloppy_zones_are_understood(zone: str, minutes: int) -> None:
    assert parse_offset(f" {zone}".lower())[0] == minutes
