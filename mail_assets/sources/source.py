"""What every source of archives has in common, and the way to open one.

What lives here: the contract (`ArchiveSource`), what it returns and raises, the options of
HTTP sources, and `open_source`, which picks the implementation by the URL's scheme. What does
not: any reading. A source knows nothing of Dagster or Postgres; settings are handed in.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from mail_assets.month import ListMonth
from mail_assets.sources.months import PLACEHOLDERS, fill


class SourceError(RuntimeError):
    """An archive or a list of archives could not be had.

    The message names the mailing list, the month, what is wrong and the remedy. `retryable`
    says whether the same request may succeed later with nothing changed on this side.
    """

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class Fetched(NamedTuple):
    """An archive that now stands, checked, at `path`.

    `version` is the source's token for these bytes, to be handed back as `known` next time;
    `sha256` (hex) and `bytes` are those of the file as stored, still compressed.
    """

    path: Path
    version: str
    bytes: int
    sha256: str
    url: str


class Unchanged(NamedTuple):
    """The archive is provably the one known by `version`; nothing was written."""

    version: str
    url: str


class ArchiveSource(ABC):
    """The monthly archives of one mailing list, wherever they are kept.

    An instance belongs to one run: what it has learned of the list may be kept for its life.
    """

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url

    @abstractmethod
    def versions(self) -> dict[ListMonth, str]:
        """Return month -> version token, from one listing; "" where only a fetch can tell.

        A month that two archives claim is listed, so that its fetch can refuse it by name.
        """

    @abstractmethod
    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Copy the archive of `month` to `target`, whole and checked, or not at all.

        Returns None where the source has no archive for the month, and Unchanged where it is
        provably the version `known`. Raises SourceError for everything else.
        """

    def keyed(self, versions: Mapping[str, str]) -> dict[ListMonth, str]:
        """Return month -> version for this list, of "YYYY-MM" -> version."""
        return {ListMonth(self.name, month): version for month, version in versions.items()}

    def error(self, month: ListMonth | None, what: str, *, retryable: bool = False) -> SourceError:
        """Make the error that says `what` is wrong with a month, None for the whole list."""
        subject = f"list {self.name}, month {month.month}" if month else f"list {self.name}"
        return SourceError(f"{subject}: {what}", retryable=retryable)

    def only(self, month: ListMonth, places: Mapping[str, list[str]]) -> str | None:
        """Return the one place that holds `month`, or None; refuse two claims to one month."""
        claims = places.get(month.month, [])
        if len(claims) > 1:
            raise self.error(
                month,
                f"{' and '.join(claims)} in {self.url} both name this month;"
                " keep one of them, or move the other elsewhere",
            )
        return claims[0] if claims else None


@dataclass(frozen=True, kw_only=True)
class HttpOptions:
    """How to speak to HTTP servers.

    `auth` is "user:password" (or "") for every host but postgresql.org's, whose public
    anti-crawler pair is `postgresql_auth`. Times are in seconds; `delay` is the pause between
    two requests to one host, None meaning 1 s for remote hosts and 0 for this machine.
    """

    auth: str = field(default="", repr=False)
    postgresql_auth: str = field(default="archives:antispam", repr=False)
    max_bytes: int = 4 << 30
    attempts: int = 5
    delay: float | None = None
    connect_timeout: float = 15.0
    read_timeout: float = 60.0  # between two pieces of a body; a big month takes long to render
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        pairs = {"MAIL_HTTP_AUTH": self.auth, "the pair for postgresql.org": self.postgresql_auth}
        for name, pair in pairs.items():
            if pair and pair.find(":") < 1:
                raise ValueError(f"{name} must be written user:password")
        if self.attempts < 1 or self.max_bytes < 1:
            raise ValueError("HTTP attempts and max_bytes must be at least 1")
        pauses = (self.delay or 0.0, self.connect_timeout, self.read_timeout)
        if not all(math.isfinite(pause) and pause >= 0 for pause in pauses):
            raise ValueError("HTTP delays and timeouts must be finite and not negative")


def check_source(url: str) -> None:
    """Raise ValueError, with a short reason, where `url` cannot be a source; opens nothing."""
    scheme = scheme_of(url)
    if scheme == "file":
        folder_of(url)
    elif scheme == "s3":
        bucket_of(url)
    else:
        _check_http(url)


def open_source(name: str, url: str, *, start: str, options: HttpOptions) -> ArchiveSource:
    """Return the source behind `url` for the list `name`; ValueError where `url` is none.

    A path or file:// is a folder, s3://bucket/prefix an S3 prefix, http(s):// a page of links
    or a URL template. `start` ("YYYY-MM") is the first month of a template.
    """
    check_source(url)
    # imported where they are opened: they need the contract above, boto3 and httpx take 0.1 s
    match scheme_of(url):
        case "file":
            from mail_assets.sources.folder import FolderSource

            return FolderSource(name, url)
        case "s3":
            from mail_assets.sources.s3 import S3Source

            return S3Source(name, url)
    from mail_assets.sources.http import PageSource, TemplateSource

    if is_template(url):
        return TemplateSource(name, url, options, start)
    return PageSource(name, url, options)


def scheme_of(url: str) -> str:
    """Return "file", "s3", "http" or "https"; a plain path is a "file"."""
    if not url.strip():
        raise ValueError("a source is needed: a folder, http(s)://, or s3://bucket/prefix")
    scheme, separator, _ = url.partition("://")
    scheme = scheme.lower() if separator else "file"
    if scheme not in ("file", "s3", "http", "https"):
        raise ValueError(
            f"the scheme {scheme}:// is not supported; use a folder's path, file://,"
            " http(s):// or s3://bucket/prefix"
        )
    return scheme


def folder_of(url: str) -> Path:
    """Return the folder that a path or a file:// URL names."""
    if "://" not in url:
        return Path(url).expanduser()
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise ValueError(f"{url!r} names no folder of this machine; write file:///folder")
    return Path(unquote(parts.path))


def bucket_of(url: str) -> tuple[str, str]:
    """Return the bucket and the prefix ("" or ending in a slash) of s3://bucket/prefix."""
    bucket, _, prefix = url.partition("://")[2].partition("/")
    if not bucket or "@" in bucket:
        raise ValueError(f"{url!r} names no bucket; write s3://bucket/prefix")
    prefix = prefix.strip("/")
    return bucket, f"{prefix}/" if prefix else ""


def is_template(url: str) -> bool:
    """Whether the URL holds a placeholder for the month."""
    return any(placeholder in url for placeholder in PLACEHOLDERS)


def _check_http(url: str) -> None:
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL holds a user name; put user:password in MAIL_HTTP_AUTH instead")
    if not parts.hostname:
        raise ValueError(f"{url!r} has no host; write {parts.scheme}://host/path")
    _ = parts.port  # a bad port is reported only here, as ValueError
    if "{" in parts.netloc or "{" in fill(url, "2000-01"):
        raise ValueError(
            f"{url!r} has a brace that is no month; {', '.join(PLACEHOLDERS)} may stand in its path"
        )
