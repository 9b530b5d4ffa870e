"""The month in which a single message is filed."""

from datetime import UTC, datetime, timedelta

import pytest

from mail_assets.mail.archive.mbox import RawMessage
from mail_assets.mail.message.parse import parse_message
from mail_assets.sources.message_source import month_of_message

MAY = datetime(2024, 5, 3, tzinfo=UTC)
DATE = "Date: Tue, 05 Mar 2024 10:00:00 +0000\n"
RECEIVED = "Received: from a by b; Mon, 01 Apr 2024 10:00:00 +0000\n"
SOON = datetime.now(UTC) + timedelta(days=40)


@pytest.mark.parametrize(
    ("header", "month"),
    [
        (DATE, "2024-03"),
        ("Date: Fri, 01 Mar 2024 00:30:00 +0200\n", "2024-02"),
        ("Date: Thu, 29 Feb 2024 23:30:00 -0100\n", "2024-03"),
        ("Date: 5 Mar 24 10:00\n", "2024-03"),
        ("Date: Mon, 01 Apr 2024 09:00:00 +0000\n" + RECEIVED, "2024-04"),
        # three weeks before it was received: a wrong clock
        (DATE + RECEIVED, "2024-04"),
        ("Date: never\n" + RECEIVED, "2024-04"),
        ("Date: Thu, 01 Jan 1970 00:00:00 +0000\n" + RECEIVED, "2024-04"),
        ("Date: Thu, 01 Jan 1970 00:00:00 +0000\n", "2024-05"),
        ("Date: Wed, 05 Mar 2098 10:00:00 +0000\n" + RECEIVED, "2024-04"),
        ("Date: Wed, 05 Mar 2098 10:00:00 +0000\n", "2024-05"),
        ("Date: Wed, 05 Mar 9998 10:00:00 +0000\n", "2024-05"),
        pytest.param(
            f"Date: {SOON:%a, %d %b %Y %H:%M:%S} +0000\n", "2024-05", id="a date soon to come"
        ),
        ("Subject: no date at all\n", "2024-05"),
        ("", "2024-05"),
        ("From ann@example.org Tue Jan  6 10:00:00 2026\n" + DATE, "2024-03"),
    ],
)
def test_the_first_date_that_can_be_believed_decides(header: str, month: str) -> None:
    assert month_of_message(f"{header}\nHello\n".encode(), MAY) == month


@pytest.mark.parametrize("arrived", [None, datetime(1970, 1, 1, tzinfo=UTC), SOON])
def test_where_nothing_tells_it_is_the_first_month_of_all(arrived: datetime | None) -> None:
    assert month_of_message(b"Subject: x\n\nHello\n", arrived) == "1970-01"


@pytest.mark.parametrize("header", [DATE, DATE + RECEIVED, RECEIVED, "Date: 31 May 2024 23:59\n"])
def test_the_parser_dates_the_message_in_the_month_of_its_archive(header: str) -> None:
    raw = f"From: ann@example.org\n{header}\nHello\n".encode()
    month = month_of_message(raw, MAY)
    message = RawMessage(0, len(raw), b"", raw, False, False)
    parsed = parse_message(message, month=month, dialect="mboxrd")
    assert f"{parsed.sent_at:%Y-%m}" == month
