"""Monthly archives of a source that keeps single messages, or mixes the months in one file.

A month is written as an mbox, its messages in the order of the source: single messages in the
dialect mboxrd, those of an mbox as it has them. Which month a message belongs to is said in
`message_month`; each belongs to exactly one.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from mail_assets.month import ListMonth
from mail_assets.sources.archive_file import save_archive
from mail_assets.sources.cached_pairs import Pairs
from mail_assets.sources.folder_lock import hold_folder
from mail_assets.sources.source import ArchiveSource, Fetched, SourceError, Unchanged

FORMAT = "mbox-1"  #: raise it when the same messages would be written as other bytes


class Messages(Protocol):
    """The single messages of a mailing list; each has a key that names its bytes for good.

    Both raise SourceError, without the list's name.
    """

    def months(self) -> Pairs:
        """Return (month, key) of every message there is now, in an order that stays."""
        ...

    def entries(self, keys: Sequence[str]) -> Iterator[bytes]:
        """Yield the messages of these keys as an mbox has them, From_ line and all."""
        ...


class MessageSource(ArchiveSource):
    """The months of a list's single messages.

    A version is a digest of the keys of a month, so it is known without reading a message. What
    the messages remember is in the folder `cache`.
    """

    def __init__(self, list_name: str, url: str, messages: Messages, cache: Path) -> None:
        super().__init__(list_name, url)
        self._messages = messages
        self._cache = cache
        self._keys: dict[str, list[str]] | None = None

    def versions(self) -> dict[ListMonth, str]:
        """Look which messages there are now; return month -> version."""
        self._keys = self._group()
        return self.by_list_month({month: _version(keys) for month, keys in self._keys.items()})

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Write the month's messages to an mbox. See ArchiveSource."""
        if self._keys is None:
            self._keys = self._group()
        keys = self._keys.get(month.month)
        if keys is None:
            return None
        version = _version(keys)
        if version == known:
            return Unchanged(version, self.url)
        with self.refusing(month, self.url):
            size, sha256 = save_archive(self._messages.entries(keys), target)
        return Fetched(target, version, size, sha256, self.url)

    def _group(self) -> dict[str, list[str]]:
        try:
            # processes that fill months beside each other look at a new message once
            with hold_folder(self._cache):
                months = self._messages.months()
        except SourceError as error:
            raise self.error(None, str(error), retryable=error.retryable) from error
        except OSError as error:  # a disk is full, or a mount is gone
            what = f"{error.filename or self._cache}: {error.strerror}"
            raise self.error(None, what, retryable=True) from error
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for month, key in months:
            groups[month].append(key)
        return {month: groups[month] for month in sorted(groups)}


def _version(keys: list[str]) -> str:
    digest = hashlib.sha256("\n".join(keys).encode()).hexdigest()
    return f"{FORMAT}:{digest[:32]}"
