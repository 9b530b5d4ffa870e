"""Pages of links and URL templates, from servers of this process on the loopback."""

import gzip
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from mail_assets.month import ListMonth
from mail_assets.sources import http_reader
from mail_assets.sources.source import SourceError, Unchanged
from mail_assets.sources.web_pages import PageSource
from mail_assets_tests.sources.samples import FEBRUARY, JANUARY, MARCH
from mail_assets_tests.sources.web import (
    GZ,
    MBOX,
    Reply,
    Server,
    fetched,
    listen,
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


def test_links_are_relative_to_redirect_and_base_element(
    server: Server, slept: list[float]
) -> None:
    url = server.on("/old", Reply(status=301, headers=(("Location", "/new/index.html"),)))
    server.on("/new/index.html", Reply(page("x.202001", head='<base href="files/">')))
    server.on("/new/files/x.202001", Reply(MBOX))
    source = PageSource("hackers", url, options(slept))
    assert list(source.versions()) == [JANUARY]


def test_two_links_for_one_month_are_refused_by_name(
    server: Server, tmp_path: Path, slept: list[float]
) -> None:
    url = server.on("/", Reply(page("x.202001", "x.202001.gz", "x.202002")))
    server.on("/x.202002", Reply(MBOX))
    source = PageSource("hackers", url, options(slept))
    assert list(source.versions()) == [JANUARY, FEBRUARY]
    fetched(source.fetch(FEBRUARY, tmp_path / "target"))
    with pytest.raises(SourceError, match=r"month 2020-01: .*/x\.202001 and .*/x\.202001\.gz"):
        source.fetch(JANUARY, tmp_path / "target")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(page("/login", "/help")), "has no link to a monthly archive"),
        (Reply(status=404), "HTTP 404; check the list's source"),
        (Reply(b" " * (http_reader.MAX_PAGE + 1)), "not a page"),
        (Reply(GZ[:100], headers=(("Content-Encoding", "br"),)), "content coding 'br'"),
    ],
)
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
    with pytest.raises(SourceError, match=r"links to .* which the server does not have"):
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
def test_month_that_the_server_does_not_have_is_none(
    server: Server, tmp_path: Path, status: int
) -> None:
    server.on("/x.202001", Reply(b"gone", status))
    assert template(server).fetch(JANUARY, tmp_path / "target") is None
    assert list(tmp_path.iterdir()) == []
