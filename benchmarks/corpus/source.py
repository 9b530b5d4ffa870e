"""Source archives of a corpus, whose messages are cut into pieces.

A piece is either copied as it is or changed in each epoch.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from mail_assets.mail.archive.compression import unpacked
from mail_assets.mail.archive.mbox import find_dialect, identify, split_mbox
from mail_assets.mail.message.decoding import decode_transfer
from mail_assets.mail.message.headers import decode_value
from mail_assets.mail.message.message import Part
from mail_assets.mail.message.mime import parse_mime
from mail_assets.month import ListMonth
from mail_assets.sources.urls import month_in_name

FIXED, IDS, DATES, RECEIVED, FIELD, TEXT = "fixed", "ids", "dates", "received", "field", "text"

_FIELDS = {
    b"message-id": IDS,
    b"in-reply-to": IDS,
    b"references": IDS,
    b"date": DATES,
    b"received": RECEIVED,
    b"subject": FIELD,
    b"from": FIELD,
    b"to": FIELD,
    b"cc": FIELD,
    b"reply-to": FIELD,
    b"sender": FIELD,
}
_FIELD = re.compile(rb"^([!-9;-~]+)[ \t]*:[^\n]*\n?(?:[ \t][^\n]*\n?)*", re.M)
_AT = re.compile(rb"^([Ff]rom:\s*[^\s<>@]+) at ([^\s<>@]+)")
#: Charsets in which bytes of other characters look like ASCII letters.
_NOT_LIKE_ASCII = re.compile(r"iso-2022|utf-?(?:7|16|32)|hz|shift|sjis|big5|gb|johab|cp9", re.I)
_IN_PLACE = ("", "7bit", "8bit", "binary")


class Piece(NamedTuple):
    """Consecutive bytes of a message; `kind` says how they change in an epoch.

    If `encoding` is set, `data` is decoded, and is encoded again when written: a text as
    "quoted-printable" or "base64", a header field as "words" (RFC 2047).
    """

    kind: str
    data: bytes
    encoding: str = ""


def cut_message(raw: bytes, dialect: str) -> tuple[Piece, ...]:
    """Return the pieces of a message, in order and without gaps.

    pipermail's `jo at example.org` becomes an address, because the corpus is mboxrd.
    """
    tree = parse_mime(raw)
    pieces = [*_cut_header(raw[: tree.body_start], dialect)]
    at = tree.body_start
    for part in tree.parts:
        if part.source is raw and part.start >= at and _is_text(part):
            pieces.append(Piece(FIXED, raw[at : part.start]))
            pieces += _cut_text(raw[part.start : part.end], part.encoding)
            at = part.end
    pieces.append(Piece(FIXED, raw[at:]))
    return tuple(_join(pieces))


def _cut_header(header: bytes, dialect: str) -> Iterator[Piece]:
    at = 0
    for field in _FIELD.finditer(header):
        kind = _FIELDS.get(field[1].lower())
        if kind is None:
            continue
        yield Piece(FIXED, header[at : field.start()])
        at, value = field.end(), field[0]
        if dialect == "pipermail":
            value = _AT.sub(rb"\1@\2", value)
        if kind == FIELD and b"=?" in value:
            name, _, words = value.partition(b":")
            value = b"%b: %b\n" % (name, decode_value(words).encode())
            yield Piece(kind, value, "words")
        else:
            yield Piece(kind, value)
    yield Piece(FIXED, header[at:])


def _is_text(part: Part) -> bool:
    return part.type == "text/plain" and not _NOT_LIKE_ASCII.search(part.charset)


def _cut_text(data: bytes, encoding: str) -> Iterator[Piece]:
    if encoding in _IN_PLACE:
        yield Piece(TEXT, data)
    elif encoding in ("quoted-printable", "base64"):
        yield Piece(TEXT, decode_transfer(data, encoding), encoding)
        yield Piece(FIXED, data[len(data.rstrip(b"\r\n")) :])
    else:
        yield Piece(FIXED, data)


def _join(pieces: list[Piece]) -> Iterator[Piece]:
    for kind, group in groupby(pieces, key=lambda one: one.kind):
        if kind == FIXED:
            if data := b"".join(one.data for one in group):
                yield Piece(FIXED, data)
        else:
            yield from group


#: Share of common messages from which two lists count as renderings of the same list.
SAME_LIST = 0.5

Message = tuple[Piece, ...]


class SourceList(NamedTuple):
    """Messages of a list by month, "YYYY-MM", in order; empty months are left out."""

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
    """Return the lists of a folder, biggest first.

    Another rendering of a bigger list is left out.

    Raises:
        SystemExit: the folder has no archive.
    """
    read = [_read_list(path) for path in sorted(folder.iterdir()) if path.is_dir()]
    chosen: list[SourceList] = []
    known: set[str] = set()
    for one, ids in sorted(read, key=lambda pair: -len(pair[1])):
        if ids and len(ids & known) < SAME_LIST * len(ids):
            chosen.append(one)
            known |= ids
    if not chosen:
        raise SystemExit(f"{folder}: has no folder with monthly archives")
    return chosen


def _read_list(folder: Path) -> tuple[SourceList, set[str]]:
    """Return a list, and the digests of its Message-IDs."""
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
    """Yield the messages whose digest is not in `ids`, and add it."""
    with unpacked(path) as data:
        dialect = find_dialect(data) or "plain"
        for message in split_mbox(data, dialect, name=str(path)):
            header = message.raw.partition(b"\n\n")[0]
            digest, _ = identify(header)
            if digest not in ids:
                ids.add(digest)
                yield cut_message(message.raw, dialect)
