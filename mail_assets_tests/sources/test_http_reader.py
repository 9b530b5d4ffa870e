"""Downloads, content codings, links of a page, and passwords."""

import base64
import gzip
import hashlib
import logging
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.archive.compression import unpacked_path
from mail_assets.sources import http_reader
from mail_assets.sources.http_reader import file_name, password_for
from mail_assets.sources.source import Fetched, HttpOptions, SourceError, Unchanged
from mail_assets.sources.web_pages import PageSource, page_links
from mail_assets_tests.sources.samples import FEBRUARY, JANUARY
from mail_assets_tests.sources.web import GZ, MBOX, Reply, Server, fetched, options, page, template

# --- downloads -----------------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True])
def test_archive_is_stored_as_sent(server: Server, tmp_path: Path, chunked: bool) -> None:
    url = server.on("/x.202001.gz", Reply(GZ, chunked=chunked))
    found = template(server, "/x.{yyyymm}.gz").fetch(JANUARY, tmp_path / "target")
    sha256 = hashlib.sha256(GZ).hexdigest()
    assert found == Fetched(tmp_path / "target", f"sha256:{sha256}", len(GZ), sha256, url)
    assert (tmp_path / "target").read_bytes() == GZ
    target = tmp_path / "target"
    assert {*tmp_path.iterdir()} == {target, unpacked_path(target)}
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
def test_content_coding_is_undone_but_not_own_compression(
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


@pytest.mark.parametrize(("reply", "reason", "retryable"), [
    (Reply(b"<html>Please sign in</html>"), "HTML page", False),
    (Reply(gzip.compress(b"<!doctype html>")), "HTML page", False),
    (Reply(b'{"error": 1}', headers=(("Content-Type", "application/mbox"),)), "not an mbox", False),
    (Reply(GZ[:-20]), "refused: .*fetch the archive again", True),
    (Reply(GZ[:-20], headers=CODED), "ends inside its content coding", True),
    (Reply(b"junk", headers=CODED), "content coding is damaged", True),
    (Reply(zlib.compress(MBOX), headers=(("Content-Encoding", "deflate"),)), "'deflate'", False),
    (Reply(MBOX + MBOX), "larger than the limit of", False),
    (Reply(MBOX, status=206), "HTTP 206", False),
    (Reply(status=304), "HTTP 304", False),
    (Reply(b"bad", status=400), "HTTP 400", False),
])  # fmt: skip
def test_content_that_is_no_archive_is_refused_at_once(
    server: Server, tmp_path: Path, reply: Reply, reason: str, retryable: bool
) -> None:
    server.on("/x.202001", reply)
    source = template(server, max_bytes=len(MBOX) + 1)
    with pytest.raises(SourceError, match=f"list hackers, month 2020-01: .*{reason}") as found:
        source.fetch(JANUARY, tmp_path / "target")
    assert found.value.retryable is retryable
    assert list(tmp_path.iterdir()) == []
    assert len(server.seen) == 1


# --- known versions ----------------------------------------------------------------------------

DATE = "Mon, 05 Jan 2026 15:18:12 GMT"


@pytest.mark.parametrize(("headers", "version", "condition"), [
    ((("ETag", '"abc"'), ("Last-Modified", DATE)), '"abc"', "if-none-match"),
    ((("ETag", 'W/"abc"'),), 'W/"abc"', "if-none-match"),
    ((("Last-Modified", DATE),), DATE, "if-modified-since"),
    ((("ETag", "unquoted"), ("Last-Modified", DATE)), DATE, "if-modified-since"),
])  # fmt: skip
def test_version_is_handed_back_as_the_condition_it_came_from(
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


def test_server_ignoring_conditions_is_not_read_to_the_end(server: Server, tmp_path: Path) -> None:
    url = server.on("/x.202001", Reply(MBOX, headers=(("ETag", '"abc"'),), cut=100))
    found = template(server).fetch(JANUARY, tmp_path / "target", '"abc"')
    assert found == Unchanged('"abc"', url)


def test_without_headers_equal_bytes_are_unchanged(server: Server, tmp_path: Path) -> None:
    url = server.on("/x.202001", Reply(MBOX), Reply(MBOX), Reply(MBOX + MBOX))
    source = template(server)
    known = fetched(source.fetch(JANUARY, tmp_path / "1")).version
    assert source.fetch(JANUARY, tmp_path / "2", known) == Unchanged(known, url)
    assert not (tmp_path / "2").exists()
    assert fetched(source.fetch(JANUARY, tmp_path / "3", known)).version != known


@pytest.mark.parametrize("known", ["", "12-34", "sha256:00", "a\r\nEvil: 1", '"a\nb"', "\x00"])
def test_odd_version_becomes_no_header(server: Server, tmp_path: Path, known: str) -> None:
    server.on("/x.202001", Reply(MBOX))
    fetched(template(server).fetch(JANUARY, tmp_path / "target", known))
    sent = server.seen[0][1]
    assert not {"if-none-match", "if-modified-since", "evil"} & set(sent)


@given(
    members=st.lists(st.binary(max_size=300), min_size=1, max_size=4),
    size=st.integers(1, 64),
    limit=st.integers(1, 64),
)
@settings(max_examples=100)
def test_coding_is_undone_for_any_pieces(members: list[bytes], size: int, limit: int) -> None:
    coded = b"".join(map(gzip.compress, members))
    pieces = [coded[at : at + size] for at in range(0, len(coded), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_reader, "CHUNK", limit)
        out = list(http_reader._gunzip(pieces))
        with pytest.raises(SourceError, match="ends inside"):
            list(http_reader._gunzip([coded[:-1]]))
    assert b"".join(out) == b"".join(members)
    assert all(len(piece) <= limit for piece in out)


def test_file_name_is_between_last_slash_and_query() -> None:
    assert file_name("http://h/a/x%2D1.gz?b=/c#d") == "x-1.gz"
    assert file_name("http://h/a/") == ""


@given(st.text(max_size=30))
@settings(max_examples=200)
def test_any_page_gives_links_or_none(text: str) -> None:
    html = f'<base href="{text}"><a href="{text}"><a href={text}>{text}'
    assert all(link.startswith(("http://", "https://")) for link in page_links(html, "http://h/"))


@pytest.mark.parametrize(
    "before", ["<![if !x]>", "<![endif]-->", "<![x", "<![", "<!x>", "<?x?>", "</ x>", "<p class='"]
)
def test_link_is_read_after_any_markup(before: str) -> None:
    assert list(page_links(f'{before}\n<a href="x">', "http://h/")) == ["http://h/x"]


@pytest.mark.parametrize("element", [
    '<a href="b?c=1&amp;d=2">', "<A CLASS=x HREF='b?c=1&d=2'>", "<a\nhref = b?c=1&d=2 >",
    '<a title="href=x > y" href=" b?c=1&#38;d=2#e" href="x">', "<a download href=b?c=1&d=2>",
    "<!-- <a href=x> --><a href=b?c=1&d=2>", "<!--><a href=b?c=1&d=2>",
    "<script>'<a href=x>'</script><a href=b?c=1&d=2>",
    "<abbr href=x><a name=x><a href=''><a href=b?c=1&d=2><a href=cut",
])  # fmt: skip
def test_link_is_read_as_a_browser_reads_it(element: str) -> None:
    assert list(page_links(element, "http://h/a/")) == ["http://h/a/b?c=1&d=2"]


@pytest.mark.parametrize(
    "open_markup",
    ["<a ", "<a", "<a href=", "<a href='", "<a \"'", "<a/", "<!--", "<![", "</", "<?", "<script>"],
)
def test_page_of_unclosed_markup_takes_linear_time(open_markup: str) -> None:
    html = "<a href=x>" + open_markup * (2**22 // len(open_markup))
    assert list(page_links(html, "http://h/")) == ["http://h/x"]


def basic(pair: str) -> str:
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def test_password_goes_to_the_page_and_its_archives(
    server: Server, tmp_path: Path, slept: list[float]
) -> None:
    url = server.on("/", Reply(page("x.202001")))
    server.on("/x.202001", Reply(MBOX))
    source = PageSource("hackers", url, options(slept, auth="ann:se:cret"))
    fetched(source.fetch(JANUARY, tmp_path / "target"))
    assert [sent["authorization"] for _, sent in server.seen] == [basic("ann:se:cret")] * 2


def test_password_is_never_sent_to_another_server(
    start: Callable[[str], Server], tmp_path: Path, slept: list[float]
) -> None:
    own, other = start("127.0.0.1"), start("localhost")
    same_host = start("127.0.0.1")  # another port is another server
    moved = Reply(status=302, headers=(("Location", f"{other.base}/x"),))
    url = own.on("/", Reply(page("x.202001", f"{same_host.base}/x.202002")))
    own.on("/x.202001", moved)
    other.on("/x", Reply(MBOX))
    same_host.on("/x.202002", Reply(MBOX))
    hosts = tuple(server.base.removeprefix("http://") for server in (other, same_host))
    source = PageSource("hackers", url, options(slept, auth="ann:secret", redirect_hosts=hosts))
    assert fetched(source.fetch(JANUARY, tmp_path / "1")).url == f"{other.base}/x"
    fetched(source.fetch(FEBRUARY, tmp_path / "2"))
    assert all("authorization" in sent for _, sent in own.seen)
    for server in (other, same_host):
        assert len(server.seen) == 1
        assert "authorization" not in server.seen[0][1]


@pytest.mark.parametrize(("source", "url", "auth"), [
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
])  # fmt: skip
def test_password_goes_to_the_right_server(source: str, url: str, auth: str | None) -> None:
    pair = password_for(url, source, HttpOptions(auth="own:1", postgresql_auth="pg:2"))
    assert (pair and pair[0]) == auth


def test_postgresql_org_has_its_public_password_by_default() -> None:
    url = "https://www.postgresql.org/"
    assert password_for(f"{url}x", url, HttpOptions()) == ("archives", "antispam")


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(("auth", "remedy"), [
    ("", r"set MAIL_HTTP_AUTH to user:password$"),
    ("ann:secret", r"set MAIL_HTTP_AUTH .* is refused\)$"),
])  # fmt: skip
def test_refused_password_names_the_variable_to_set(
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
        template(server, auth=auth).fetch(JANUARY, tmp_path / "target")
    shown = f"{found.value}{caplog.text}"
    assert "secret" not in shown
    assert basic("ann:secret") not in shown
    assert not found.value.retryable


def test_refusal_by_another_server_hides_secrets_of_its_url(
    start: Callable[[str], Server], tmp_path: Path
) -> None:
    own, other = start("127.0.0.1"), start("localhost")
    location = f"{other.base}/x?signature=secret"
    own.on("/x.202001", Reply(status=302, headers=(("Location", location),)))
    other.on("/x?signature=secret", Reply(status=403))
    hosts = (other.base.removeprefix("http://"),)
    with pytest.raises(SourceError, match="sent to the source's own server only") as found:
        template(own, redirect_hosts=hosts).fetch(JANUARY, tmp_path / "target")
    assert "secret" not in str(found.value)


# --- where requests go ----------------------------------------------------------------------


def moved(location: str, status: int = 302) -> Reply:
    return Reply(status=status, headers=(("Location", location),))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_in_host_records_final_url(server: Server, tmp_path: Path, status: int) -> None:
    server.on("/x.202001", moved("/a?signature=secret", status))
    server.on("/a?signature=secret", moved("/files/x?signature=secret"))
    server.on("/files/x?signature=secret", Reply(MBOX, headers=(("ETag", '"abc"'),)))
    found = fetched(template(server).fetch(JANUARY, tmp_path / "target"))
    assert found.url == f"{server.base}/files/x"
    again = template(server).fetch(JANUARY, tmp_path / "target", found.version)
    assert again == Unchanged('"abc"', found.url)


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "2130706433", "0"])
def test_redirect_to_another_server_is_not_followed(
    start: Callable[[str], Server], tmp_path: Path, host: str, hops: int
) -> None:
    own, other = start("127.0.0.1"), start("localhost")
    port = other.base.rpartition(":")[2]
    for hop in range(1, hops):
        own.on(f"/{hop}", moved(f"http://{host}:{port}/x?token=secret"))
    first = "/1" if hops > 1 else f"http://{host}:{port}/x?token=secret"
    own.on("/x.202001", moved(first))
    with pytest.raises(SourceError, match=r"redirect_hosts = \[\"") as found:
        template(own).fetch(JANUARY, tmp_path / "target")
    assert not found.value.retryable
    assert "secret" not in str(found.value)
    assert other.seen == []
    assert list(tmp_path.iterdir()) == []


def test_redirect_to_a_host_that_is_allowed_is_followed(
    start: Callable[[str], Server], tmp_path: Path
) -> None:
    own, other = start("127.0.0.1"), start("localhost")
    own.on("/x.202001", moved(f"{other.base}/x"))
    other.on("/x", Reply(MBOX))
    hosts = (other.base.removeprefix("http://"),)
    found = fetched(template(own, redirect_hosts=hosts).fetch(JANUARY, tmp_path / "target"))
    assert found.url == f"{other.base}/x"


def test_links_to_other_servers_are_named_and_not_followed(
    start: Callable[[str], Server], tmp_path: Path, slept: list[float]
) -> None:
    own, other = start("127.0.0.1"), start("localhost")
    url = own.on("/", Reply(page("x.202001", f"{other.base}/x.202002")))
    source = PageSource("hackers", url, options(slept))
    assert [*source.versions()] == [JANUARY]
    assert source.new_remarks() == [
        "links to other servers are not followed; redirect_hosts allows them (1): "
        f"{other.base}/x.202002"
    ]
    assert source.new_remarks() == []
    url = own.on("/", Reply(page(f"{other.base}/x.202002")))
    with pytest.raises(SourceError, match=r"on other servers only, such as .*x\.202002"):
        PageSource("hackers", url, options(slept)).versions()
    assert other.seen == []
