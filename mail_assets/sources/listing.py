"""List the archives of several lists at once, within a time limit.

A listing that hangs costs the others nothing: each has a thread, and what is not finished when the
time is over is left behind.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import NamedTuple

from mail_assets.month import ListMonth
from mail_assets.sources.source import ArchiveSource, SourceError

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
