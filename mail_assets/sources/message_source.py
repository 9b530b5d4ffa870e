"""Monthly archives from a source of single messages, or from one mbox with many months.

A month is written as an mbox, with its messages in the order of the source. Single messages are
written in the dialect mboxrd; those of an mbox stay unchanged. Each message belongs to exactly one
month, by the rule of the parser (`decide_sent_at`):

1. the month, in UTC, of the Date field, unless the Received fields contradict it;
2. else the month of the Received fields;
3. else the month in which the message arrived according to its source: the committer's time of a
   commit, the delivery time in the name of a Maildir file, the time recorded by Apple Mail, the
   From_ line of an mbox, the modification time of a file. This time is written in the From_ line;
4. else 1970-01, which lists.toml leaves out and `backfill` reports.

A date before 1971 comes from a clock at zero, and a date more than a day ahead from a wrong clock;
such a date is skipped. A source caches the month of each message in a file, so that it reads each
message once.
"""

import fcntl
import hashlib
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol, TypeGuard

from mail_assets.files import make_private_folder
from mail_assets.mail.message.dates import ParsedDate, decide_sent_at, parse_date, read_hops
from mail_assets.mail.message.headers import NO_HEADER, decode_fields, read_beginning
from mail_assets.month import ListMonth
from mail_assets.sources.archive_file import save_archive, write_whole
from mail_assets.sources.source import ArchiveSource, Fetched, SourceError, Unchanged

Pairs = list[tuple[str, str]]

FORMAT_VERSION = "mbox-2"  # raise it when equal messages would be written as other bytes


class Messages(Protocol):
    """Single messages of a mailing list; each has a key that always identifies the same bytes.

    Both methods raise SourceError without the list's name.
    """

    @property
    def remarks(self) -> Mapping[str, Sequence[str]]:
        """Remarks of the last listing: files left out, or with a guessed month."""
        ...

    def months(self) -> Pairs:
        """Return (month, key) of every current message, in a stable order."""
        ...

    def entries(self, keys: Sequence[str]) -> Iterator[bytes]:
        """Yield the messages of these keys in mbox form, with their From_ lines."""
        ...


class MessageSource(ArchiveSource):
    """Monthly archives made from a list's single messages.

    A version is a digest of the keys of a month, so it is known without reading a message. The
    source keeps its own files in the folder `cache`.
    """

    def __init__(self, list_name: str, url: str, messages: Messages, cache: Path) -> None:
        super().__init__(list_name, url)
        self._messages = messages
        self._cache = cache
        self._keys: dict[str, list[str]] | None = None

    def versions(self) -> dict[ListMonth, str]:
        """List the current messages; return month -> version."""
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
            # locked, so that only one of several processes reads a new message
            with hold_folder(self._cache):
                months = self._messages.months()
        except SourceError as error:
            raise self.error(None, str(error), retryable=error.retryable) from error
        except OSError as error:  # such as a full disk or a missing mount
            what = f"{error.filename or self._cache}: {error.strerror}"
            raise self.error(None, what, retryable=True) from error
        for what, names in self._messages.remarks.items():
            self.remark(what, names)
        if not months and (remarks := self.new_remarks()):
            raise self.error(None, f"{self.url} has no readable message: {remarks[0]}")
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for month, key in months:
            groups[month].append(key)
        return {month: groups[month] for month in sorted(groups)}


def _version(keys: list[str]) -> str:
    digest = hashlib.sha256("\n".join(keys).encode()).hexdigest()
    return f"{FORMAT_VERSION}:{digest[:32]}"


# mboxrd, byte for byte as public-inbox writes it. The From_ line is constant, so that the same
# messages in the same order give the same file.
# https://www.loc.gov/preservation/digital/formats/fdd/fdd000385.shtml
FROM_LINE = b"From mboxrd@z Thu Jan  1 00:00:00 1970\n"
#: From_ line of a message whose only date is that of its arrival.
_ARRIVED = b"From mboxrd@z %s\n"

_QUOTED = re.compile(rb"^(?=>*+From )", re.MULTILINE)
# From_ lines that an mbox left above the header; public-inbox drops them too (Mbox.pm, msg_hdr).
_ENVELOPE = re.compile(rb"(?:[\r\n]*+>?From [^\n]*+\n)*+")
_FIELD = re.compile(rb"[!-9;-~]{1,256}[ \t]{0,8}:")


def strip_envelope(raw: bytes) -> bytes:
    """Return a message without the From_ lines above its header."""
    return raw[_ENVELOPE.match(raw).end() :]  # type: ignore[union-attr]  # it always matches


