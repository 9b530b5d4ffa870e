"""Archives on HTTP servers, against servers of this process on the loopback."""

import base64
import gzip
import hashlib
import logging
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.sources import http
from mail_assets.sources.base import Fetched, HttpOptions, SourceError, Unchanged
from mail_assets.sources.http import PageSource, TemplateSource, links_of

MBOX = b"From ann@example.org Mon Jan 05 15:18:12 2026\nFrom: ann@example.org\n\nHello\n\n" * 400
GZ = gzip.compress(MBOX)


class Reply(NamedTuple):
    """What a server answers; `cut` bytes of the body are announced and never sent."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    cut: int = 0
    chunked: bool = False


@dataclass
class Server:
    """A server that answers each path from its list of replies, the last one for ever."""

    base: str
    replies: dict[str, list[Reply]] = field(default_factory=dict)
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def on(self, path: str, *replies: Reply) -> str:
        self.replies[path] = list(replies)
        return self.base + path

    def answer(self, path: str, headers: dict[str, str]) -> Reply:
        self.seen.append((path, headers))
        replies = self.replies.get(path, [Reply(b"no such page", 404)])
        return replies.pop(0) if len(replies) > 1 else replies[0]


def handler_of(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            reply = server.answer(self.path, {k.lower(): v for k, v in self.headers.items()})
            self.send_response(reply.status)
            for name, value in reply.headers:
                self.send_header(name, value)
            self.send_header("Connection", "close")
            if reply.chunked:
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(reply.body), reply.body))
                self.wfile.write(b"" if reply.cut else b"0\r\n\r\n")
            else:
                if reply.status != 304:
                    self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body[: len(reply.body) - reply.cut])

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away, as some tests want it to, is no news."""


@pytest.fixture
def start() -> Iterator[Callable[[str], Server]]:
    running: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(host: str) -> Server:
        server = Server("")
        listener = QuietServer(("127.0.0.1", 0), handler_of(server))
        server.base = f"http://{host}:{listener.server_port}"
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        running.append((listener, thread))
        return server

    yield start
    for listener, thread in running:
        listener.shutdown()
        thread.join()
        listener.server_close()


@pytest.fixture
def server(start: Callable[[str], Server]) -> Server:
    return start("127.0.0.1")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def slept() -> list[float]:
    return []


def options(slept: list[float], **others: Any) -> HttpOptions:
    return HttpOptions(sleep=slept.append, **others)


def template(server: Server, path: str = "/x.{yyyymm}", **others: Any) -> TemplateSource:
    others.setdefault("sleep", lambda seconds: None)
    return TemplateSource("hackers", server.base + path, HttpOptions(**others), "2020-01")


def fetched(found: Fetched | Unchanged | None) -> Fetched:
    assert isinstance(found, Fetched)
    return found


def page(*hrefs: str, head: str = "") -> bytes:
    links = "".join(f'<li><a href="{href}">x</a>' for href in hrefs)
    return f"<html><head>{head}</head><body>{links}".encode()


# --- pages of links ---------------------------------------------------------------------------


def test_a_page_lists_the_months_that_its_links_name(server: Server, slept: list[float]) -> None:
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
    assert source.versions() == dict.fromkeys(["2003-04", "2020-01", "2020-02", "2020-03"], "")


def test_a_link_is_fetched_and_the_page_is_read_once_for_all_months(
    server: Server, tmp_path: Path, slept: list[float]
) -> None:
    url = server.on("/list/", Reply(page("x.202001", "/deep/x.202002")))
    server.on("/list/x.202001", Reply(MBOX))
    server.on("/deep/x.202002", Reply(MBOX))
    source = PageSource("hackers", url, options(slept))
    assert fetched(source.fetch("2020-01", tmp_path / "1")).url == f"{server.base}/list/x.202001"
    assert fetched(source.fetch("2020-02", tmp_path / "2")).url == f"{server.base}/deep/x.202002"
    assert source.fetch("2020-03", tmp_path / "3") is None
    assert [path for path, _ in server.seen] == ["/list/", "/list/x.202001", "/deep/x.202002"]


