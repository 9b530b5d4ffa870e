"""Requests to other host names, and from pages of other sites, are refused."""

import httpx
import pytest

from mail_assets.web.limits import Hosts
from mail_assets_tests.sample_corpus import QUERY, ROOT
from mail_assets_tests.web.conftest import BASE_URL, raw_request

#: The host of the public URL, names set by an operator, and similar names that are not allowed.
NAMED = Hosts(BASE_URL, ["Lists.Example.org.", "b.example.org:8443", "b\u00fccher.example"])
KNOWN = [
    *("127.0.0.1", "127.0.0.1:8000", "localhost", "LOCALHOST:80", "localhost.", "localhost.:8000"),
    *("[::1]", "[::1]:8000", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]:1", "127.1.2.3",
      "localhost:"),
    *("archive.example.org", "Archive.Example.Org:443", "archive.example.org."),
    *("lists.example.org", "lists.example.org:8000", "b.example.org:8443", "xn--bcher-kva.example"),
]  # fmt: skip
UNKNOWN = [
    *("", " ", ":", ":8000", ".", "evil.example", "evil.example:8000", "localhost.evil.example"),
    *("evil-localhost", "127.0.0.1.evil.example", "archive.example.org.evil.example", "127.0.0.1x"),
    *("evil.example@localhost", "localhost@evil.example", "localhost, evil.example", "localhost/x"),
    *("::1", "[::1", "::1]", "[::2]", "[localhost]", "[127.0.0.1]", "0.0.0.0", "10.0.0.1"),
    *("b.example.org", "b.example.org:80", "b.example.org:443", "localhost:80:80", "localhost:8a"),
    *("2130706433", "0x7f000001", "localhost..", "loc\u00e4lhost", "\u2024localhost", "a" * 3000),
]


@pytest.mark.parametrize("authority", [*KNOWN, *UNKNOWN])
def test_only_own_names_are_known_in_any_spelling(authority: str) -> None:
    assert NAMED.knows(authority) == (authority in KNOWN)
    assert NAMED.knows_origin(f"https://{authority}") == (authority in KNOWN)


@pytest.mark.parametrize(
    ("authority", "arrived_at", "known"),
    [
        ("192.0.2.7:8000", "192.0.2.7", True),
        ("192.0.2.8:8000", "192.0.2.7", False),
        ("[2001:DB8::1]", "2001:db8:0::1", True),
        ("[fe80::1]", "fe80::1%eth0", True),
        ("", "", False),
        ("evil.example", "/run/serve.sock", False),
    ],
)
def test_address_of_arrival_is_known(authority: str, arrived_at: str, known: bool) -> None:
    assert NAMED.knows(authority, arrived_at) is known


@pytest.mark.parametrize(
    "origin", ["", "null", "localhost", "file://localhost", "https://localhost/"]
)
def test_invalid_origin_is_unknown(origin: str) -> None:
    assert not NAMED.knows_origin(origin)


PATHS = (
    *("/", "/search?q=x", f"/message/{ROOT}", f"/message.json/{ROOT}", "/lists", "/lists.json"),
    *("/health", "/ready", "/robots.txt", "/openapi.json", "/search.mbox.gz?q=x", "/answer"),
    *("/static/style.css", "/nowhere", "/lists/", f"/message-id/{ROOT}", "/mcp"),
)


@pytest.mark.parametrize("path", PATHS)
def test_every_route_refuses_a_rebound_name(public: httpx.Client, path: str) -> None:
    answer = public.get(path, headers={"Host": "evil.example:8000"})
    assert (answer.status_code, "harbor" in answer.text) == (421, False)


@pytest.mark.parametrize("path", ["/answer", "/mcp", "/search"])
def test_every_method_refuses_a_rebound_name(public: httpx.Client, path: str) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
        assert public.request(method, path, headers={"Host": "evil.example"}).status_code == 421


def test_probe_of_http_1_0_names_no_host(public: httpx.Client) -> None:
    assert raw_request(public, b"GET /health HTTP/1.0\r\n\r\n").split()[1] == b"200"
    line = raw_request(public, b"GET /health HTTP/1.0\r\nHost: evil.example\r\n\r\n")
    assert line.split()[1] == b"421"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (b"", b"400"),
        (b"Host: localhost\r\nHost: localhost\r\n", b"400"),
        (b"Host: localhost\r\nHost: evil.example\r\n", b"400"),
        (b"Host:\r\n", b"421"),
        (b"Host: evil.example\r\nX-Forwarded-Host: localhost\r\n", b"421"),
        (b"Host: evil.example\r\nForwarded: host=localhost\r\n", b"421"),
        (b"Host: localhost\r\nX-Forwarded-Host: evil.example\r\n", b"200"),
        (b"Host: archive.example.org\r\n", b"200"),
        (b"hOsT: \tLOCALHOST.:8000 \r\n", b"200"),
    ],
)
def test_host_of_a_request_decides(public: httpx.Client, fields: bytes, status: bytes) -> None:
    line = raw_request(
        public, b"GET /lists.json HTTP/1.1\r\n" + fields + b"Connection: close\r\n\r\n"
    )
    assert line.split()[1] == status


FOREIGN = (
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
    {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
)
OWN: tuple[dict[str, str], ...] = (
    {},
    {"Origin": BASE_URL},
    {"Origin": "http://LOCALHOST:6274", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://[::1]:8000"},
    {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
)


def ask_all(client: httpx.Client, headers: dict[str, str]) -> list[int]:
    """Return the status of each request that computes."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    answers = [
        client.post("/answer", json={"q": QUERY}, headers=headers),
        client.post("/mcp", json=call, headers=headers | accept),
        client.get("/search", params={"q": QUERY}, headers=headers),
        client.get("/search.json", params={"q": QUERY}, headers=headers),
        client.get(f"/similar.json/{ROOT}", headers=headers),
        client.get("/search.mbox.gz", params={"q": QUERY}, headers=headers),
    ]
    return [one.status_code for one in answers]


@pytest.mark.parametrize("headers", FOREIGN)
def test_page_of_another_site_cannot_compute(public: httpx.Client, headers: dict[str, str]) -> None:
    assert ask_all(public, headers) == [403] * 6
    assert public.get(f"/message.json/{ROOT}", headers=headers).status_code == 200


@pytest.mark.parametrize("headers", OWN)
def test_own_page_and_program_compute(public: httpx.Client, headers: dict[str, str]) -> None:
    assert ask_all(public, headers) == [200] * 6


def test_link_of_another_site_leads_to_a_search(public: httpx.Client) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert public.get("/search", params={"q": QUERY}, headers=headers).status_code == 200
    assert public.post("/answer", json={"q": QUERY}, headers=headers).status_code == 403


def test_two_origins_are_refused(public: httpx.Client) -> None:
    fields = b"Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://localhost\r\n"
    head = b"POST /answer HTTP/1.1\r\n" + fields + b"Content-Length: 0\r\n\r\n"
    assert raw_request(public, head).split()[1] == b"403"
