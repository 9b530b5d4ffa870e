"""Check the URL of a word index, and open the index.

    lance:PATH                  LanceDB in a folder
    lance:s3://BUCKET/PREFIX    LanceDB on S3-like storage (AWS_ variables)

A URL never holds credentials.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mail_assets.environment import VARIABLES
from mail_assets.lance import check_lance_path, lance_location

if TYPE_CHECKING:  # settings check URLs at every start, and LanceDB alone takes a second
    from mail_assets.words.index import WordIndex


def open_words(url: str, environ: Mapping[str, str] | None = None, *, name: str = "") -> WordIndex:
    """Open the index `name`, by default this version's, at `url`; nothing is read or created yet.

    `environ` (by default the process's) gives the AWS_ variables for S3-like storage.
    """
    path = _lance_path(url)
    from mail_assets.words.index import NAME
    from mail_assets.words.lance import LanceWordIndex

    uri, options = lance_location(path, VARIABLES if environ is None else environ)
    return LanceWordIndex(uri, options, name or NAME)


def check_words_url(url: str) -> None:
    """Check a URL as a setting, without opening anything.

    Raises:
        ValueError: with a short reason that never quotes a credential.
    """
    _lance_path(url)


def _lance_path(url: str) -> str:
    scheme, _, path = url.partition(":")
    if scheme != "lance":
        raise ValueError(
            f"unknown kind of word index {scheme[:20]!r}; use lance:PATH or "
            "lance:s3://BUCKET/PREFIX"
        )
    check_lance_path(path)
    return path