def test_links_are_resolved_against_the_end_of_redirects_and_the_base_element(
    server: Server, slept: list[float]
) -> None:
    url = server.on("/old", Reply(status=301, headers=(("Location", "/new/index.html"),)))
    server.on("/new/index.html", Reply(page("x.202001", head='<base href="files/">')))
    server.on("/new/files/x.202001", Reply(MBOX))
    source = PageSource("hackers", url, options(slept))
    assert list(source.versions()) == ["2020-01"]
    assert list(links_of(page("a", head='<base href="b/">').decode(), "http://h/c/d")) == [
        "http://h/c/b/a"
    ]


def test_two_links_for_one_month_are_refused_by_name_and_other_months_work(
    server: Server, tmp_path: Path, slept: list[float]
) -> None:
    url = server.on("/", Reply(page("x.202001", "x.202001.gz", "x.202002")))
    server.on("/x.202002", Reply(MBOX))
    source = PageSource("hackers", url, options(slept))
    assert list(source.versions()) == ["2020-01", "2020-02"]
    fetched(source.fetch("2020-02", tmp_path / "target"))
    with pytest.raises(SourceError, match=r"month 2020-01: .*/x\.202001 and .*/x\.202001\.gz"):
        source.fetch("2020-01", tmp_path / "target")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(page("/login", "/help")), "has no link to a monthly archive"),
        (Reply(status=404), "HTTP 404; check the list's source"),
        (Reply(b" " * (http.MAX_PAGE + 1)), "not a page"),
    ],
)
def test_a_page_that_lists_nothing_is_an_error_and_not_an_empty_list(
    server: Server, slept: list[float], reply: Reply, reason: str
) -> None:
    source = PageSource("hackers", server.on("/list/", reply), options(slept))
    with pytest.raises(SourceError, match=f"list hackers: .*{reason}") as found:
        source.versions()
    assert not found.value.retryable


def test_a_dead_link_is_an_error_and_not_an_empty_month(
    server: Server, tmp_path: Path, slept: list[float]
) -> None:
    source = PageSource("hackers", server.on("/", Reply(page("x.202001"))), options(slept))
    with pytest.raises(SourceError, match=r"links to .* which the server does not have"):
        source.fetch("2020-01", tmp_path / "target")


def test_a_page_sent_gzipped_is_read(server: Server, slept: list[float]) -> None:
    headers = (("Content-Encoding", "gzip"),)
    url = server.on("/", Reply(gzip.compress(page("x.202001")), headers=headers))
    assert list(PageSource("hackers", url, options(slept)).versions()) == ["2020-01"]


def test_a_plain_web_servers_folder_is_a_source(tmp_path: Path, slept: list[float]) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    for name, data in (("x.202001", MBOX), ("x.202002.gz", GZ), ("README", b"")):
        (folder / name).write_bytes(data)

    class Listing(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Listing, directory=folder)) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{listener.server_port}/"
        source = PageSource("hackers", url, options(slept))
        for month, data in {"2020-01": MBOX, "2020-02": GZ}.items():
            found = fetched(source.fetch(month, tmp_path / month))
            assert (tmp_path / month).read_bytes() == data
            again = source.fetch(month, tmp_path / "again", found.version)
            assert again == Unchanged(found.version, found.url)
        assert list(source.versions()) == ["2020-01", "2020-02"]
        listener.shutdown()
        thread.join()


# --- templates --------------------------------------------------------------------------------


def test_a_template_has_every_month_from_its_start_to_the_running_one(server: Server) -> None:
    before = f"{datetime.now(UTC):%Y-%m}"
    months = template(server).versions()
    assert list(months)[:2] == ["2020-01", "2020-02"]
    assert list(months)[-1] in (before, f"{datetime.now(UTC):%Y-%m}")
    assert set(months.values()) == {""}
    assert server.seen == []


@pytest.mark.parametrize("status", [404, 410])
def test_a_month_that_the_server_does_not_have_is_none(
    server: Server, tmp_path: Path, status: int
) -> None:
    server.on("/x.202001", Reply(b"gone", status))
    assert template(server).fetch("2020-01", tmp_path / "target") is None
    assert list(tmp_path.iterdir()) == []


# --- what arrives -----------------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True])
def test_an_archive_is_stored_as_sent(server: Server, tmp_path: Path, chunked: bool) -> None:
    url = server.on("/x.202001.gz", Reply(GZ, chunked=chunked))
    found = template(server, "/x.{yyyymm}.gz").fetch("2020-01", tmp_path / "target")
    sha256 = hashlib.sha256(GZ).hexdigest()
    assert found == Fetched(tmp_path / "target", f"sha256:{sha256}", len(GZ), sha256, url)
    assert (tmp_path / "target").read_bytes() == GZ
    assert list(tmp_path.iterdir()) == [tmp_path / "target"]
    assert server.seen[0][1]["user-agent"].startswith("mail-assets")