def format_message(raw: bytes, arrived: datetime | None = None) -> bytes:
    """Return a message in mboxrd form: From_ line, quoted lines, and a blank line.

    A message without a header gets the field X-No-Header; nothing else is changed. `arrived` is
    written in the From_ line, for a message without another date.
    """
    raw = strip_envelope(raw)
    if not _FIELD.match(raw):
        raw = NO_HEADER + raw
    end = b"\n" if raw.endswith(b"\n") else b"\n\n"
    line = _ARRIVED % time.asctime(arrived.utctimetuple()).encode() if arrived else FROM_LINE
    return line + _QUOTED.sub(b">", raw) + end


MONTH_RULE_VERSION = "2"  # raise it when messages would get another month
NO_DATE = "1970-01"

_FIRST = datetime(1971, 1, 1, tzinfo=UTC)
_AHEAD = timedelta(days=1)


def month_of_message(raw: bytes, arrived: datetime | None) -> str:
    """Return the month of a message, "YYYY-MM"; `arrived` is None if unknown."""
    headers = read_beginning(strip_envelope(raw)).headers
    latest = datetime.now(UTC) + _AHEAD

    def is_possible(date: ParsedDate | None) -> TypeGuard[ParsedDate]:
        return date is not None and _FIRST <= date.at <= latest

    def received() -> Iterator[ParsedDate]:
        return filter(is_possible, read_hops(headers.get("received", ())))

    dates = [text for text in decode_fields(headers, "date") if is_possible(parse_date(text))]
    # decide_sent_at needs the archive's month, which is not known yet: try each candidate
    for candidate in chain(filter(None, map(parse_date, dates[:1])), received()):
        sent = decide_sent_at(dates, received(), "", f"{candidate.at:%Y-%m}")
        if sent.source != "archive_month":
            return f"{sent.at:%Y-%m}"
    if arrived and _FIRST <= arrived <= latest:
        return f"{arrived:%Y-%m}"
    return NO_DATE


class Arrival(NamedTuple):
    """A message of a source, and its time of arrival; None if the source has none."""

    key: str
    raw: bytes
    arrived: datetime | None


class FoundMonths(NamedTuple):
    """Month and key of each message, and the keys of messages dated only by their arrival."""

    pairs: Pairs
    by_arrival: frozenset[str]


_BY_ARRIVAL = "~"  # suffix of the month in the cache file


def find_months(
    keys: Sequence[str], read: Callable[[Iterable[str]], Iterator[Arrival]], path: Path
) -> FoundMonths:
    """Return the month of each key; read only messages whose keys are not in the file `path`.

    A key always identifies the same bytes. A key that `read` skips has no month.
    """
    rule, pairs = read_pairs(path)
    known = {key: month for month, key in pairs} if rule == MONTH_RULE_VERSION else {}
    missing = [key for key in keys if key not in known]
    for message in read(missing):
        month = month_of_message(message.raw, None)
        if month == NO_DATE and message.arrived:
            month = month_of_message(message.raw, message.arrived) + _BY_ARRIVAL
        known[message.key] = month
    months = [(known[key], key) for key in keys if key in known]
    if (MONTH_RULE_VERSION, months) != (rule, pairs):
        write_pairs(path, MONTH_RULE_VERSION, months)
    return FoundMonths(
        [(month.removesuffix(_BY_ARRIVAL), key) for month, key in months],
        frozenset(key for month, key in months if month.endswith(_BY_ARRIVAL)),
    )


def read_pairs(path: Path) -> tuple[str, Pairs]:
    """Return state and pairs of a cache file; ("", []) if it is missing or damaged.

    The first line is the state of the source when the file was written. Each further line is a
    pair, separated by a tab. The file may be deleted at any time.
    """
    try:
        with path.open(encoding="ascii", newline="\n") as file:
            state = file.readline().rstrip("\n")
            pairs = [line.rstrip("\n").split("\t") for line in file]
            return state, [(first, second) for first, second in pairs]
    except (FileNotFoundError, ValueError):
        return "", []


def write_pairs(path: Path, state: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Replace a cache file; a reader sees the old one or the new one."""
    with write_whole(path) as file:
        file.write(f"{state}\n".encode("ascii"))
        file.writelines(f"{first}\t{second}\n".encode("ascii") for first, second in pairs)


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Lock a cache folder, created if missing, until the block or the process ends."""
    make_private_folder(folder)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
