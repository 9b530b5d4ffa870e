"""Detection of the dialect of an archive."""

import pytest

from mail_assets.mail.archive.mbox import SAMPLE, contradicts, find_dialect
from mail_assets_tests.mail.archive.test_boundaries import PEOPLE, PG, PIPERMAIL, TEXTS, archive
from mail_assets_tests.mail.mails import GIT_LINE, head

LOCALISED = b"From ana en example.org  Mon Jan %d 10:00:00 2026\n"
PUBLIC_INBOX = b"From mboxrd@z Thu Jan  1 00:00:00 1970\n"
PLAIN_PIPERMAIL = b"From jo@example.org  Mon Jan 05 10:00:00 2026\nFrom: jo@example.org (Jo Doe)\n"
DATED = b"Date: Mon, 5 Jan 2026 10:00:00 +0000\nMessage-ID: <%d@example.org>\n\nx\n\n"


def texts(text: bytes) -> bytes:
    return archive(PEOPLE, [*TEXTS, text])


CASES: dict[str, tuple[bytes, str | None]] = {
    "pipermail": (archive(PIPERMAIL, TEXTS), "pipermail"),
    "localised pipermail": (archive(LOCALISED, TEXTS), "pipermail"),
    "pipermail that hides no address": (
        b"".join(PLAIN_PIPERMAIL + DATED % n for n in range(4)),
        "pipermail",
    ),
    "postgresql.org": (archive(PG, TEXTS, between=b""), "pg"),
    "a month of postgresql.org that ends with blank lines": (archive(PG, TEXTS), "pg"),
    "public-inbox": (b"".join(PUBLIC_INBOX + head(n) + b"x\n\n" for n in range(4)), "mboxrd"),
    "a quoted line": (texts(b"He said:\n\n>From here on.\nYes.\n"), "mboxo"),
    "a quoted line in a quote": (texts(b"> He said:\n>>From here on.\n> Yes.\n"), "mboxrd"),
    "a twice quoted line": (texts(b"He said:\n\n>>From here on.\nYes.\n"), "mboxrd"),
    "a reply to a line with From": (texts(b">He said:\n>From here on.\n>Yes.\n"), None),
    "a line that is not quoted": (
        texts(b"He said:\n\nFrom here on.\n\n>From here on.\nYes.\n"),
        "plain",
    ),
    "an unknown writer that leaves no blank lines": (archive(PEOPLE, TEXTS, between=b""), "pg"),
    "nothing that tells": (archive(PEOPLE, TEXTS), None),
    "patches": (b"".join(GIT_LINE + head(n) + b"x\n\n" for n in range(4)), None),
    "UUCP": (PEOPLE % 1 + b">From jo Mon Jan  5 10:00:00 1996 remote from a\n" + head(1), None),
    "nothing": (b"", None),
}


@pytest.mark.parametrize("crlf", [False, True], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", CASES)
def test_dialect_is_detected_by_its_writer(name: str, crlf: bool) -> None:
    data, dialect = CASES[name]
    assert find_dialect(data.replace(b"\n", b"\r\n") if crlf else data) == dialect


def test_no_more_than_a_sample_is_looked_at() -> None:
    long = PEOPLE % 1 + head(1) + b"x\n" * (SAMPLE // 2) + b"\n"
    assert find_dialect(long + texts(b"He said:\n\n>From here on.\nYes.\n")) is None


@pytest.mark.parametrize(
    ("setting", "found", "wrong"),
    [
        ("plain", "pipermail", True),
        ("plain", "mboxrd", True),
        ("mboxo", "mboxrd", True),
        ("mboxrd", "plain", True),
        ("plain", "plain", False),
        ("pipermail", "", False),
        ("mboxrd", "mboxo", False),
        ("pg", "plain", False),
    ],
)
def test_setting_contradicts_an_archive_that_shows_another(
    setting: str, found: str, wrong: bool
) -> None:
    assert contradicts(setting, found) == wrong