CODED = (("Content-Encoding", "gzip"),)


@pytest.mark.parametrize(
    ("name", "sent", "headers", "stored", "asked"),
    [
        pytest.param("x", MBOX, (), MBOX, "gzip", id="plain"),
        pytest.param("x", GZ, CODED, MBOX, "gzip", id="coded on the way"),
        pytest.param("x", GZ + GZ, CODED, MBOX * 2, "gzip", id="coded in two members"),
        pytest.param("x", GZ, (), GZ, "gzip", id="compressed without saying so"),
        pytest.param("x.gz", GZ, (), GZ, "identity", id="gz"),
        pytest.param("x.gz", GZ, CODED, GZ, "identity", id="gz whose own compression is declared"),
        pytest.param(
            "x.GZ", GZ, (("Content-Encoding", "x-gzip"),), GZ, "identity", id="by its old name"
        ),
        pytest.param(
            "x.gz", gzip.compress(GZ), CODED, GZ, "identity", id="gz coded once more on the way"
        ),
        pytest.param("x.gz", GZ + GZ, CODED, GZ + GZ, "identity", id="gz of two members"),
        pytest.param("x.gz", MBOX, (), MBOX, "identity", id="gz unpacked by the server"),
    ],
)
def test_a_content_coding_is_undone_and_the_files_own_compression_is_not(
    server: Server,
    tmp_path: Path,
    name: str,
    sent: bytes,
    headers: tuple[tuple[str, str], ...],
    stored: bytes,
    asked: str,
) -> None:
    server.on(f"/202001/{name}", Reply(sent, headers=headers))
    found = template(server, f"/{{yyyymm}}/{name}").fetch("2020-01", tmp_path / "target")
    assert fetched(found).sha256 == hashlib.sha256(stored).hexdigest()
    assert (tmp_path / "target").read_bytes() == stored
    assert server.seen[0][1]["accept-encoding"] == asked


