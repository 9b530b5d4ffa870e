"""The contract of a source of monthly archives: results, errors, HTTP options, listings."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from mail_assets.errors import MonthError
from mail_assets.month import ListMonth

T = TypeVar("T")

MOST_NAMES = 3  # of files or links in a line for people


def some_of(names: Sequence[str], separator: str = ", ") -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return separator.join(names[:MOST_NAMES]) + more


class SourceError(MonthError):
    """An archive or a listing of archives cannot be read.

    The message names the mailing list, the month, the fault and the remedy. `retryable`
    says whether the same request may succeed later with nothing changed on this side.
    """

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class Fetched(NamedTuple):
    """An archive that was written to `path` and checked.

    `url` is where the bytes were found in the end, after redirects. `version` is the source's token
    for these bytes, to be passed as `known` next time;
    `sha256` (hex) and `bytes` are those of the file as stored, still compressed.
    """

    path: Path
    version: str
    bytes: int
    sha256: str
    url: str


class Unchanged(NamedTuple):
    """The archive is provably the known `version`; nothing was written."""

    version: str
    url: str


class ArchiveSource(ABC):
    """The monthly archives of one mailing list, wherever they are kept.

    An instance belongs to one run and may keep what it learns of the list.
    """

    #: An equal version in a listing proves that an archive has not changed ("" never does).
    listing_proves = True

    def __init__(self, list_name: str, url: str) -> None:
        self.list_name = list_name
        self.url = url
        self._remarks: dict[str, list[str]] = {}
        self._reported: set[str] = set()

    @abstractmethod
    def versions(self) -> dict[ListMonth, str]:
        """Return month -> version token from one listing; "" if only a fetch can know it.

        A month with two archives is listed, so that its fetch can refuse both by name.
        """

    @abstractmethod
    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Copy the archive of `month` to `target`, whole and checked, or not at all.

        Returns None if the source has no archive for the month, and Unchanged if it is provably
        the version `known`.

        Raises:
            SourceError: for everything else.
        """

    def remark(self, what: str, names: Iterable[str]) -> None:
        """Record what a listing has found out about some files or links, by their names."""
        self._remarks[what] = [*names]

    def new_remarks(self) -> list[str]:
        """Return a line for each remark that was not returned before: its number and some names."""
        lines = [f"{what} ({len(n)}): {some_of(n)}" for what, n in self._remarks.items() if n]
        new = [line for line in lines if line not in self._reported]
        self._reported.update(new)
        return new

    def by_list_month(self, versions: Mapping[str, str]) -> dict[ListMonth, str]:
        """Return "YYYY-MM" -> version with the months of this list as keys."""
        return {ListMonth(self.list_name, month): version for month, version in versions.items()}

    def only_place(self, month: ListMonth, places: Mapping[str, list[str]]) -> str | None:
        """Return the place of a month's archive, or None.

        `places` are file names, keys or URLs by "YYYY-MM".

        Raises:
            SourceError: there are several.
        """
        found = places.get(month.month, [])
        if len(found) > 1:
            raise self.error(
                month,
                f"{some_of(found, ' and ')} in {self.url} name this month;"
                " keep one of them, or move the others elsewhere",
            )
        return found[0] if found else None

    def error(self, month: ListMonth | None, what: str, *, retryable: bool = False) -> SourceError:
        """Return the error that `what` is wrong with a month, or with the whole list (None)."""
        subject = f", month {month.month}" if month else ""
        return SourceError(f"list {self.list_name}{subject}: {what}", retryable=retryable)

    @contextmanager
    def refusing(self, month: ListMonth | None, url: str) -> Iterator[None]:
        """Add the list, the month (if any) and the URL to a SourceError about the data of `url`."""
        try:
            yield
        except SourceError as error:
            what = f"{url} is refused: {error}"
            raise self.error(month, what, retryable=error.retryable) from error


@dataclass(frozen=True, kw_only=True)
class HttpOptions:
    """Passwords, limits and times (in seconds) of requests to archive servers.

    Raises:
        ValueError: for a malformed pair or a number out of range; shows no password.
    """

    auth: str = field(default="", repr=False)  # "user:password" for all but postgresql.org
    # the public anti-crawler pair of postgresql.org
    postgresql_auth: str = field(default="archives:antispam", repr=False)
    # hosts that the source's own may redirect to or link to: "host" or "host:port"
    redirect_hosts: tuple[str, ...] = ()
    max_bytes: int = 4 << 30
    attempts: int = 5
    # between two requests to one host; None: 1 s for remote hosts, 0 for this machine
    delay: float | None = None
    connect_timeout: float = 15.0
    # of silence, and in all until a body brings bytes; a big month takes long to render
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


# Listings in parallel: they mostly wait for servers. The crawl delay of a source holds anyway.
WORKERS = 8


class Listing(NamedTuple):
    """Archives of several lists."""

    versions: dict[ListMonth, str]  # month -> version token, from ArchiveSource.versions
    failed: dict[str, str]  # list -> reason
    waiting: list[str]  # lists that were not started in time


def list_archives(sources: Sequence[ArchiveSource], seconds: float) -> Listing:
    """List the archives of each source, in this order, and return after `seconds` at the latest.

    Each listing has a thread, so that one that hangs does not delay the others. An unfinished
    thread ends with its request: give the sources short time-outs.
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


_LISTINGS = 5  # attempts; each moved file costs one more


def list_again(find: Callable[[], T]) -> T:
    """Return the result of `find`, called again if a file was moved in between.

    Raises:
        FileNotFoundError: a file was moved in each attempt.
    """
    for _ in range(_LISTINGS - 1):
        try:
            return find()
        except FileNotFoundError:
            pass
    return find()
