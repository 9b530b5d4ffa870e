"""The contract of a source of monthly archives, what it returns and what it raises.

[listing] List the archives of several lists at once, within a time limit.

A listing that hangs costs the others nothing: each has a thread, and what is not finished when the
time is over is left behind.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mail_assets.errors import MonthError
from mail_assets.month import ListMonth

#: Places of one month that an error names.
MOST_PLACES = 3


class SourceError(MonthError):
    """An archive or a listing of archives cannot be read.

    The message names the mailing list, the month, what is wrong and the remedy. `retryable`
    says whether the same request may succeed later with nothing changed on this side.
    """

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class Fetched(NamedTuple):
    """An archive that was written to `path` and checked.

    `version` is the source's token for these bytes, to be passed as `known` next time;
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

    An instance belongs to one run: what it has learned of the list may be kept for its life.
    """

    #: Whether an equal version of a listing proves that an archive has not changed. "" never does.
    listing_proves = True

    def __init__(self, list_name: str, url: str) -> None:
        self.list_name = list_name
        self.url = url

    @abstractmethod
    def versions(self) -> dict[ListMonth, str]:
        """Return month -> version token, from one listing; "" where only a fetch can tell.

        A month of two archives is listed, so that its fetch can refuse both by name.
        """

    @abstractmethod
    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Copy the archive of `month` to `target`, whole and checked, or not at all.

        Returns None where the source has no archive for the month, and Unchanged where it is
        provably the version `known`.

        Raises:
            SourceError: for everything else.
        """

    def by_list_month(self, versions: Mapping[str, str]) -> dict[ListMonth, str]:
        """Return month -> version for this list, of "YYYY-MM" -> version."""
        return {ListMonth(self.list_name, month): version for month, version in versions.items()}

    def only_place(self, month: ListMonth, places: Mapping[str, list[str]]) -> str | None:
        """Return the one place of a month's archive, or None where there is none.

        `places` are file names, keys or URLs by "YYYY-MM".

        Raises:
            SourceError: there are two.
        """
        found = places.get(month.month, [])
        if len(found) > 1:
            more = f" and {len(found) - MOST_PLACES} more" if len(found) > MOST_PLACES else ""
            raise self.error(
                month,
                f"{' and '.join(found[:MOST_PLACES])}{more} in {self.url} name this month;"
                " keep one of them, or move the others elsewhere",
            )
        return found[0] if found else None

    def error(self, month: ListMonth | None, what: str, *, retryable: bool = False) -> SourceError:
        """Return the error that says `what` is wrong with a month, None for the whole list."""
        subject = f", month {month.month}" if month else ""
        return SourceError(f"list {self.list_name}{subject}: {what}", retryable=retryable)

    @contextmanager
    def refusing(self, month: ListMonth | None, url: str) -> Iterator[None]:
        """Add the list, the month (if any) and the URL to a SourceError about what `url` sent."""
        try:
            yield
        except SourceError as error:
            what = f"{url} is refused: {error}"
            raise self.error(month, what, retryable=error.retryable) from error


#: Listings at once. They wait for servers, so it is no matter of cores; a source's own pace
#: (one request a second to a host) holds inside of them.
WORKERS = 8


class Listing(NamedTuple):
    """What the lists have.

    `versions` is month -> version token, as of `ArchiveSource.versions`; `failed` is list ->
    reason; `waiting` are the lists whose turn did not come.
    """

    versions: dict[ListMonth, str]
    failed: dict[str, str]
    waiting: list[str]


def list_archives(sources: Sequence[ArchiveSource], seconds: float) -> Listing:
    """List the archives of each source, in this order, and return after `seconds` at the latest.

    A thread that is left behind ends with its request: give the sources short time-outs.
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
