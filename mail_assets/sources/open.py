"""Check and open the source of a list, as lists.toml names it.

A path or file:// is a folder or an mbox file; s3://bucket/prefix is an S3 prefix; http(s):// is a
page of links or, with a placeholder for the month, a URL template. A kind in front, such as
`public-inbox:https://...`, names the program that keeps the archive. A path rarely needs one: the
files show whether it is a folder of archives, an mbox, a Maildir, .eml files or git.
"""

import hashlib
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mail_assets.sources.source import ArchiveSource, HttpOptions
from mail_assets.sources.urls import (
    FOLDER_KINDS,
    HTTP_KINDS,
    check_http_url,
    folder_path,
    group_by_month,
    hyperkitty_export,
    is_template,
    ponymail_api,
    s3_location,
    split_kind,
    url_scheme,
)

if TYPE_CHECKING:
    from mail_assets.sources.message_source import Messages


def check_source(source: str) -> None:
    """Raise ValueError with a short reason if `source` is malformed; open nothing."""
    kind, url = split_kind(source)
    scheme = url_scheme(url)
    if kind in FOLDER_KINDS and scheme != "file":
        raise ValueError(f"{kind}: takes a folder or file of this machine, not {scheme}://")
    if kind in HTTP_KINDS and scheme not in ("http", "https"):
        raise ValueError(f"{kind}: takes a server; write {kind}:https://host/...")
    if kind == "public-inbox" and scheme == "s3":
        raise ValueError("public-inbox: takes a folder of this machine or an http(s):// URL")
    if kind and is_template(url):
        raise ValueError(f"{kind}: takes the URL of the whole list, without a month")
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

    `start` ("YYYY-MM") is the first month to request from a server without a listing. `options` are
    for http(s) only. A source keeps its own files below the folder `cache`.

    Raises:
        ValueError: `source` is malformed.
    """
    check_source(source)
    kind, url = split_kind(source)
    own_cache = cache / f"{list_name}-{hashlib.sha256(source.encode()).hexdigest()[:8]}"
    # imported here, because a check of lists.toml needs no client; boto3 and httpx take 0.1 s each
    match kind, url_scheme(url):
        case _, "file":
            return _open_folder(list_name, kind, url, own_cache)
        case _, "s3":
            from mail_assets.sources.s3 import S3Source

            return S3Source(list_name, url)
        case "public-inbox", _:
            from mail_assets.sources.public_inbox import PublicInboxSource

            return PublicInboxSource(list_name, url, options, own_cache)
        case "public-inbox-mbox", _:
            from mail_assets.sources.public_inbox import PublicInboxMboxSource

            return PublicInboxMboxSource(list_name, url, options, start)
        case "hyperkitty", _:
            from mail_assets.sources.web_pages import HyperKittySource

            return HyperKittySource(list_name, url, options, start)
        case "ponymail", _:
            from mail_assets.sources.web_pages import PonymailSource

            return PonymailSource(list_name, url, options)
    from mail_assets.sources.web_pages import PageSource, TemplateSource

    if is_template(url):
        return TemplateSource(list_name, url, options, start)
    return PageSource(list_name, url, options)


def _open_folder(list_name: str, kind: str, url: str, cache: Path) -> ArchiveSource:
    from mail_assets.sources import git, message_files
    from mail_assets.sources.folder import FolderSource
    from mail_assets.sources.message_source import MessageSource

    path = folder_path(url)
    messages: Messages
    match kind or _find_kind(path):
        case "maildir":
            messages = message_files.MessageFiles(
                partial(message_files.find_maildir_files, path), cache / "months"
            )
        case "eml" | "mh":
            messages = message_files.MessageFiles(
                partial(message_files.find_single_files, path), cache / "months"
            )
        case "mbox":
            file = path / "mbox" if path.is_dir() else path
            messages = message_files.MboxFile(file, cache / "months")
        case "public-inbox":
            messages = git.GitInbox(path, cache)
        case _:
            return FolderSource(list_name, url)
    return MessageSource(list_name, path.absolute().as_uri(), messages, cache)


def _find_kind(path: Path) -> str:
    """Return the first kind that fits a path; "" if it may have monthly archives."""
    from mail_assets.sources.git import find_repositories
    from mail_assets.sources.message_files import is_maildir

    if path.is_file():
        return "mbox"
    if is_maildir(path):
        return "maildir"
    if find_repositories(path):
        return "public-inbox"
    try:
        if _holds_messages(path):
            return "eml"
        return "mbox" if (path / "mbox").is_file() and not _has_archives(path) else ""
    except OSError:  # such as a missing folder: the source reports it
        return ""


def _has_archives(path: Path) -> bool:
    """Return whether a folder has monthly archives; numeric names may be messages of MH."""
    with os.scandir(path) as entries:
        names = [e.name for e in entries if e.is_file() and not e.name.startswith(".")]
    months = [name for group in group_by_month(names).values() for name in group]
    numbers = [name for name in names if name.isdecimal()]
    is_mh = (path / ".mh_sequences").is_file() or len(numbers) > len(months)
    return any(not (is_mh and name.isdecimal()) for name in months)


def _holds_messages(path: Path) -> bool:
    """Return whether a folder or a subfolder has a single-message file, and no archive."""
    from mail_assets.sources.message_files import is_single_file

    if _has_archives(path):
        return False
    with os.scandir(path) as entries:
        found = [entry for entry in entries if not entry.name.startswith(".")]
    if any(is_single_file(entry) for entry in found):
        return True
    return any(_holds_messages(Path(e.path)) for e in found if e.is_dir(follow_symlinks=False))
