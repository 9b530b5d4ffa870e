"""A public-inbox on a server: a mirror of its git repositories, kept below MAIL_HOME/cache.

The server names its epochs in manifest.js.gz (that of grokmirror), each with a fingerprint of its
branches. Only an epoch whose fingerprint is new is fetched, so a quiet list costs one request.

[git_inbox] The messages of a public-inbox in git: one repository (format 1), or one for each epoch (2).

Format 2 has one file in each commit: `m` is a message that arrived, `d` one that is taken away,
by the same bytes. Format 1 has a file for each message, named by 2/38 digits of the SHA-1 of its
Message-ID. (public-inbox-v2-format(5), public-inbox-v1-format(5))

A key is the id of a blob. What the commits of a repository did is kept with the id of the newest
one, and from then on only new commits are walked, and only new messages read.

[public_inbox_mbox] A public-inbox on a server without a mirror: its search for a month's messages, as mbox.gz.

The search is `dt:` over the Date fields, in UTC, and needs the server's search index (Xapian).
`x=m` is answered to POST only. (PublicInbox/WWW.pm, SearchView.pm and Mbox.pm)
"""

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from mail_assets.mail.archive.mbox import MAX_MESSAGE
from mail_assets.month import ListMonth
from mail_assets.sources.git import (
    Blob,
    Pairs,
    fetch_repository,
    head_commit,
    hold_folder,
    is_ancestor,
    log_lines,
    read_blobs,
    read_pairs,
    write_pairs,
)
from mail_assets.sources.http_reader import HttpOptions, HttpReader, password_for
from mail_assets.sources.message_source import Arrival, MessageSource, find_months, format_message
from mail_assets.sources.source import ArchiveSource, Fetched, SourceError, Unchanged
from mail_assets.sources.web_pages import days_of_month, drop_empty, months_since

MAX_READ = MAX_MESSAGE + (1 << 20)  # bytes; the parser cuts a longer message, and says so
MAX_TIME = 1 << 32  # seconds

_FORMAT_1 = re.compile(r"[0-9a-f]{2}/[0-9a-f]{38}")
_CHANGE = re.compile(
    r":[0-7]{6} (?P<mode>[0-7]{6}) (?P<old>[0-9a-f]{40,64}) (?P<new>[0-9a-f]{40,64}) "
    r"[A-Z]\t(?P<path>.{1,100})"
)
_EPOCH_FOLDER = re.compile(r"([0-9]{1,6})\.git")
_REMOVED = "removed"
_NO_FILE = "000000"


def find_repositories(folder: Path) -> list[Path]:
    """Return the repositories of the public-inbox in a folder, oldest first; [] if it is none."""
    if (folder / "HEAD").is_file() and (folder / "objects").is_dir():
        return [folder]
    epochs = {}
    for place in (folder / "git").glob("*.git"):
        number = _EPOCH_FOLDER.fullmatch(place.name)
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


MAX_MANIFEST = 16 << 20  # bytes; an epoch has 300

_EPOCH_URL = re.compile(r".{0,1000}/git/([0-9]{1,6})\.git")
_FINGERPRINT = re.compile(r"[0-9a-f]{40,64}")


class PublicInboxSource(MessageSource):
    """The messages of a public-inbox at an http(s) URL; its mirror is updated once a run."""

    def __init__(self, list_name: str, url: str, options: HttpOptions, cache: Path) -> None:
        self._mirror = cache / "mirror"
        super().__init__(list_name, url, GitInbox(self._mirror, cache), cache)
        self._reader = HttpReader(self, options)
        self._base = url.rstrip("/")
        self._auth = password_for(url, url, options)
        self._updated = False

    def versions(self) -> dict[ListMonth, str]:
        """Update the mirror; return month -> version."""
        self._update()
        return super().versions()

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Write the month's messages as mboxrd. See ArchiveSource."""
        if not self._updated:
            self._update()
        return super().fetch(month, target, known)

    def _update(self) -> None:
        """Fetch the epochs that are new or have changed; one process at a time does."""
        with hold_folder(self._mirror):
            state = self._mirror / "fingerprints"
            known = dict(read_pairs(state)[1])
            for name, (url, fingerprint) in self._epochs().items():
                if fingerprint and known.get(name) == fingerprint:
                    continue
                try:
                    fetch_repository(url, self._mirror / "git" / name, self._auth)
                except SourceError as error:
                    what = f"{url} is not fetched: {error}"
                    raise self.error(None, what, retryable=error.retryable) from error
                known[name] = fingerprint
                write_pairs(state, "fingerprints", known.items())
        self._updated = True

    def _epochs(self) -> dict[str, tuple[str, str]]:
        """Return name -> URL and fingerprint of each repository, "" where it is not known."""
        manifest = self._read_manifest()
        found = {}
        for path, entry in manifest.items():
            if number := _EPOCH_URL.fullmatch(path):
                name = f"{int(number[1])}.git"
                found[name] = (f"{self._base}/git/{name}", _fingerprint(entry))
        if not found:  # format 1, or a server without a manifest
            entry = next(iter(manifest.values())) if len(manifest) == 1 else None
            found["0.git"] = (self._base, _fingerprint(entry))
        return found

    def _read_manifest(self) -> dict[str, object]:
        url = f"{self._base}/manifest.js.gz"
        data = self._reader.read_file(url, MAX_MANIFEST)
        if data is None:
            return {}
        try:
            if data.startswith(b"\x1f\x8b"):
                data = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, MAX_MANIFEST)
            manifest = json.loads(data)
        except (ValueError, RecursionError, zlib.error) as error:
            raise self.error(
                None, f"{url} is no manifest: {error}; open it in a browser"
            ) from error
        if not isinstance(manifest, dict):
            raise self.error(None, f"{url} is no manifest; open it in a browser")
        return manifest


def _fingerprint(entry: object) -> str:
    value = entry.get("fingerprint") if isinstance(entry, dict) else None
    return value if isinstance(value, str) and _FINGERPRINT.fullmatch(value) else ""


class PublicInboxMboxSource(ArchiveSource):
    """The messages of a public-inbox at an http(s) URL, asked for month by month."""

    def __init__(self, list_name: str, url: str, options: HttpOptions, start: str) -> None:
        super().__init__(list_name, url)
        self._reader = HttpReader(self, options)
        self._start = start

    def versions(self) -> dict[ListMonth, str]:
        """Return month -> "" for every month; asks nobody, so some may have no archive."""
        return self.by_list_month(months_since(self._start))

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download the month's messages; None where it has none. See ArchiveSource."""
        first, last = (day.replace("-", "") for day in days_of_month(month.month))
        url = f"{self.url.rstrip('/')}/?q=dt:{first}000000..{last}235959&x=m"
        return drop_empty(self._reader.download(month, url, target, known, "POST"))
