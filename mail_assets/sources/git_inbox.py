"""The messages of a public-inbox in git: one repository (format 1), or one for each epoch (2).

Format 2 has one file in each commit: `m` is a message that arrived, `d` one that is taken away,
by the same bytes. Format 1 has a file for each message, named by 2/38 digits of the SHA-1 of its
Message-ID. (public-inbox-v2-format(5), public-inbox-v1-format(5))

A key is the id of a blob. What the commits of a repository did is kept with the id of the newest
one, and from then on only new commits are walked, and only new messages read.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from mail_assets.mail.archive.mbox import MAX_MESSAGE
from mail_assets.sources.cached_pairs import Pairs, read_pairs, write_pairs
from mail_assets.sources.git import Blob, head_commit, is_ancestor, log_lines, read_blobs
from mail_assets.sources.mboxrd import format_message
from mail_assets.sources.month_index import Arrival, find_months
from mail_assets.sources.source import SourceError

MAX_READ = MAX_MESSAGE + (1 << 20)  # bytes; the parser cuts a longer message, and says so
MAX_TIME = 1 << 32  # seconds

_FORMAT_1 = re.compile(r"[0-9a-f]{2}/[0-9a-f]{38}")
_CHANGE = re.compile(
    r":[0-7]{6} (?P<mode>[0-7]{6}) (?P<old>[0-9a-f]{40,64}) (?P<new>[0-9a-f]{40,64}) "
    r"[A-Z]\t(?P<path>.{1,100})"
)
_EPOCH = re.compile(r"([0-9]{1,6})\.git")
_REMOVED = "removed"
_NO_FILE = "000000"


def find_repositories(folder: Path) -> list[Path]:
    """Return the repositories of the public-inbox in a folder, oldest first; [] if it is none."""
    if (folder / "HEAD").is_file() and (folder / "objects").is_dir():
        return [folder]
    epochs = {}
    for place in (folder / "git").glob("*.git"):
        number = _EPOCH.fullmatch(place.name)
        if number and (place / "objects").is_dir():
            epochs[int(number[1])] = place
    return [epochs[number] for number in sorted(epochs)]


class GitInbox:
    """The messages of the public-inbox in `folder`; `cache` is for what is found out."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder = folder
        self._cache = cache
        self._times: dict[str, int] = {}

    def months(self) -> Pairs:
        """Return (month, key) of every message, in the order of their commits. See Messages."""
        self._times = {}
        for repository in self._repositories():
            for id, what in self._events(repository):
                self._times.pop(id, None)
                if what != _REMOVED:
                    self._times[id] = int(what)
        return find_months([*self._times], self._read, self._cache / "months")

    def entries(self, keys: Sequence[str]) -> Iterator[bytes]:
        """Yield the messages of these keys as mboxrd. See Messages."""
        return (format_message(blob.data) for blob in self._blobs(keys))

    def _repositories(self) -> list[Path]:
        if found := find_repositories(self._folder):
            return found
        raise SourceError(
            f"{self._folder.absolute()} is no public-inbox: neither a bare git repository"
            " nor a folder with git/0.git"
        )

    def _events(self, repository: Path) -> Pairs:
        """Return (blob, time of its commit or REMOVED) for all commits of a repository."""
        newest = head_commit(repository)
        path = self._cache / f"events-{repository.stem}"
        known, events = read_pairs(path)
        if newest == known:
            return events
        if not newest:
            return []
        if not known or not is_ancestor(repository, known, newest):
            known, events = "", []  # its history was rewritten, as `public-inbox-purge` does
        events += _read_events(log_lines(repository, f"{known}..{newest}" if known else newest))
        write_pairs(path, newest, events)
        return events

    def _read(self, ids: Iterable[str]) -> Iterator[Arrival]:
        for blob in self._blobs(ids):
            time = min(self._times[blob.id], MAX_TIME)
            yield Arrival(blob.id, blob.data, datetime.fromtimestamp(time, UTC))

    def _blobs(self, ids: Iterable[str]) -> Iterator[Blob]:
        return read_blobs(self._repositories(), ids, MAX_READ)


def _read_events(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    time = "0"
    for line in lines:
        if line.startswith("@"):
            time = line[1:]
            continue
        change = _CHANGE.fullmatch(line)
        if change is None or not (change["path"] in "md" or _FORMAT_1.fullmatch(change["path"])):
            continue  # files that belong to no format, such as a README
        gone = change["mode"] == _NO_FILE
        if change["path"] == "d" and not gone:
            yield change["new"], _REMOVED
        elif change["path"] == "m" and not gone:
            yield change["new"], time
        elif change["path"] not in "md":
            yield change["old"], _REMOVED
            if not gone:
                yield change["new"], time
