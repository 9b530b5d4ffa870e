"""Read a public-inbox on a server: mirror its git repositories, or download months by search.

The mirror is below MAIL_HOME/cache. The server lists its epochs in manifest.js.gz (the format of
grokmirror), each with a fingerprint of its branches. Only an epoch with a new fingerprint is
fetched, so a list without new mail costs one request.

Without a mirror, `dt:` searches the Date fields, in UTC. It needs the server's search index
(Xapian). `x=m` returns the result as mbox.gz, and only to a POST. (PublicInbox/WWW.pm,
SearchView.pm and Mbox.pm)
"""

import json
import re
import zlib
from pathlib import Path

from mail_assets.month import ListMonth
from mail_assets.sources.git import GitInbox, fetch_repository
from mail_assets.sources.http_reader import HttpReader, password_for
from mail_assets.sources.message_source import MessageSource, hold_folder, read_pairs, write_pairs
from mail_assets.sources.source import Fetched, HttpOptions, SourceError, Unchanged
from mail_assets.sources.web_pages import UnlistedSource, days_of_month, drop_empty

MAX_MANIFEST = 16 << 20  # bytes; an epoch takes 300

_EPOCH_URL = re.compile(r".{0,1000}/git/([0-9]{1,6})\.git")
_FINGERPRINT = re.compile(r"[0-9a-f]{40,64}")


class PublicInboxSource(MessageSource):
    """Messages of a public-inbox at an http(s) URL; its mirror is updated once a run."""

    def __init__(self, list_name: str, url: str, options: HttpOptions, cache: Path) -> None:
        self._mirror = cache / "mirror"
        super().__init__(list_name, url, GitInbox(self._mirror, cache), cache)
        self._reader = HttpReader(self, options)
        self._base = url.rstrip("/")
        self._options = options
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
        with hold_folder(self._mirror):
            state = self._mirror / "fingerprints"
            known = dict(read_pairs(state)[1])
            for name, (url, fingerprint) in self._epochs().items():
                if fingerprint and known.get(name) == fingerprint:
                    continue
                try:
                    auth = password_for(url, self.url, self._options)
                    address = self._reader.pin_address(url)
                    fetch_repository(url, self._mirror / "git" / name, auth, address)
                except SourceError as error:
                    what = f"{url} cannot be fetched: {error}"
                    raise self.error(None, what, retryable=error.retryable) from error
                known[name] = fingerprint
                write_pairs(state, "fingerprints", known.items())
        self._updated = True

    def _epochs(self) -> dict[str, tuple[str, str]]:
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
        data, final = self._reader.read_file(url, MAX_MANIFEST)
        moved = final.partition("?")[0]
        if moved.endswith("/manifest.js.gz"):  # git follows no redirect
            self._base = moved.removesuffix("/manifest.js.gz")
        if data is None:
            return {}
        try:
            if data.startswith(b"\x1f\x8b"):
                data = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, MAX_MANIFEST)
            manifest = json.loads(data)
        except (ValueError, RecursionError, zlib.error) as error:
            raise self.error(
                None, f"{url} is not a manifest: {error}; open it in a browser"
            ) from error
        if not isinstance(manifest, dict):
            raise self.error(None, f"{url} is not a manifest; open it in a browser")
        return manifest


def _fingerprint(entry: object) -> str:
    value = entry.get("fingerprint") if isinstance(entry, dict) else None
    return value if isinstance(value, str) and _FINGERPRINT.fullmatch(value) else ""


class PublicInboxMboxSource(UnlistedSource):
    """Messages of a public-inbox at an http(s) URL, requested month by month."""

    def fetch(self, month: ListMonth, target: Path, known: str = "") -> Fetched | Unchanged | None:
        """Download the month's messages; return None if there are none. See ArchiveSource."""
        first, last = (day.replace("-", "") for day in days_of_month(month.month))
        url = f"{self.url.rstrip('/')}/?q=dt:{first}000000..{last}235959&x=m"
        return drop_empty(self.reader.download(month, url, target, known, "POST"))
