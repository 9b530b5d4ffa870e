"""Real archives to transplant from: each list's months, each message of a list once."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.corpus.pieces import Piece, cut_message
from mail_assets.mail.archive.compression import unpacked
from mail_assets.mail.archive.dialects import find_dialect
from mail_assets.mail.archive.mbox import identify, split_mbox
from mail_assets.month import ListMonth
from mail_assets.sources.urls import month_in_name

#: The share of a list's messages that another has too from which it counts as a rendering of that.
SAME_LIST = 0.5

Message = tuple[Piece, ...]


class SourceList(NamedTuple):
    """A list's messages by month, "YYYY-MM", in order; months without any are left out."""

    name: str
    months: dict[str, list[Message]]

    @property
    def first(self) -> str:
        """The first month."""
        return min(self.months)

    @property
    def last(self) -> str:
        """The last month."""
        return max(self.months)


def read_source(folder: Path) -> list[SourceList]:
    """Return the lists of a folder, the biggest first.

    A list whose messages are those of a bigger one, in another rendering, is left out.

    Raises:
        SystemExit: the folder holds no archive.
    """
    read = [_read_list(path) for path in sorted(folder.iterdir()) if path.is_dir()]
    chosen: list[SourceList] = []
    known: set[str] = set()
    for one, ids in sorted(read, key=lambda pair: -len(pair[1])):
        if ids and len(ids & known) < SAME_LIST * len(ids):
            chosen.append(one)
            known |= ids
    if not chosen:
        raise SystemExit(f"{folder}: holds no folder with monthly archives")
    return chosen


def _read_list(folder: Path) -> tuple[SourceList, set[str]]:
    """Return a list, and the digests of its messages' ids."""
    ids: set[str] = set()
    months: dict[str, list[Message]] = {}
    for month, path in _archives(folder):
        messages = [*_read_archive(path, ids)]
        if messages:
            months.setdefault(month, []).extend(messages)
    return SourceList(folder.name, months), ids


def _archives(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.iterdir()):
        if month := month_in_name(path.name):
            yield ListMonth(folder.name, month).month, path


def _read_archive(path: Path, ids: set[str]) -> Iterator[Message]:
    """Yield the messages whose id is not yet among `ids`, and add it."""
    with unpacked(path) as data:
        dialect = find_dialect(data) or "plain"
        for message in split_mbox(data, dialect, name=str(path)):
            header = message.raw.partition(b"\n\n")[0]
            digest, _ = identify(header)
            if digest not in ids:
                ids.add(digest)
                yield cut_message(message.raw, dialect)