@given(
    members=st.lists(st.binary(max_size=300), min_size=1, max_size=4),
    size=st.integers(1, 64),
    limit=st.integers(1, 64),
)
@settings(deadline=None, max_examples=100)
def test_a_coding_is_undone_however_it_is_cut_into_pieces(
    members: list[bytes], size: int, limit: int
) -> None:
    coded = b"".join(map(gzip.compress, members))
    pieces = [coded[at : at + size] for at in range(0, len(coded), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http, "CHUNK", limit)
        out = list(http._gunzip(pieces))
        with pytest.raises(SourceError, match="ends inside"):
            list(http._gunzip([coded[:-1]]))
    assert b"".join(out) == b"".join(members)
    assert all(len(piece) <= limit for piece in out)


@pytest.mark.parametrize(
    ("reply", "reason", "retryable"),
    [
        (Reply(b"<html>Please sign in</html>"), "HTML page", False),
        (Reply(gzip.compress(b"<!doctype html>")), "HTML page", False),
        (Reply(b'{"error": 1}', headers=(("Content-Type", "application/mbox"),)), "no mbox", False),
        (Reply(GZ[:-20]), "refused: .*fetch it again", True),
        (Reply(GZ[:-20], headers=CODED), "ends inside its content coding", True),
        (Reply(b"junk", headers=CODED), "content coding is damaged", True),
        (
            Reply(zlib.compress(MBOX), headers=(("Content-Encoding", "deflate"),)),
            "'deflate'",
            False,
        ),
        (Reply(MBOX + MBOX), "larger than the limit of", False),
        (Reply(MBOX, status=206), "HTTP 206", False),
        (Reply(status=304), "HTTP 304", False),
        (Reply(b"bad", status=400), "HTTP 400", False),
    ],
)
def test_what_is_no_archive_is_refused_at_once_and_nothing_is_stored(
    server: Server, tmp_path: Path, reply: Reply, reason: str, retryable: bool
) -> None:
    server.on("/x.202001", reply)
    source = template(server, max_bytes=len(MBOX) + 1)
    with pytest.raises(SourceError, match=f"list hackers, month 2020-01: .*{reason}") as found:
        source.fetch("2020-01", tmp_path / "target")
    assert found.value.retryable is retryable
    assert list(tmp_path.iterdir()) == []
    assert len(server.seen) == 1


# --- what is known ----------------------------------------------------------------------------

DATE = "Mon, 05 Jan 2026 15:18:12 GMT"


@pytest.mark.parametrize(
    ("headers", "version", "condition"),
    [
        ((("ETag", '"abc"'), ("Last-Modified", DATE)), '"abc"', "if-none-match"),
        ((("ETag", 'W/"abc"'),), 'W/"abc"', "if-none-match"),
        ((("Last-Modified", DATE),), DATE, "if-modified-since"),
        ((("ETag", "unquoted"), ("Last-Modified", DATE)), DATE, "if-modified-since"),
    ],
)
def test_a_version_is_handed_back_as_the_condition_it_came_from(
    server: Server,
    tmp_path: Path,
    headers: tuple[tuple[str, str], ...],
    version: str,
    condition: str,
) -> None:
    url = server.on("/x.202001", Reply(MBOX, headers=headers), Reply(status=304))
    source = template(server)
    assert fetched(source.fetch("2020-01", tmp_path / "1")).version == version
    assert source.fetch("2020-01", tmp_path / "2", version) == Unchanged(version, url)
    assert server.seen[1][1][condition] == version
    assert not (tmp_path / "2").exists()


def test_a_server_that_ignores_conditions_is_not_read_to_the_end(
    server: Server, tmp_path: Path
) -> None:
    url = server.on("/x.202001", Reply(MBOX, headers=(("ETag", '"abc"'),), cut=100))
    found = template(server).fetch("2020-01", tmp_path / "target", '"abc"')
    assert found == Unchanged('"abc"', url)


def test_without_headers_the_bytes_themselves_tell_what_is_unchanged(
    server: Server, tmp_path: Path
) -> None:
    url = server.on("/x.202001", Reply(MBOX), Reply(MBOX), Reply(MBOX + MBOX))
    source = template(server)
    known = fetched(source.fetch("2020-01", tmp_path / "1")).version
    assert source.fetch("2020-01", tmp_path / "2", known) == Unchanged(known, url)
    assert not (tmp_path / "2").exists()
    assert fetched(source.fetch("2020-01", tmp_path / "3", known)).version != known


@pytest.mark.parametrize("known", ["", "12-34", "sha256:00", "a\r\nEvil: 1", '"a\nb"', "\x00"])
def test_a_version_of_another_kind_becomes_no_header(
    server: Server, tmp_path: Path, known: str
) -> None:
    server.on("/x.202001", Reply(MBOX))
    fetched(template(server).fetch("2020-01", tmp_path / "target", known))
    sent = server.seen[0][1]
    assert not {"if-none-match", "if-modified-since", "evil"} & set(sent)


# --- passwords --------------------------------------------------------------------------------


def basic(pair: str) -> str:
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def test_the_password_goes_to_the_page_and_its_archives(
    server: Server, tmp_path: Path, slept: list[float]
) -> None:
    url = server.on("/", Reply(page("x.202001")))
    server.on("/x.202001", Reply(MBOX))
    source = PageSource("hackers", url, options(slept, auth="ann:se:cret"))
    fetched(source.fetch("2020-01", tmp_path / "target"))
    assert [sent["authorization"] for _, sent in server.seen] == [basic("ann:se:cret")] * 2


def test_the_password_is_never_sent_to_another_server(
    start: Callable[[str], Server], tmp_path: Path, slept: list[float]
) -> None:
    own, other = start("127.0.0.1"), start("localhost")
    same_host = start("127.0.0.1")  # another port is another server
    moved = Reply(status=302, headers=(("Location", f"{other.base}/x"),))
    url = own.on("/", Reply(page("x.202001", f"{same_host.base}/x.202002")))
    own.on("/x.202001", moved)
    other.on("/x", Reply(MBOX))
    same_host.on("/x.202002", Reply(MBOX))
    source = PageSource("hackers", url, options(slept, auth="ann:secret"))
    fetched(source.fetch("2020-01", tmp_path / "1"))
    fetched(source.fetch("2020-02", tmp_path / "2"))
    assert all("authorization" in sent for _, sent in own.seen)
    for server in (other, same_host):
        assert len(server.seen) == 1
        assert "authorization" not in server.seen[0][1]


@pytest.mark.parametrize(
    ("source", "url", "auth"),
    [
        ("https://www.postgresql.org/list/x/", "https://www.postgresql.org/list/x/a", "pg"),
        ("https://postgresql.org/", "https://postgresql.org/a", "pg"),
        ("https://WWW.PostgreSQL.org/", "https://www.postgresql.org/a", "pg"),
        ("https://www.postgresql.org/", "https://lists.postgresql.org/a", None),
        ("https://www.postgresql.org/", "http://www.postgresql.org/a", None),
        ("http://www.postgresql.org/", "https://www.postgresql.org/a", "pg"),
        ("https://evilpostgresql.org/", "https://evilpostgresql.org/a", "own"),
        ("https://postgresql.org.evil.example/", "https://postgresql.org.evil.example/a", "own"),
        ("https://lists.example.org/", "https://lists.example.org/a", "own"),
        ("https://lists.example.org/", "https://www.postgresql.org/a", None),
        ("https://lists.example.org/", "https://lists.example.org:444/a", None),
    ],
)
def test_who_gets_which_password(source: str, url: str, auth: str | None) -> None:
    reader = http.Reader(
        PageSource("x", source, HttpOptions()), HttpOptions(auth="own:1", postgresql_auth="pg:2")
    )
    pair = reader._auth(url)
    assert (pair and pair[0]) == auth


def test_postgresql_org_has_its_public_password_by_default() -> None:
    reader = http.Reader(
        PageSource("x", "https://www.postgresql.org/", HttpOptions()), HttpOptions()
    )
    assert reader._auth("https://www.postgresql.org/x") == ("archives", "antispam")


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("auth", "remedy"),
    [
        ("", r"set MAIL_HTTP_AUTH to user:password$"),
        ("ann:secret", r"set MAIL_HTTP_AUTH .* is refused\)$"),
    ],
)
def test_a_refused_password_says_which_variable_to_set_and_shows_nothing(
    server: Server,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    status: int,
    auth: str,
    remedy: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    server.on("/x.202001", Reply(b"no", status))
    with pytest.raises(SourceError, match=remedy) as found:
        template(server, auth=auth).fetch("2020-01", tmp_path / "target")
    shown = f"{found.value}{caplog.text}"
    assert "secret" not in shown
    assert basic("ann:secret") not in shown
    assert not found.value.retryable


def test_a_refusal_by_another_server_says_so_without_the_secrets_of_its_url(
    start: Callable[[str], Server], tmp_path: Path
) -> None:
    own, other = start("127.0.0.1"), start("localhost")
    location = f"{other.base}/x?signature=secret"
    own.on("/x.202001", Reply(status=302, headers=(("Location", location),)))
    other.on("/x?signature=secret", Reply(status=403))
    with pytest.raises(SourceError, match="another server than the source's") as found:
        template(own).fetch("2020-01", tmp_path / "target")
    assert "secret" not in str(found.value)


# --- failures in passing, and politeness ------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(status=500), id="500"),
        pytest.param(Reply(status=503), id="503"),
        pytest.param(Reply(status=429), id="429"),
        pytest.param(Reply(MBOX, cut=100), id="shorter than its Content-Length"),
        pytest.param(Reply(MBOX, cut=1, chunked=True), id="chunks without an end"),
    ],
)
def test_a_failure_in_passing_is_tried_again_with_growing_pauses(
    server: Server, tmp_path: Path, slept: list[float], reply: Reply
) -> None:
    server.on("/x.202001", reply, reply, reply, Reply(MBOX))
    fetched(template(server, sleep=slept.append).fetch("2020-01", tmp_path / "target"))
    assert len(server.seen) == 4
    assert [2 ** (n - 1) <= pause <= 2**n for n, pause in enumerate(slept, 1)] == [True] * 3


