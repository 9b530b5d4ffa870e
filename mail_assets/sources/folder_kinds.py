"""Open what a path names: a folder of monthly archives, one big mbox, a Maildir, .eml files, git.

Most tell by themselves; a kind in front of the path decides where they do not.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mail_assets.sources.archive_names import group_by_month
from mail_assets.sources.folder import FolderSource
from mail_assets.sources.git_inbox import GitInbox, find_repositories
from mail_assets.sources.mbox_file import MboxFile
from mail_assets.sources.message_files import (
    MessageFiles,
    find_eml_files,
    find_maildir_files,
    is_eml,
)
from mail_assets.sources.message_source import Messages, MessageSource
from mail_assets.sources.source import ArchiveSource
from mail_assets.sources.urls import folder_path


def open_folder(list_name: str, kind: str, url: str, cache: Path) -> ArchiveSource:
    """Return the source at a path; `kind` is one of urls.KINDS, or "" to look what is there."""
    path = folder_path(url)
    messages = _OPENERS.get(kind or _find_kind(path))
    if messages is None:
        return FolderSource(list_name, url)
    return MessageSource(list_name, path.absolute().as_uri(), messages(path, cache), cache)


def _find_kind(path: Path) -> str:
    """Return the kind of what is at a path; "" for a folder of monthly archives, or for nothing."""
    if path.is_file():
        return "mbox"
    if (path / "cur").is_dir() and (path / "new").is_dir():
        return "maildir"
    if find_repositories(path):
        return "public-inbox"
    try:
        return "eml" if _holds_eml(path) else ""
    except OSError:  # it is missing, say, which the source will tell
        return ""


def _holds_eml(path: Path) -> bool:
    """Say whether a folder has a .eml file, in it or below, and no monthly archive."""
    with os.scandir(path) as entries:
        found = [entry for entry in entries if not entry.name.startswith(".")]
    if group_by_month(entry.name for entry in found if entry.is_file()):
        return False
    if any(is_eml(entry) for entry in found):
        return True
    return any(_holds_eml(Path(e.path)) for e in found if e.is_dir(follow_symlinks=False))


def _open_maildir(path: Path, cache: Path) -> Messages:
    return MessageFiles(partial(find_maildir_files, path), cache / "months")


def _open_eml(path: Path, cache: Path) -> Messages:
    return MessageFiles(partial(find_eml_files, path), cache / "months")


def _open_mbox(path: Path, cache: Path) -> Messages:
    return MboxFile(path, cache / "months")


_OPENERS: dict[str, Callable[[Path, Path], Messages]] = {
    "maildir": _open_maildir,
    "eml": _open_eml,
    "mbox": _open_mbox,
    "public-inbox": GitInbox,
}
