"""Pages of links, URL templates, Pony Mail and HyperKitty, from servers of this process."""

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.policy import default
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

from mail_assets.mail.archive.mbox import split_archive
from mail_assets.month import ListMonth
from mail_assets.sources import http_reader
from mail_assets.sources.source import Fetched, SourceError, Unchanged
from mail_assets.sources.web_pages import PageSource, settle_boundary
from mail_assets_tests.http.loopback import QuietHandler, listen
from mail_assets_tests.sources.mails import (
    APRIL_2024,
    APRIL_DATE,
    MARCH_2024,
    fetch_months,
    mail,
    open_list,
)
from mail_assets_tests.sources.samples import FEBRUARY, JANUARY, MARCH
from mail_assets_tests.sources.web import (
    GZ,
    MBOX,
    Reply,
    Server,
    fetched,
    options,
    page,
    template,
)

APRIL_2003 = ListMonth("hackers", "2003-04")

# --- pages of links ---------------------------------------------------------------------------


def test_page_lists_the_months_that_its_links_name(server: Server, slept: list[float]) -> None:
    url = server.on(
        "/list/",
        Reply(
            page(
                "?C=N;O=D",
                "../",
                "2020-01/",
                "2003-April/thread.html",
                "2003-April.txt.gz",
                "mbox/x.202001",
                "/elsewhere/x.202002#top",
                "/elsewhere/x.202002",
                "x%2D202003.mbox",
                "mailto:ann@example.org",
                "http://[broken/x.202005",
                "http://other.example.org/x.202004",
                "ftp://127.0.0.1/x.202006",
            )
        ),
    )
    source = PageSource("hackers", url, options(slept))
    assert source.versions() == dict.fromkeys([APRIL_2003, JANUARY, FEBRUARY, MARCH], "")


def test_page_is_read_once_for_all_months(
    server: Server, tmp_path: Path, slept: list[float]
) -> None:
    url = server.on("/list/", Reply(page("x.202001", "/deep/x.202002")))
    server.on("/list/x.202001", Reply(MBOX))
    server.on("/deep/x.202002", Reply(MBOX))
    source = PageSource("hackers", url, options(slept))
    assert fetched(source.fetch(JANUARY, tmp_path / "1")).url == f"{server.base}/list/x.202001"
    assert fetched(source.fetch(FEBRUARY, tmp_path / "2")).url == f"{server.base}/deep/x.202002"
    assert source.fetch(MARCH, tmp_path / "3") is None
    assert [path for path, _ in server.seen] == ["/list/", "/list/x.202001", "/deep/x.202002"]


def test_links_follow_redirect_and_base_element(
    server: Server, tmp_path: Path, slept: list[float]
) -> None:
    url = server.on("/old", Reply(status=301, headers=(("Location", "/new/index.html"),)))
    server.on("/new/index.html", Reply(page("x.202001", head='<base href="files/">')))
    server.on("/new/files/x.202001", Reply(MBOX))
    source = PageSource("hackers", url, options(slept))
    found = fetched(source.fetch(JANUARY, tmp_path / "target"))
    assert found.url == f"{server.base}/new/files/x.202001"


def test_two_links_of_month_are_refused(server: Server, tmp_path: Path, slept: list[float]) -> None:
    url = server.on("/", Reply(page("x.202001", "x.202001.gz", "x.202002")))
    server.on("/x.202002", Reply(MBOX))
    source = PageSource("hackers", url, options(slept))
    assert list(source.versions()) == [JANUARY, FEBRUARY]
    fetched(source.fetch(FEBRUARY, tmp_path / "target"))
    with pytest.raises(SourceError, match=r"month 2020-01: .*/x\.202001 and .*/x\.202001\.gz"):
        source.fetch(JANUARY, tmp_path / "target")


