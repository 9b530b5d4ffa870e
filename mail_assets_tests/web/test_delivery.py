"""Bodies are compressed, and static files are cached."""

import httpx
import pytest
from starlette.datastructures import Headers

from mail_assets.web.responses import (
    accepts_gzip,
    read_static,
    static_url,
)
from mail_assets_tests.sample_corpus import QUERY, ROOT


@pytest.mark.parametrize(
    ("given", "accepts"),
    [
        ("gzip", True),
        ("gzip, deflate, br", True),
        ("GZip;q=0.5", True),
        ("*", True),
        ("br;q=1.0, gzip;q=0", False),
        ("*;q=0", False),
        ("identity", False),
        ("gzip;q=x", False),
        ("*, gzip;q=0", False),
        ("", False),
    ],
)
def test_accept_encoding_decides_about_gzip(given: str, accepts: bool) -> None:
    assert accepts_gzip(Headers({"accept-encoding": given})) == accepts


@pytest.mark.parametrize(
    "path",
    [
        "/",
        f"/search?q={QUERY}",
        f"/search.json?q={QUERY}",
        f"/search.atom?q={QUERY}",
        f"/message/{ROOT}",
        f"/thread/{ROOT}",
        f"/thread.json/{ROOT}",
        "/lists/harbor-dev",
        "/openapi.json",
        "/sitemap/harbor-dev/2024-03",
        "/nowhere",
        "/answer",
        static_url("style.css"),
    ],
)
def test_text_is_compressed_and_the_same(public: httpx.Client, path: str) -> None:
    plain = public.get(path, headers={"accept-encoding": "identity"})
    packed = public.get(path, headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert {one.headers["vary"] for one in (plain, packed)} == {"Accept-Encoding"}
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"])
    if "took_ms" not in plain.text and " ms." not in plain.text:
        assert packed.text == plain.text


@pytest.mark.parametrize(
    "path", [f"/thread.mbox.gz/{ROOT}", "/favicon.ico", "/health", static_url("icon.svg")]
)
def test_small_or_packed_bodies_are_sent_as_they_are(public: httpx.Client, path: str) -> None:
    response = public.get(path, headers={"accept-encoding": "gzip"})
    assert response.status_code == 200
    if path != static_url("icon.svg"):
        assert "content-encoding" not in response.headers


def test_fixed_file_is_kept_by_the_address_of_its_content(public: httpx.Client) -> None:
    for name, file in read_static().items():
        found = public.get(static_url(name))
        assert found.content == file.data
        assert "immutable" in found.headers["cache-control"]
        assert found.headers["content-type"].startswith(file.media_type)
        known = {"if-none-match": found.headers["etag"]}
        assert public.get(static_url(name), headers=known).status_code == 304
        other = public.get(f"/static/0123456789abcdef/{name}")
        assert (other.content, other.headers["cache-control"]) == (file.data, "max-age=300")
        assert public.get(f"/static/{name}").content == file.data
    for path in ("/static/nothing.css", "/static/../pages.py", "/static/x/y/style.css", "/static/"):
        assert public.get(path).status_code == 404
