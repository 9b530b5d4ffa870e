"""Messages written as mboxrd come back unchanged, each in one month; the lock of a cache."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.mail.archive.mbox import RawMessage, split_mbox
from mail_assets.mail.message.parse import parse_message
from mail_assets.sources.message_source import (
    FROM_LINE,
    format_message,
    hold_folder,
    month_of_message,
    strip_envelope,
)
from mail_assets.sources.open import open_source
from mail_assets.sources.source import HttpOptions
from mail_assets_tests.sources.mails import mail, split_mboxrd
from mail_assets_tests.waits import is_locked

BODIES = st.lists(
    st.sampled_from([b"From x", b">From y", b"text", b"", b">", b"From", b"\xff\xfe", b"\r"])
).map(lambda lines: b"".join(line + b"\n" for line in lines))


@given(st.lists(BODIES, min_size=1, max_size=4))
def test_every_message_comes_back_byte_for_byte(bodies: list[bytes]) -> None:
    mails = [mail(number) + body for number, body in enumerate(bodies)]
    assert split_mboxrd(b"".join(map(format_message, mails))) == mails


def test_git_takes_the_same_messages_out_of_it(tmp_path: Path) -> None:
    mails = [mail(n, body=f"From {n}\n>From the shore\n\nFrom: x\n") for n in range(3)]
    mbox = tmp_path / "mbox"
    mbox.write_bytes(b"".join(map(format_message, mails)))
    command = ["git", "mailsplit", "--mboxrd", f"-o{tmp_path}", "--", str(mbox)]
    assert subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout == b"3\n"
    for number, raw in enumerate(mails, 1):
        written = (tmp_path / f"{number:04}").read_bytes().removeprefix(FROM_LINE)
        assert written.removesuffix(b"\n") == raw


def test_message_that_looks_like_an_mbox_stays_one() -> None:
    whole = b"From eve@example.org Tue Jan  6 10:00:00 2026\nFrom: eve@example.org\n\nFake\n"
    mails = [mail(1, body="Hello\n\n") + whole, mail(2)]
    assert split_mboxrd(b"".join(map(format_message, mails))) == mails


@pytest.mark.parametrize("envelope", [
    b"From ann@example.org Tue Jan  6 10:00:00 2026\n",
    b">From ann@example.org Tue Jan  6 10:00:00 2026\r\n",
    b"\r\nFrom a b\nFrom c d\n",
])  # fmt: skip
def test_from_lines_above_the_header_are_dropped(envelope: bytes) -> None:
    assert strip_envelope(envelope + mail(1)) == mail(1)
    assert split_mboxrd(format_message(envelope + mail(1))) == [mail(1)]


@pytest.mark.parametrize(
    "raw", [b"no header at all\n", b"\nonly a body\n", b"\xff\xfe", b" x: y\n"]
)
def test_message_without_header_is_split_from_the_last(raw: bytes) -> None:
    archive = format_message(mail(1)) + format_message(raw) + format_message(mail(2))
    first, odd, last = split_mbox(archive, "mboxrd")
    assert (first.raw, last.raw) == (mail(1), mail(2))
    assert odd.suspicious
    assert odd.raw.endswith(raw if raw.endswith(b"\n") else raw + b"\n")


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
def test_first_date_that_can_be_believed_decides(header: str, month: str) -> None:
    assert month_of_message(f"{header}\nHello\n".encode(), MAY) == month


@pytest.mark.parametrize("arrived", [None, datetime(1970, 1, 1, tzinfo=UTC), SOON])
def test_message_without_any_date_is_in_1970(arrived: datetime | None) -> None:
    assert month_of_message(b"Subject: x\n\nHello\n", arrived) == "1970-01"


@pytest.mark.parametrize("header", [DATE, DATE + RECEIVED, RECEIVED, "Date: 31 May 2024 23:59\n"])
def test_parser_dates_a_message_in_its_archives_month(header: str) -> None:
    raw = f"From: ann@example.org\n{header}\nHello\n".encode()
    month = month_of_message(raw, MAY)
    message = RawMessage(0, len(raw), b"", raw, False, False)
    parsed = parse_message(message, month=month, dialect="mboxrd")
    assert f"{parsed.sent_at:%Y-%m}" == month


# --- the lock of a cache -------------------------------------------------------------------------


def test_folder_is_made_and_held_until_the_block_ends(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with hold_folder(folder):
        assert is_locked(folder)
    assert not is_locked(folder)
    with pytest.raises(ZeroDivisionError), hold_folder(folder):
        raise ZeroDivisionError
    assert not is_locked(folder)


def test_new_messages_are_looked_at_by_one_process_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail" / "a.eml").write_bytes(mail(1))
    held: list[bool] = []
    cache = tmp_path / "cache"

    def look(raw: bytes, arrived: object) -> str:
        [folder] = cache.iterdir()
        held.append(is_locked(folder))
        return "2024-03"

    monkeypatch.setattr("mail_assets.sources.message_source.month_of_message", look)
    source = open_source(
        "dev", str(tmp_path / "mail"), start="2024-01", options=HttpOptions(), cache=cache
    )
    source.versions()
    assert held == [True]