@pytest.mark.parametrize(("reply", "reason"), [
    (Reply(page("/login", "/help")), "has no link to a monthly archive"),
    (Reply(status=404), "HTTP 404; check the list's source"),
    (Reply(b" " * (http_reader.MAX_PAGE + 1)), "larger than the limit"),
    (Reply(GZ[:100], headers=(("Content-Encoding", "br"),)), "content coding is 'br'"),
])  # fmt: skip
def test_page_without_archives_is_an_error(
    server: Server, slept: list[float], reply: Reply, reason: str
) -> None:
    source = PageSource("hackers", server.on("/list/", reply), options(slept))
    with pytest.raises(SourceError, match=f"list hackers: .*{reason}") as found:
        source.versions()
    assert not found.value.retryable


def test_dead_link_is_an_error_and_not_an_empty_month(
    server: Server, tmp_path: Path, slept: list[float]
) -> None:
    source = PageSource("hackers", server.on("/", Reply(page("x.202001"))), options(slept))
    with pytest.raises(SourceError, match=r"links to .* which does not exist"):
        source.fetch(JANUARY, tmp_path / "target")


def test_page_sent_gzipped_is_read(server: Server, slept: list[float]) -> None:
    headers = (("Content-Encoding", "gzip"),)
    url = server.on("/", Reply(gzip.compress(page("x.202001")), headers=headers))
    assert list(PageSource("hackers", url, options(slept)).versions()) == [JANUARY]


def test_plain_web_servers_folder_is_a_source(tmp_path: Path, slept: list[float]) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    for name, data in (("x.202001", MBOX), ("x.202002.gz", GZ), ("README", b"")):
        (folder / name).write_bytes(data)

    class Listing(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with listen(partial(Listing, directory=folder)) as port:
        url = f"http://127.0.0.1:{port}/"
        source = PageSource("hackers", url, options(slept))
        for month, data in {JANUARY: MBOX, FEBRUARY: GZ}.items():
            found = fetched(source.fetch(month, tmp_path / month.month))
            assert (tmp_path / month.month).read_bytes() == data
            again = source.fetch(month, tmp_path / "again", found.version)
            assert again == Unchanged(found.version, found.url)
        assert list(source.versions()) == [JANUARY, FEBRUARY]


# --- templates --------------------------------------------------------------------------------


def test_template_has_every_month_from_its_start_to_now(server: Server) -> None:
    before = f"{datetime.now(UTC):%Y-%m}"
    months = template(server).versions()
    assert list(months)[:2] == [JANUARY, FEBRUARY]
    assert list(months)[-1].month in (before, f"{datetime.now(UTC):%Y-%m}")
    assert set(months.values()) == {""}
    assert server.seen == []


@pytest.mark.parametrize("status", [404, 410])
def test_month_missing_at_the_server_is_none(server: Server, tmp_path: Path, status: int) -> None:
    server.on("/x.202001", Reply(b"gone", status))
    assert template(server).fetch(JANUARY, tmp_path / "target") is None
    assert list(tmp_path.iterdir()) == []


# --- Pony Mail Foal -----------------------------------------------------------------------------
# written after server/endpoints/mbox.py and stats.py, plugins/defuzzer.py and server/main.py

MAILS = [
    ("2024-03", mail(1, "Fri, 01 Mar 2024 00:00:00 +0000", "From here\n>From there\n")),
    ("2024-03", mail(2, "Sun, 31 Mar 2024 23:59:59 +0000")),
    ("2024-04", mail(3, APRIL_DATE)),
]


def convert_source(text: str) -> str:
    """Write a message as server/endpoints/mbox.py does."""
    lines = f"From MAILER-DAEMON Thu Jan  1 00:00:00 1970\n{text}".split("\n")
    quoted = [lines[0]] + [f">{x}" if re.match(r"^>*From\s+", x) else x for x in lines[1:]]
    source = "".join(f"{line}\n" for line in quoted)
    return source if source.endswith("\n\n") else f"{source}\n"


class Ponymail(QuietHandler, BaseHTTPRequestHandler):
    """One public list, dev@a.example.org."""

    protocol_version = "HTTP/1.1"
    mails = MAILS

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        fields = dict(parse_qsl(parts.query))
        if parts.path not in ("/api/mbox.lua", "/api/stats.lua"):
            return self.respond(404, b"API Endpoint not found!", "text/plain")
        if not fields.get("list") or not fields.get("domain") or "@" in fields["list"]:
            what = b"You must specify a list part of the mailing list(s) to search"
            return self.respond(400, what, "text/plain")
        known = (fields["list"], fields["domain"]) == ("dev", "a.example.org")
        mails = self.mails if known else []
        if parts.path == "/api/stats.lua":
            months = Counter(month for month, _ in mails)
            answer = {"firstYear": 1970, "active_months": months, "hits": 0, "emails": []}
            return self.respond(200, json.dumps(answer).encode(), "application/json")
        # without a month the last 30 days are sent, which have no message here
        if not re.fullmatch(r"\d{4}-\d+", fields.get("d", "")):
            mails = []
        wanted = [raw for month, raw in mails if month == fields["d"]]
        self.send_response(200)
        self.send_header("Content-Type", "application/mbox")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for raw in wanted:
            chunk = convert_source(raw.decode()).encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")
        return None


@pytest.fixture
def ponymail() -> Iterator[str]:
    with listen(Ponymail) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    "page",
    ["/list.html?dev@a.example.org", "/?dev@a.example.org", "/list?dev@a.example.org:2024-3"],
)
def test_months_with_messages_are_listed_and_read(ponymail: str, tmp_path: Path, page: str) -> None:
    source = open_list(f"{ponymail}{page}", tmp_path, "ponymail")
    assert source.versions() == {MARCH_2024: "2 messages", APRIL_2024: "1 messages"}
    months = fetch_months(source, tmp_path)
    # the server ends each message with a line of its own
    assert {month: [x.rstrip(b"\n") for x in mails] for month, mails in months.items()} == {
        "2024-03": [raw.rstrip(b"\n") for _, raw in MAILS[:2]],
        "2024-04": [MAILS[2][1].rstrip(b"\n")],
    }


