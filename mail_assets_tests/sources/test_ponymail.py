"""Pony Mail Foal's mbox and statistics, against a server that answers as its endpoints do.

Written after server/endpoints/mbox.py and stats.py, plugins/defuzzer.py and server/main.py.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from mail_assets.month import ListMonth
from mail_assets.sources.source import Fetched, SourceError
from mail_assets_tests.sources.mails import (
    APRIL_2024,
    APRIL_DATE,
    MARCH_2024,
    fetch_months,
    mail,
    open_list,
)
from mail_assets_tests.sources.web import QuietHandler, Reply, Server, listen

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
def site() -> Iterator[str]:
    with listen(Ponymail) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    "page",
    ["/list.html?dev@a.example.org", "/?dev@a.example.org", "/list?dev@a.example.org:2024-3"],
)
def test_months_that_have_messages_are_listed_and_read(
    site: str, tmp_path: Path, page: str
) -> None:
    source = open_list(f"{site}{page}", tmp_path, "ponymail")
    assert source.versions() == {MARCH_2024: "2 messages", APRIL_2024: "1 messages"}
    months = fetch_months(source, tmp_path)
    # the server ends each message with a line of its own
    assert {month: [x.rstrip(b"\n") for x in mails] for month, mails in months.items()} == {
        "2024-03": [raw.rstrip(b"\n") for _, raw in MAILS[:2]],
        "2024-04": [MAILS[2][1].rstrip(b"\n")],
    }


def test_new_message_is_another_version(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{site}/list.html?dev@a.example.org"
    before = open_list(url, tmp_path, "ponymail").versions()
    monkeypatch.setattr(Ponymail, "mails", [*MAILS, ("2024-04", mail(4, APRIL_DATE))])
    after = open_list(url, tmp_path, "ponymail").versions()
    assert (after[MARCH_2024], after[APRIL_2024]) == (before[MARCH_2024], "2 messages")


def test_same_number_does_not_prove_the_same_messages(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ponymail, "mails", [*MAILS[:2], ("2024-04", mail(9, APRIL_DATE))])
    source = open_list(f"{site}/list.html?dev@a.example.org", tmp_path, "ponymail")
    found = source.fetch(APRIL_2024, tmp_path / "x", "1 messages")
    assert isinstance(found, Fetched)
    assert b"<9@" in found.path.read_bytes()


def test_month_without_a_message_has_no_archive(site: str, tmp_path: Path) -> None:
    source = open_list(f"{site}/list.html?dev@a.example.org", tmp_path, "ponymail")
    assert source.fetch(ListMonth("dev", "2024-02"), tmp_path / "x") is None


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("/list.html?other@a.example.org", "counts no message .*; check the name"),
        ("/pony/list.html?dev@a.example.org", "has no statistics of Pony Mail"),
    ],
)
def test_unknown_list_is_an_error_and_not_an_empty_one(
    site: str, tmp_path: Path, page: str, reason: str
) -> None:
    with pytest.raises(SourceError, match=f"list dev: .*{reason}"):
        open_list(f"{site}{page}", tmp_path, "ponymail").versions()


def test_month_that_is_counted_and_not_sent_is_an_error(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_list(f"{site}/list.html?dev@a.example.org", tmp_path, "ponymail")
    source.versions()
    monkeypatch.setattr(Ponymail, "mails", [])
    with pytest.raises(
        SourceError, match=r"month 2024-03: .*where the statistics count 2 messages"
    ):
        source.fetch(MARCH_2024, tmp_path / "x")


@pytest.mark.parametrize(
    "answer",
    [
        "[" * 100_000,
        '{"active_months": {"2024-03": 1e999}}',
        '{"active_months": [1]}',
        '{"active_months": {"2024-03": [1]}}',
        "null",
        "",
    ],
)
def test_wrong_statistics_are_an_error_of_the_list(
    server: Server, tmp_path: Path, answer: str
) -> None:
    path = "/api/stats.lua?list=dev&domain=a.example.org&quick=1"
    server.on(path, Reply(answer.encode()))
    with pytest.raises(SourceError, match=r"list dev: .*has no statistics of Pony Mail"):
        open_list(f"{server.base}/list.html?dev@a.example.org", tmp_path, "ponymail").versions()