@pytest.mark.parametrize("reply", [Reply(status=502), Reply(MBOX, cut=100)])
def test_after_the_last_attempt_the_error_may_be_tried_later_and_nothing_is_stored(
    server: Server, tmp_path: Path, slept: list[float], reply: Reply
) -> None:
    server.on("/x.202001", reply)
    source = template(server, sleep=slept.append, attempts=3)
    with pytest.raises(SourceError, match=r"month 2020-01: .*3 times; try later") as found:
        source.fetch("2020-01", tmp_path / "target")
    assert found.value.retryable
    assert (len(server.seen), len(slept)) == (3, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there_is_tried_again(tmp_path: Path, slept: list[float]) -> None:
    listener = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    port = listener.server_port
    listener.server_close()
    source = template(Server(f"http://127.0.0.1:{port}"), sleep=slept.append, attempts=2)
    with pytest.raises(SourceError, match=r"ConnectError.*2 times") as found:
        source.fetch("2020-01", tmp_path / "target")
    assert found.value.retryable
    assert len(slept) == 1


def test_a_server_that_falls_silent_is_tried_again(
    server: Server, tmp_path: Path, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("/x.202001", Reply(MBOX))
    answered = threading.Event()
    answer = server.answer

    def late(path: str, headers: dict[str, str]) -> Reply:
        if not server.seen:
            server.seen.append((path, headers))
            answered.wait(10)
        return answer(path, headers)

    monkeypatch.setattr(server, "answer", late)
    source = template(server, sleep=slept.append, read_timeout=0.2)
    fetched(source.fetch("2020-01", tmp_path / "target"))
    answered.set()
    assert len(slept) == 1


def test_the_pause_that_a_server_asks_for_is_kept(
    server: Server, tmp_path: Path, slept: list[float]
) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=200), usegmt=True)
    server.on(
        "/x.202001",
        Reply(status=429, headers=(("Retry-After", "17"),)),
        Reply(status=503, headers=(("Retry-After", later),)),
        Reply(status=503, headers=(("Retry-After", "Mon, 05 Jan 2015 15:18:12 GMT"),)),
        Reply(status=503, headers=(("Retry-After", "soon"),)),
        Reply(MBOX),
    )
    fetched(template(server, sleep=slept.append).fetch("2020-01", tmp_path / "target"))
    assert slept[0] == 17
    assert 100 < slept[1] <= 200
    assert slept[2] == 0
    assert 8 <= slept[3] <= 16


