"""What arrives from a server, what is known of it, and what a server is spared."""

import gzip
import hashlib
import threading
import zlib
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from mail_assets.sources.http import PageSource
from mail_assets.sources.http_options import HttpOptions
from mail_assets.sources.http_reader import HttpReader
from mail_assets.sources.source import Fetched, SourceError, Unchanged
from mail_assets_tests.sources.samples import JANUARY
from mail_assets_tests.sources.web import GZ, MBOX, Reply, Server, fetched, options, template

# --- what arrives -----------------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True])
def test_an_archive_is_stored_as_sent(server: Server, tmp_path: Path, chunked: bool) -> None:
    url = server.on("/x.202001.gz", Reply(GZ, chunked=chunked))
    found = template(server, "/x.{yyyymm}.gz").fetch(JANUARY, tmp_path / "target")
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
    found = template(server, f"/{{yyyymm}}/{name}").fetch(JANUARY, tmp_path / "target")
    assert fetched(found).sha256 == hashlib.sha256(stored).hexdigest()
    assert (tmp_path / "target").read_bytes() == stored
    assert server.seen[0][1]["accept-encoding"] == asked


@pytest.mark.parametrize(
    ("reply", "reason", "retryable"),
    [
        (Reply(b"<html>Please sign in</html>"), "HTML page", False),
        (Reply(gzip.compress(b"<!doctype html>")), "HTML page", False),
        (Reply(b'{"error": 1}', headers=(("Content-Type", "application/mbox"),)), "no mbox", False),
        (Reply(GZ[:-20]), "refused: .*fetch the archive again", True),
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
        source.fetch(JANUARY, tmp_path / "target")
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
    assert fetched(source.fetch(JANUARY, tmp_path / "1")).version == version
    assert source.fetch(JANUARY, tmp_path / "2", version) == Unchanged(version, url)
    assert server.seen[1][1][condition] == version
    assert not (tmp_path / "2").exists()


def test_a_server_that_ignores_conditions_is_not_read_to_the_end(
    server: Server, tmp_path: Path
) -> None:
    url = server.on("/x.202001", Reply(MBOX, headers=(("ETag", '"abc"'),), cut=100))
    found = template(server).fetch(JANUARY, tmp_path / "target", '"abc"')
    assert found == Unchanged('"abc"', url)


def test_without_headers_the_bytes_themselves_tell_what_is_unchanged(
    server: Server, tmp_path: Path
) -> None:
    url = server.on("/x.202001", Reply(MBOX), Reply(MBOX), Reply(MBOX + MBOX))
    source = template(server)
    known = fetched(source.fetch(JANUARY, tmp_path / "1")).version
    assert source.fetch(JANUARY, tmp_path / "2", known) == Unchanged(known, url)
    assert not (tmp_path / "2").exists()
    assert fetched(source.fetch(JANUARY, tmp_path / "3", known)).version != known


@pytest.mark.parametrize("known", ["", "12-34", "sha256:00", "a\r\nEvil: 1", '"a\nb"', "\x00"])
def test_a_version_of_another_kind_becomes_no_header(
    server: Server, tmp_path: Path, known: str
) -> None:
    server.on("/x.202001", Reply(MBOX))
    fetched(template(server).fetch(JANUARY, tmp_path / "target", known))
    sent = server.seen[0][1]
    assert not {"if-none-match", "if-modified-since", "evil"} & set(sent)


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
    fetched(template(server, sleep=slept.append).fetch(JANUARY, tmp_path / "target"))
    assert len(server.seen) == 4
    assert [2 ** (n - 1) <= pause <= 2**n for n, pause in enumerate(slept, 1)] == [True] * 3


@pytest.mark.parametrize("reply", [Reply(status=502), Reply(MBOX, cut=100)])
def test_after_the_last_attempt_the_error_may_be_tried_later_and_nothing_is_stored(
    server: Server, tmp_path: Path, slept: list[float], reply: Reply
) -> None:
    server.on("/x.202001", reply)
    source = template(server, sleep=slept.append, attempts=3)
    with pytest.raises(SourceError, match=r"month 2020-01: .*3 times; try later") as found:
        source.fetch(JANUARY, tmp_path / "target")
    assert found.value.retryable
    assert (len(server.seen), len(slept)) == (3, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there_is_tried_again(tmp_path: Path, slept: list[float]) -> None:
    listener = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    port = listener.server_port
    listener.server_close()
    source = template(Server(f"http://127.0.0.1:{port}"), sleep=slept.append, attempts=2)
    with pytest.raises(SourceError, match=r"ConnectError.*2 times") as found:
        source.fetch(JANUARY, tmp_path / "target")
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
    fetched(source.fetch(JANUARY, tmp_path / "target"))
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
    fetched(template(server, sleep=slept.append).fetch(JANUARY, tmp_path / "target"))
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
        template(server, sleep=slept.append).fetch(JANUARY, tmp_path / "target")
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
        template(server, attempts=2).fetch(JANUARY, tmp_path / "target")
    assert "secret" not in str(found.value)


def test_requests_to_one_server_keep_their_distance_across_sources(
    server: Server, tmp_path: Path, slept: list[float]
) -> None:
    server.on("/x.202001", Reply(status=302, headers=(("Location", "/moved"),)))
    server.on("/moved", Reply(MBOX))
    for _ in range(2):
        fetched(
            template(server, sleep=slept.append, delay=50.0).fetch(JANUARY, tmp_path / "target")
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
    reader = HttpReader(PageSource("x", url, HttpOptions()), options(slept))
    for _ in range(2):
        reader._wait_turn(httpx.Request("GET", url))
    assert [0 < pause <= 1 for pause in slept] == [True] * pauses
