"""HyperKitty's export, against a server that answers as its views do.

Written after hyperkitty/urls.py, views/mlist.py (export_mbox) and models/email.py (as_message).
"""

import re
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.policy import default
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from mail_assets.mail.archive.mbox import split_archive
from mail_assets.month import ListMonth
from mail_assets.sources.source import Fetched, SourceError, Unchanged
from mail_assets.sources.web_pages import settle_boundary
from mail_assets_tests.sources.mails import APRIL_2024, MARCH_2024, open_list
from mail_assets_tests.sources.web import QuietHandler, listen

EXPORT = re.compile(r"/archives/list/(?P<list>[^/@]+@[^/@]+)/export/(?P<file>[^/]+)\.mbox\.gz")
FEBRUARY = ListMonth("dev", "2024-02")
EMAILS = {
    number: datetime.fromisoformat(date).replace(tzinfo=UTC)
    for number, date in enumerate(
        ["2024-03-01 00:00:00", "2024-03-31 23:59:59", "2024-04-01 00:00:00"]
    )
}


def as_message(number: int, date: datetime) -> bytes:
    """Return a message as HyperKitty exports it."""
    message = EmailMessage()
    message.set_unixfrom(f"From ann@example.org {date:%c}")
    message["From"] = "Ann <ann@example.org>"
    message["To"] = "dev@example.org"
    message["Subject"] = "x"
    message["Date"] = f"{date:%a, %d %b %Y %H:%M:%S %z}"
    message["Message-ID"] = f"<{number}@example.org>"
    message.set_content("Ask bob(a)example.org\n", subtype="plain")
    message.make_mixed()
    return message.as_bytes(unixfrom=True)


def as_old_message(number: int, date: datetime) -> bytes:
    """Return a message as older versions export it."""
    message = MIMEMultipart()
    message.set_unixfrom(f"From ann at example.org {date:%c}")
    message["From"] = "Ann <ann at example.org>"
    message["Message-ID"] = f"<{number}@example.org>"
    message["Date"] = f"{date:%a, %d %b %Y %H:%M:%S %z}"
    message.attach(MIMEText("Ask bob(a)example.org\n"))
    return message.as_bytes(unixfrom=True)


class HyperKitty(QuietHandler, BaseHTTPRequestHandler):
    """One public list, dev@example.org."""

    exports = True
    write = staticmethod(as_message)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        found = EXPORT.fullmatch(parts.path)
        if not self.exports or found is None or found["list"] != "dev@example.org":
            return self.respond(404, b"Not Found", "text/html")
        fields = parse_qs(parts.query)
        try:
            start, end = (
                datetime.strptime(fields[name][0], "%Y-%m-%d").replace(tzinfo=UTC)
                for name in ("start", "end")
            )
        except (KeyError, ValueError):
            return self.respond(400, b"Invalid dates", "text/html")
        compressor = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS | 16)
        data = b""
        for number, date in EMAILS.items():
            if start <= date < end:
                data += compressor.compress(self.write(number, date))
                data += compressor.compress(b"\n\n")
        return self.respond(200, data + compressor.flush(), "application/gzip")


@pytest.fixture
def site() -> Iterator[str]:
    with listen(HyperKitty) as port:
        yield f"http://127.0.0.1:{port}/archives"


@pytest.mark.parametrize("write", [as_message, as_old_message])
def test_each_message_is_of_one_month(
    site: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[int, datetime], bytes],
) -> None:
    monkeypatch.setattr(HyperKitty, "write", staticmethod(write))
    source = open_list(f"{site}/list/dev@example.org/", tmp_path, "hyperkitty")
    assert [*source.versions()][:3] == [FEBRUARY, MARCH_2024, APRIL_2024]
    numbers = {}
    for month in (MARCH_2024, APRIL_2024):
        found = source.fetch(month, tmp_path / month.month)
        assert isinstance(found, Fetched)
        mails = [message.raw for message in split_archive(found.path, "plain")]
        numbers[month] = [raw.split(b"Message-ID: <")[1][:1] for raw in mails]
        again = source.fetch(month, tmp_path / "again", found.version)
        assert again == Unchanged(found.version, found.url)
    assert numbers == {MARCH_2024: [b"0", b"1"], APRIL_2024: [b"2"]}


def test_settled_boundary_leaves_the_same_message() -> None:
    quoted = b'Content-Type: multipart/mixed; boundary="===============1234567890123456789=="\n'
    raw = as_message(1, EMAILS[1]).split(b"\n", 1)[1].replace(b"Ask", quoted + b"Ask")
    settled = settle_boundary(raw)
    assert settled != raw
    assert quoted in settled
    before, after = (message_from_bytes(one, policy=default) for one in (raw, settled))
    assert [part.get_content() for part in after.iter_parts()] == [
        part.get_content() for part in before.iter_parts()
    ]
    assert settle_boundary(b"no header") == b"no header"


def test_month_without_a_message_has_no_archive(site: str, tmp_path: Path) -> None:
    source = open_list(f"{site}/list/dev@example.org", tmp_path, "hyperkitty")
    assert source.fetch(FEBRUARY, tmp_path / "x") is None
    assert [*tmp_path.iterdir()] == []


def test_unknown_list_or_disabled_export_is_an_error(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = r"list dev, month 2024-03: .* is not there: .*switched the export off"
    with pytest.raises(SourceError, match=reason):
        open_list(f"{site}/list/other@example.org/", tmp_path, "hyperkitty").fetch(
            MARCH_2024, tmp_path / "x"
        )
    monkeypatch.setattr(HyperKitty, "exports", False)
    with pytest.raises(SourceError, match=reason):
        open_list(f"{site}/list/dev@example.org/", tmp_path, "hyperkitty").fetch(
            MARCH_2024, tmp_path / "x"
        )


def test_export_that_breaks_off_is_refused(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = HyperKitty.respond

    def break_off(self: HyperKitty, status: int, body: bytes, kind: str) -> None:
        answer(self, status, body[:-5], kind)

    monkeypatch.setattr(HyperKitty, "respond", break_off)
    source = open_list(f"{site}/list/dev@example.org/", tmp_path, "hyperkitty")
    with pytest.raises(SourceError, match="cut off") as found:
        source.fetch(MARCH_2024, tmp_path / "x")
    assert found.value.retryable


def test_export_that_is_no_mbox_is_refused_by_its_url(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HyperKitty, "write", staticmethod(lambda *_: b"From a\n" + bytes(9)))
    source = open_list(f"{site}/list/dev@example.org/", tmp_path, "hyperkitty")
    where = rf"list dev, month 2024-03: {site}/list/dev@example\.org/export/\S+: is no mbox"
    with pytest.raises(SourceError, match=where):
        source.fetch(MARCH_2024, tmp_path / "x")
    assert [*tmp_path.iterdir()] == []
