"""Retries and pauses of requests to a server."""

import ssl
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from mail_assets.sources.http_reader import HttpReader
from mail_assets.sources.source import HttpOptions, SourceError
from mail_assets.sources.web_pages import PageSource
from mail_assets_tests.http.loopback import QuietHandler, listen
from mail_assets_tests.sources.samples import JANUARY
from mail_assets_tests.sources.web import (
    MBOX,
    Reply,
    Server,
    fetched,
    options,
    template,
    trickle,
)
from mail_assets_tests.waits import LONG


@pytest.fixture
def own_certificate(tmp_path: Path) -> ssl.SSLContext:
    """A server's side of TLS, with a certificate that no authority has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lists.example.org")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, SHA256())
    )
    pem = tmp_path / "server.pem"
    pem.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + certificate.public_bytes(Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


@pytest.mark.parametrize("reply", [
    pytest.param(Reply(status=500), id="500"),
    pytest.param(Reply(status=503), id="503"),
    pytest.param(Reply(status=429), id="429"),
    pytest.param(Reply(MBOX, cut=100), id="shorter than its Content-Length"),
    pytest.param(Reply(MBOX, cut=1, chunked=True), id="chunks without an end"),
])  # fmt: skip
def test_transient_failure_is_retried_with_growing_pauses(
    server: Server, tmp_path: Path, slept: list[float], reply: Reply
) -> None:
    server.on("/x.202001", reply, reply, reply, Reply(MBOX))
    fetched(template(server, sleep=slept.append).fetch(JANUARY, tmp_path / "target"))
    assert len(server.seen) == 4
    assert [2 ** (n - 1) <= pause <= 2**n for n, pause in enumerate(slept, 1)] == [True] * 3


def test_server_that_is_not_there_is_tried_again(tmp_path: Path, slept: list[float]) -> None:
    listener = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    port = listener.server_port
    listener.server_close()
    source = template(Server(f"http://127.0.0.1:{port}"), sleep=slept.append, attempts=2)
    with pytest.raises(SourceError, match=r"ConnectError.*2 times") as found:
        source.fetch(JANUARY, tmp_path / "target")
    assert found.value.retryable
    assert len(slept) == 1


def test_server_that_falls_silent_is_tried_again(
    server: Server, tmp_path: Path, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("/x.202001", Reply(MBOX))
    answered = threading.Event()
    answer = server.answer

    def late(path: str, headers: dict[str, str]) -> Reply:
        if not server.seen:
            server.seen.append((path, headers))
            answered.wait(LONG)
        return answer(path, headers)

    monkeypatch.setattr(server, "answer", late)
    source = template(server, sleep=slept.append, read_timeout=0.5, attempts=100)
    fetched(source.fetch(JANUARY, tmp_path / "target"))
    answered.set()
    assert slept  # once; more often on a machine that is slow itself


@pytest.mark.parametrize(
    "sent", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["header", "body"]
)
def test_server_that_trickles_is_tried_again_and_given_up(
    tmp_path: Path, slept: list[float], sent: bytes
) -> None:
    with trickle(sent) as server:
        source = template(server, sleep=slept.append, attempts=3, read_timeout=0.3)
        with pytest.raises(SourceError, match=r"ReadTimeout.*, 3 times; try again later") as found:
            source.fetch(JANUARY, tmp_path / "target")
    assert found.value.retryable
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["301", "9" * 400])
def test_too_long_retry_after_is_left_for_another_run(
    server: Server, tmp_path: Path, slept: list[float], value: str
) -> None:
    server.on("/x.202001", Reply(status=429, headers=(("Retry-After", value),)))
    with pytest.raises(SourceError, match=r"asks to wait .*run again after that") as found:
        template(server, sleep=slept.append).fetch(JANUARY, tmp_path / "target")
    assert found.value.retryable
    assert slept == []


@pytest.mark.parametrize("location", [
    "/x.202001", "ftp://127.0.0.1/x", "http://[broken", "http://a:secret@h:x/",
    "http://a:secret@h..x/", "http://xn--/", f"http://{'a' * 64}.example/",
])  # fmt: skip
def test_redirect_to_nowhere_is_an_error(server: Server, tmp_path: Path, location: str) -> None:
    server.on("/x.202001", Reply(status=302, headers=(("Location", location),)))
    with pytest.raises(SourceError, match="list hackers, month 2020-01: ") as found:
        template(server, attempts=2).fetch(JANUARY, tmp_path / "target")
    assert "secret" not in str(found.value)


@pytest.mark.parametrize("reply", [
    pytest.param(Reply(b"no gzip", headers=(("Content-Encoding", "gzip"),)), id="damaged"),
    pytest.param(Reply(b"never ends", cut=5), id="cut short"),
    pytest.param(Reply(b"moved"), id="as usual"),
])  # fmt: skip
def test_body_of_a_redirect_is_not_read(
    server: Server, tmp_path: Path, slept: list[float], reply: Reply
) -> None:
    headers = (("Location", "/moved"), *reply.headers)
    server.on("/x.202001", reply._replace(status=302, headers=headers))
    server.on("/moved", Reply(MBOX))
    fetched(template(server, sleep=slept.append, attempts=1).fetch(JANUARY, tmp_path / "target"))
    assert slept == []


def test_certificate_that_is_not_accepted_is_named_at_once(
    tmp_path: Path, slept: list[float], own_certificate: ssl.SSLContext
) -> None:
    with listen(QuietHandler, own_certificate) as port:
        source = template(Server(f"https://127.0.0.1:{port}"), sleep=slept.append)
        with pytest.raises(SourceError, match=r"month 2020-01: .*self-signed.*SSL_CERT_FILE"):
            source.fetch(JANUARY, tmp_path / "target")
    assert slept == []


def test_crawl_delay_holds_per_server(server: Server, tmp_path: Path, slept: list[float]) -> None:
    server.on("/x.202001", Reply(status=302, headers=(("Location", "/moved"),)))
    server.on("/moved", Reply(MBOX))
    for _ in range(2):
        fetched(
            template(server, sleep=slept.append, delay=5_000.0).fetch(JANUARY, tmp_path / "target")
        )
    # the pauses are not slept here, so each request waits for all before it
    assert [round(pause / 5_000) for pause in slept] == [1, 2, 3]


@pytest.mark.parametrize(
    ("host", "pauses"),
    [("127.0.0.1", 0), ("localhost", 0), ("[::1]", 0), ("lists.example.org", 1), ("10.0.0.1", 1)],
)
def test_only_remote_servers_get_pauses(slept: list[float], host: str, pauses: int) -> None:
    url = f"http://{host}:{id(slept) % 50_000 + 1}/"  # a server that no other test has asked
    reader = HttpReader(PageSource("x", url, HttpOptions()), options(slept))
    for _ in range(2):
        reader._wait_turn(httpx.Request("GET", url))
    assert [0 < pause <= 1 for pause in slept] == [True] * pauses
