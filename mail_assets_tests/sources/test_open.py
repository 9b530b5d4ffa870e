"""URLs of sources, and the sources that they open."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mail_assets.sources.folder import FolderSource
from mail_assets.sources.message_source import MessageSource
from mail_assets.sources.open import check_source, open_source
from mail_assets.sources.public_inbox import PublicInboxMboxSource, PublicInboxSource
from mail_assets.sources.s3 import S3Source
from mail_assets.sources.source import ArchiveSource, HttpOptions
from mail_assets.sources.urls import KINDS, split_kind
from mail_assets.sources.web_pages import (
    HyperKittySource,
    PageSource,
    PonymailSource,
    TemplateSource,
)
from mail_assets_tests.conftest import REPOSITORY

SOURCES = [
    ("archives/pgsql-hackers", FolderSource),
    ("~/archives", FolderSource),
    ("file:///archives", FolderSource),
    ("FILE:///archives", FolderSource),
    ("s3://bucket", S3Source),
    ("s3://bucket/a/prefix", S3Source),
    ("http://lists.example.org/pipermail/x/", PageSource),
    ("HTTPS://lists.example.org:8443/x", PageSource),
    ("https://lists.example.org/x.{yyyymm}", TemplateSource),
    ("https://lists.example.org/{yyyy-mm}/x", TemplateSource),
    ("https://lists.example.org/{yyyy-Month}.txt.gz", TemplateSource),
    ("maildir:Mail/dev", MessageSource),
    ("maildir:file:///Mail/dev", MessageSource),
    ("eml:/mail", MessageSource),
    ("mh:/mail/inbox", MessageSource),
    ("mbox:/mail/All mail.mbox", MessageSource),
    ("public-inbox:/srv/dev", MessageSource),
    ("public-inbox:https://lore.example.org/dev", PublicInboxSource),
    ("public-inbox-mbox:https://lore.example.org/dev/", PublicInboxMboxSource),
    ("hyperkitty:https://lists.example.org/archives/list/dev@example.org/", HyperKittySource),
    ("hyperkitty:http://lists.example.org/list/dev@example.org", HyperKittySource),
    ("ponymail:https://lists.example.org/list.html?dev@a.example.org", PonymailSource),
    ("ponymail:https://lists.example.org/?dev@a.example.org:2024-3", PonymailSource),
]


def test_every_kind_is_tried_and_documented() -> None:
    tried = {split_kind(url)[0] for url, _ in SOURCES}
    assert {*KINDS} - tried == set(), "add a URL of it to SOURCES, above"
    page = (REPOSITORY / "docs/sources.md").read_text()
    documented = {*re.findall(r'[`"]([a-z-]+):', page)}
    assert {*KINDS} - documented == set(), "write `KIND:` into docs/sources.md"


@pytest.mark.parametrize(("url", "kind"), SOURCES)
def test_url_selects_the_source(url: str, kind: type[ArchiveSource], tmp_path: Path) -> None:
    check_source(url)
    source = open_source("x", url, start="2020-01", options=HttpOptions(), cache=tmp_path)
    assert type(source) is kind


@pytest.mark.parametrize(("url", "reason"), [
    ("", "source is needed"),
    ("  ", "source is needed"),
    ("ftp://example.org/x", "ftp:// is not supported"),
    ("file://server/share", "no folder of this machine"),
    ("file://", "no folder of this machine"),
    ("s3://", "no bucket"),
    ("s3:///prefix", "no bucket"),
    ("http://", "has no host"),
    ("http:///x", "has no host"),
    ("http://ann:secret@example.org/x", "MAIL_HTTP_AUTH"),
    ("http://ann@example.org/x", "MAIL_HTTP_AUTH"),
    ("http://example.org:port/x", "port"),
    ("http://example.org/{yyyy}/x", "unknown placeholder"),
    ("http://example.org/{yyyymm}/{list}", "unknown placeholder"),
    ("http://{yyyymm}.example.org/x", "unknown placeholder"),
    ("maildir:https://example.org/x", "of this machine"),
    ("mbox:s3://bucket/x", "of this machine"),
    ("public-inbox:s3://bucket/x", "or an http"),
    ("public-inbox:git://example.org/x", "git:// is not supported"),
    ("public-inbox:https://ann:secret@example.org/x", "MAIL_HTTP_AUTH"),
    ("public-inbox:https://example.org/x/{yyyymm}", "without a month"),
    ("public-inbox-mbox:/srv/dev", "takes a server"),
    ("hyperkitty:/srv/dev", "takes a server"),
    ("hyperkitty:https://lists.example.org/archives/", "not the page of a list"),
    ("hyperkitty:https://lists.example.org/list/dev", "not the page of a list"),
    ("ponymail:https://lists.example.org/list.html", "not the page of a list"),
    ("ponymail:https://lists.example.org/list.html?*@example.org", "not the page of a list"),
])  # fmt: skip
def test_other_urls_are_refused_without_the_password(url: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=reason) as refusal:
        check_source(url)
    assert "secret" not in str(refusal.value)
    with pytest.raises(ValueError, match=reason):
        open_source("x", url, start="2020-01", options=HttpOptions(), cache=tmp_path)


@pytest.mark.parametrize("pair", ["secret", ":secret"])
def test_malformed_password_is_refused_without_being_shown(pair: str) -> None:
    with pytest.raises(ValueError, match="MAIL_HTTP_AUTH must be written user:password") as refusal:
        HttpOptions(auth=pair)
    assert "secret" not in str(refusal.value)


def test_options_never_show_their_passwords() -> None:
    assert "secret" not in repr(HttpOptions(auth="ann:secret", postgresql_auth="bob:secret"))


def test_checking_a_url_loads_no_client() -> None:
    code = "import sys, mail_assets.sources.open; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert not {b"boto3", b"botocore", b"httpx", b"zstandard"} & set(loaded.stdout.split())
