"""Check the source of a list as lists.toml names it, and open it.

A path or file:// is a folder or an mbox file, s3://bucket/prefix an S3 prefix, http(s):// a page of
links or, with a placeholder for the month, a URL template. A kind in front, such as
`public-inbox:https://...`, names the program that keeps the archive.
"""

import hashlib
from pathlib import Path

from mail_assets.sources.archive_names import is_template
from mail_assets.sources.http_options import HttpOptions
from mail_assets.sources.list_pages import hyperkitty_export, ponymail_api
from mail_assets.sources.source import ArchiveSource
from mail_assets.sources.urls import (
    FOLDER_KINDS,
    HTTP_KINDS,
    check_http_url,
    folder_path,
    s3_location,
    split_kind,
    url_scheme,
)


def check_source(source: str) -> None:
    """Raise ValueError, with a short reason, where `source` cannot be one; opens nothing."""
    kind, url = split_kind(source)
    scheme = url_scheme(url)
    if kind in FOLDER_KINDS and scheme != "file":
        raise ValueError(f"{kind}: is a folder or file of this machine, not {scheme}://")
    if kind in HTTP_KINDS and scheme not in ("http", "https"):
        raise ValueError(f"{kind}: is a server; write {kind}:https://host/...")
    if kind == "public-inbox" and scheme == "s3":
        raise ValueError("public-inbox: is a folder of this machine or an http(s):// URL")
    if kind and is_template(url):
        raise ValueError(f"{kind}: takes the place of the whole list, without a month")
    match scheme:
        case "file":
            folder_path(url)
        case "s3":
            s3_location(url)
        case _:
            check_http_url(url)
    if kind == "hyperkitty":
        hyperkitty_export(url)
    if kind == "ponymail":
        ponymail_api(url)


def open_source(
    list_name: str, source: str, *, start: str, options: HttpOptions, cache: Path
) -> ArchiveSource:
    """Return the source of a list's archives.

    `start` ("YYYY-MM") is the first month to ask for where no listing names the months; `options`
    are for http(s) alone. Below `cache` a source keeps what it has found out.

    Raises:
        ValueError: `source` cannot be one.
    """
    check_source(source)
    kind, url = split_kind(source)
    own_cache = cache / f"{list_name}-{hashlib.sha256(source.encode()).hexdigest()[:8]}"
    # imported where they are opened: boto3 and httpx take 0.1 s each, and most commands open none
    match kind, url_scheme(url):
        case _, "file":
            from mail_assets.sources.folder_kinds import open_folder

            return open_folder(list_name, kind, url, own_cache)
        case _, "s3":
            from mail_assets.sources.s3 import S3Source

            return S3Source(list_name, url)
        case "public-inbox", _:
            from mail_assets.sources.public_inbox import PublicInboxSource

            return PublicInboxSource(list_name, url, options, own_cache)
        case "public-inbox-mbox", _:
            from mail_assets.sources.public_inbox_mbox import PublicInboxMboxSource

            return PublicInboxMboxSource(list_name, url, options, start)
        case "hyperkitty", _:
            from mail_assets.sources.hyperkitty import HyperKittySource

            return HyperKittySource(list_name, url, options, start)
        case "ponymail", _:
            from mail_assets.sources.ponymail import PonymailSource

            return PonymailSource(list_name, url, options)
    from mail_assets.sources.http import PageSource, TemplateSource

    if is_template(url):
        return TemplateSource(list_name, url, options, start)
    return PageSource(list_name, url, options)