@pytest.mark.parametrize("value", ["301", "9" * 400])
def test_a_server_that_asks_for_too_long_a_pause_is_left_for_another_run(
    server: Server, tmp_path: Path, slept: list[float], value: str
) -> None:
    server.on("/x.202001", Reply(status=429, headers=(("Retry-After", value),)))
    with pytest.raises(SourceError, match=r"asks to wait .*run again then") as found:
        template(server, sleep=slept.append).fetch("2020-01", tmp_path / "target")
    assert found.value.retryable
    assert slept == []


@pytest.mark.parametrize(
    "location", ["/x.202001", "ftp://127.0.0.1/x", "http://[broken", "http://a:secret@h:x/"]
)
def test_a_redirect_that_leads_nowhere_ends_in_an_error(
    server: Server, tmp_path: Path, location: str
) -> None:
    server.on("/x.202001", Reply(status=302, headers=(("Location", location),)))
    with pytest.raises(SourceError, match="list hackers, month 2020-01: ") as found:
        template(server, attempts=2).fetch("2020-01", tmp_path / "target")
    assert "secret" not in str(found.value)


def test_requests_to_one_server_keep_their_distance_across_sources(
    server: Server, tmp_path: Path, slept: list[float]
) -> None:
    server.on("/x.202001", Reply(status=302, headers=(("Location", "/moved"),)))
    server.on("/moved", Reply(MBOX))
    for _ in range(2):
        fetched(
            template(server, sleep=slept.append, delay=50.0).fetch("2020-01", tmp_path / "target")
        )
    # the pauses are not slept here, so each request waits for all before it
    assert [round(pause / 50) for pause in slept] == [1, 2, 3]


@pytest.mark.parametrize(
    ("host", "pauses"),
    [("127.0.0.1", 0), ("localhost", 0), ("[::1]", 0), ("lists.example.org", 1), ("10.0.0.1", 1)],
)
def test_remote_servers_are_spared_and_this_machine_is_not(
    slept: list[float], host: str, pauses: int
) -> None:
    url = f"http://{host}:{id(slept) % 50_000 + 1}/"  # a server that no other test has asked
    reader = http.Reader(PageSource("x", url, HttpOptions()), options(slept))
    for _ in range(2):
        reader._pace(httpx.Request("GET", url))
    assert [0 < pause <= 1 for pause in slept] == [True] * pauses


@given(st.text(max_size=30))
@settings(deadline=None, max_examples=200)
def test_any_page_gives_links_or_none(text: str) -> None:
    html = f'<base href="{text}"><a href="{text}"><a href={text}>{text}'
    assert all(link.startswith(("http://", "https://")) for link in links_of(html, "http://h/"))
