"""Interface of a source of monthly archives: results, errors, HTTP options, listings."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from mail_assets.errors import MonthError, name_some
from mail_assets.month import ListMonth

T = TypeVar("T")


class SourceError(MonthError):
    """An archive or a listing of archives cannot be read.

    The message names the mailing list, the month, the fault and the remedy. `retryable`: the same
    request may succeed later, without a change on this side.
    """

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class Fetched(NamedTuple):
    """An archive that was written to `path` and checked.

    `url` is the final URL after redirects. `version` is the source's token for these bytes; pass it
    as `known` next time. `sha256` (hex) and `bytes` describe the file as stored, still compressed.
    """

    path: Path
    version: str
    bytes: int
    sha256: str
    url: str


class Unchanged(NamedTuple):
    """The archive still has the known `version`; nothing was written."""

    version: str
    url: str


class ArchiveSource(ABC):
    """Monthly archives of one mailing list.

    An instance belongs to one run and may cache facts about the list.
    """

    #: An equal version in a listing proves that an archive has not changed. "" never proves it.
    listing_proves = True

    def __init__(self, list_name: str, url: str) -> None:
        self.list_name = list_name
        self.url = url
        self._remarks: dict[str, list[str]] = {}
        self._reported: set[str] = set()

    @abstractmethod
    def versions(self) -> dict[ListMonth, str]:
        """Return month -> version token from one listing; "" if only a fetch can find it.

        A month with two archives is listed, so that its fetch can report both.
        """

    @abstractmethod
    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Copy the archive of `month` to `target`, complete and checked, or not at all.

        Return None if the source has no archive for the month, and Unchanged if it still has the
        version `known`.

        Raises:
            SourceError: the source cannot be read, or its archive is refused.
        """

    def remark(self, what: str, names: Iterable[str]) -> None:
        """Record a remark of a listing about some files or links."""
        self._remarks[what] = [*names]

    def new_remarks(self) -> list[str]:
        """Return a line for each remark that was not returned before, with some of the names."""
        lines = [f"{what} ({len(n)}): {name_some(n)}" for what, n in self._remarks.items() if n]
        new = [line for line in lines if line not in self._reported]
        self._reported.update(new)
        return new

    def by_list_month(self, versions: Mapping[str, str]) -> dict[ListMonth, str]:
        """Replace the keys "YYYY-MM" by months of this list."""
        return {ListMonth(self.list_name, month): version for month, version in versions.items()}

    def only_place(self, month: ListMonth, places: Mapping[str, list[str]]) -> str | None:
        """Return the file name, key or URL of a month's archive, or None.

        `places` are all of these by "YYYY-MM".

        Raises:
            SourceError: there are several.
        """
        found = places.get(month.month, [])
        if len(found) > 1:
            raise self.error(
                month,
                f"{self.url} has several archives of this month: "
                f"{name_some(found, separator=' and ')}; keep one of them, and move the others "
                "elsewhere",
            )
        return found[0] if found else None

    def error(self, month: ListMonth | None, what: str, *, retryable: bool = False) -> SourceError:
        """Return an error about a month, or about the whole list (None)."""
        subject = f", month {month.month}" if month else ""
        return SourceError(f"list {self.list_name}{subject}: {what}", retryable=retryable)

    @contextmanager
    def refusing(self, month: ListMonth | None, url: str) -> Iterator[None]:
        """Add the list, the month (if any) and the URL to a SourceError about data from `url`."""
        try:
            yield
        except SourceError as error:
            what = f"{url} is refused: {error}"
            raise self.error(month, what, retryable=error.retryable) from error


@dataclass(frozen=True, kw_only=True)
class HttpOptions:
    """Passwords, limits and times (in seconds) of requests to archive servers.

    Raises:
        ValueError: a pair is malformed, or a number is out of range; it shows no password.
    """

    auth: str = field(default="", repr=False)  # "user:password" for all but postgresql.org
    # the public anti-crawler pair of postgresql.org
    postgresql_auth: str = field(default="archives:antispam", repr=False)
    # other hosts to which the source may redirect or link: "host" or "host:port"
    redirect_hosts: tuple[str, ...] = ()
    max_bytes: int = 4 << 30
    attempts: int = 5
    # between two requests to one host; None: 1 s for remote hosts, 0 for this machine
    delay: float | None = None
    connect_timeout: float = 15.0
    # longest silence, and longest wait for the first bytes; a server renders a big month slowly
    read_timeout: float = 60.0
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


# Parallel listings; they mostly wait for servers. The crawl delay per server still applies.
WORKERS = 8


class Listing(NamedTuple):
    """Archives of several lists."""

    versions: dict[ListMonth, str]  # month -> version token, from ArchiveSource.versions
    failed: dict[str, str]  # list -> reason
    waiting: list[str]  # lists that were not started in time


def list_archives(sources: Sequence[ArchiveSource], seconds: float) -> Listing:
    """List the archives of each source, in this order; return after at most `seconds`.

    Each listing has a thread, so that a slow one does not delay the others. An unfinished thread
    ends when its request ends, so the sources need short timeouts.
    """
    executor = ThreadPoolExecutor(WORKERS, thread_name_prefix="list-archives")
    futures = {executor.submit(source.versions): source.list_name for source in sources}
    wait(futures, timeout=seconds)
    executor.shutdown(wait=False, cancel_futures=True)
    listing = Listing({}, {}, [])
    for future, name in futures.items():
        if future.cancelled():
            listing.waiting.append(name)
        elif not future.done():
            listing.failed[name] = f"list {name}: no answer within {seconds:g} s"
        else:
            try:
                listing.versions.update(future.result())
            except SourceError as error:
                listing.failed[name] = str(error)
    return listing


_LISTINGS = 5  # attempts


def list_again(find: Callable[[], T]) -> T:
    """Return the result of `find`; call it again if a file was moved meanwhile.

    Raises:
        FileNotFoundError: a file was moved in each attempt.
    """
    for _ in range(_LISTINGS - 1):
        try:
            return find()
        except FileNotFoundError:
            pass
    return find()