def test_new_message_is_another_version(
    ponymail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{ponymail}/list.html?dev@a.example.org"
    before = open_list(url, tmp_path, "ponymail").versions()
    monkeypatch.setattr(Ponymail, "mails", [*MAILS, ("2024-04", mail(4, APRIL_DATE))])
    after = open_list(url, tmp_path, "ponymail").versions()
    assert (after[MARCH_2024], after[APRIL_2024]) == (before[MARCH_2024], "2 messages")


def test_same_number_does_not_prove_the_same_messages(
    ponymail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ponymail, "mails", [*MAILS[:2], ("2024-04", mail(9, APRIL_DATE))])
    source = open_list(f"{ponymail}/list.html?dev@a.example.org", tmp_path, "ponymail")
    found = source.fetch(APRIL_2024, tmp_path / "x", "1 messages")
    assert isinstance(found, Fetched)
    assert b"<9@" in found.path.read_bytes()


@pytest.mark.parametrize(("page", "reason"), [
    ("/list.html?other@a.example.org", "reports no public message; check the list's name"),
    ("/pony/list.html?dev@a.example.org", "is not Pony Mail Foal's statistics"),
])  # fmt: skip
def test_unknown_list_is_an_error_and_not_an_empty_one(
    ponymail: str, tmp_path: Path, page: str, reason: str
) -> None:
    with pytest.raises(SourceError, match=f"list dev: .*{reason}"):
        open_list(f"{ponymail}{page}", tmp_path, "ponymail").versions()


def test_month_that_is_counted_and_not_sent_is_an_error(
    ponymail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_list(f"{ponymail}/list.html?dev@a.example.org", tmp_path, "ponymail")
    source.versions()
    monkeypatch.setattr(Ponymail, "mails", [])
    with pytest.raises(SourceError, match=r"month 2024-03: .*but the statistics report 2 messages"):
        source.fetch(MARCH_2024, tmp_path / "x")


@pytest.mark.parametrize("answer", [
    "[" * 100_000, '{"active_months": {"2024-03": 1e999}}', '{"active_months": [1]}',
    '{"active_months": {"2024-03": [1]}}', "null", "",
])  # fmt: skip
def test_wrong_statistics_name_their_list(server: Server, tmp_path: Path, answer: str) -> None:
    path = "/api/stats.lua?list=dev&domain=a.example.org&quick=1"
    server.on(path, Reply(answer.encode()))
    with pytest.raises(SourceError, match=r"list dev: .*is not Pony Mail Foal's statistics"):
        open_list(f"{server.base}/list.html?dev@a.example.org", tmp_path, "ponymail").versions()


# --- HyperKitty ---------------------------------------------------------------------------------
# written after hyperkitty/urls.py, views/mlist.py (export_mbox) and models/email.py (as_message)

FEBRUARY_2024 = ListMonth("dev", "2024-02")
EXPORT = re.compile(r"/archives/list/(?P<list>[^/@]+@[^/@]+)/export/(?P<file>[^/]+)\.mbox\.gz")
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
def hyperkitty() -> Iterator[str]:
    with listen(HyperKitty) as port:
        yield f"http://127.0.0.1:{port}/archives"


@pytest.mark.parametrize("write", [as_message, as_old_message])
def test_each_message_is_of_one_month(
    hyperkitty: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[int, datetime], bytes],
) -> None:
    monkeypatch.setattr(HyperKitty, "write", staticmethod(write))
    source = open_list(f"{hyperkitty}/list/dev@example.org/", tmp_path, "hyperkitty")
    assert [*source.versions()][:3] == [FEBRUARY_2024, MARCH_2024, APRIL_2024]
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


def test_unknown_list_or_disabled_export_is_an_error(
    hyperkitty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = r"list dev, month 2024-03: .* does not exist: .*switched the export off"
    with pytest.raises(SourceError, match=reason):
        open_list(f"{hyperkitty}/list/other@example.org/", tmp_path, "hyperkitty").fetch(
            MARCH_2024, tmp_path / "x"
        )
    monkeypatch.setattr(HyperKitty, "exports", False)
    with pytest.raises(SourceError, match=reason):
        open_list(f"{hyperkitty}/list/dev@example.org/", tmp_path, "hyperkitty").fetch(
            MARCH_2024, tmp_path / "x"
        )


def test_export_that_breaks_off_is_refused(
    hyperkitty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = HyperKitty.respond

    def break_off(self: HyperKitty, status: int, body: bytes, kind: str) -> None:
        answer(self, status, body[:-5], kind)

    monkeypatch.setattr(HyperKitty, "respond", break_off)
    source = open_list(f"{hyperkitty}/list/dev@example.org/", tmp_path, "hyperkitty")
    with pytest.raises(SourceError, match="cut off") as found:
        source.fetch(MARCH_2024, tmp_path / "x")
    assert found.value.retryable


def test_export_that_is_not_an_mbox_is_refused_by_its_url(
    hyperkitty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HyperKitty, "write", staticmethod(lambda *_: b"From a\n" + bytes(9)))
    source = open_list(f"{hyperkitty}/list/dev@example.org/", tmp_path, "hyperkitty")
    where = rf"list dev, month 2024-03: {hyperkitty}/list/dev@example\.org/export/\S+"
    with pytest.raises(SourceError, match=f"{where}: it is not an mbox"):
        source.fetch(MARCH_2024, tmp_path / "x")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("kind", "path"),
    [("ponymail", "/list.html?dev@a.example.org"), ("hyperkitty", "/list/dev@example.org")],
)
def test_month_without_a_message_has_no_archive(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, path: str
) -> None:
    source = open_list(f"{request.getfixturevalue(kind)}{path}", tmp_path, kind)
    assert source.fetch(FEBRUARY_2024, tmp_path / "x") is None
    assert [*tmp_path.iterdir()] == []
