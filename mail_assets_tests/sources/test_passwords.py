"""Who gets which password, and that none is ever shown."""

import base64
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from mail_assets.sources.http_reader import HttpOptions, password_for
from mail_assets.sources.source import SourceError
from mail_assets.sources.web_pages import PageSource
from mail_assets_tests.sources.samples import FEBRUARY, JANUARY
from mail_assets_tests.sources.web import MBOX, Reply, Server, fetched, options, page, template


def basic(pair: str) -> str:
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def test_the_password_goes_to_the_page_and_its_archives(
    server: Server, tmp_path: Path, slept: list[float]
) -> None:
    url = server.on("/", Reply(page("x.202001")))
    server.on("/x.202001", Reply(MBOX))
    source = PageSource("hackers", url, options(slept, auth="ann:se:cret"))
    fetched(source.fetch(JANUARY, tmp_path / "target"))
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
    fetched(source.fetch(JANUARY, tmp_path / "1"))
    fetched(source.fetch(FEBRUARY, tmp_path / "2"))
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
    pair = password_for(url, source, HttpOptions(auth="own:1", postgresql_auth="pg:2"))
    assert (pair and pair[0]) == auth


def test_postgresql_org_has_its_public_password_by_default() -> None:
    url = "https://www.postgresql.org/"
    assert password_for(f"{url}x", url, HttpOptions()) == ("archives", "antispam")


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
        template(server, auth=auth).fetch(JANUARY, tmp_path / "target")
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
        template(own).fetch(JANUARY, tmp_path / "target")
    assert "secret" not in str(found.value)
