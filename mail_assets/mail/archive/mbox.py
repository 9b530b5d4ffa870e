"""Detect the dialect of an mbox archive, and split it into raw messages.

Dialects differ in the quoting of body lines that begin with `From `, in the blank line between two
messages, and in the form of addresses:

    plain       nothing is quoted; a blank line follows each message
    mboxo       `From ` becomes `>From `
    mboxrd      `From ` becomes `>From `, and `>From ` becomes `>>From `
    pg          archives of postgresql.org: nothing is quoted, and no blank line is added
    pipermail   text files of Mailman and HyperKitty: `jo at example.org`; some blank lines are
                missing
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from mmap import mmap
from pathlib import Path
from typing import NamedTuple

from mail_assets.mail.archive.boundaries import (
    BOM,
    MAX_HEADER,
    FromLine,
    Start,
    find_lines,
    find_starts,
    often_omits_blank_lines,
    skip_junk_back,
)
from mail_assets.mail.archive.compression import BUFFER, ArchiveError, open_archive, unpacked

DIALECTS = ("pg", "plain", "mboxrd", "mboxo", "pipermail")

SAMPLE = 16 << 20  # bytes at the beginning of an archive; most months are smaller
MOST = 0.8  # least share of From_ lines that show the same program
# Two thirds of the messages of postgresql.org have no blank line above. So among this many messages
# at least one has none.
FEW = 20

_PG_SENDER = re.compile(rb"[\w.+-]{1,100}-owner\+archive@[\w.-]{1,100}")
# pipermail with plain addresses: From_ and From have the same address
_PIPERMAIL_HEADER = re.compile(rb"From: ([^\s()]{1,200}) \([^\n]{0,200}\)\r?\nDate: ")
MAX_DEPTH = 40  # `>` before From
_QUOTED = re.compile(rb">From ")
_UNQUOTED = re.compile(rb"\n\r?\nFrom ")
AGREEING = {("mboxrd", "mboxo"), ("pg", "plain")}  # dialect set, dialect found
_AROUND = 400  # bytes around a quoted line


def find_dialect(data: bytes | mmap) -> str | None:
    """Return the dialect that the first SAMPLE bytes of an archive show, None if they show none.

    Without a body line that begins with `From `, plain, mboxo and mboxrd are the same.
    """
    sample = data[:SAMPLE]
    lines = find_lines(sample)
    if not lines or lines[0].style.form == "git":
        return None
    if _is_pipermail(sample, lines):
        return "pipermail"
    senders = [line.style.sender for line in lines]
    if _most(sender == b"mboxrd@z" for sender in senders):
        return "mboxrd"
    if _most(_PG_SENDER.fullmatch(sender) is not None for sender in senders) and (
        len(lines) < FEW or not all(line.after_blank for line in lines)
    ):
        return "pg"
    return _quoting(sample, lines) or ("pg" if often_omits_blank_lines(lines) else None)


def check_dialect(dialect: str) -> None:
    """Raise ValueError if a dialect is unknown."""
    if dialect not in DIALECTS:
        raise ValueError(f"mbox dialect {dialect!r} is not known; use one of {', '.join(DIALECTS)}")


def contradicts(setting: str, found: str) -> bool:
    """Return whether an archive of the dialect `found` must not be read as `setting`.

    A month of mboxrd may look like mboxo, and a month of pg like plain. `found` is "" if nothing
    shows a dialect.
    """
    return found not in ("", setting) and (setting, found) not in AGREEING


def _is_pipermail(sample: bytes, lines: Sequence[FromLine]) -> bool:
    # a list that began to hide addresses has both forms in the same month
    return _most(line.style.kind == "at" or _names_sender(sample, line) for line in lines)


def _names_sender(sample: bytes, line: FromLine) -> bool:
    header = _PIPERMAIL_HEADER.match(sample, line.end)
    return header is not None and header[1] == line.style.sender


def _quoting(sample: bytes, lines: Sequence[FromLine]) -> str | None:
    """Return the dialect that the quoting of `From ` in bodies shows, or None.

    The writer added a `>` before From only if the lines above and below have fewer.
    """
    starts = {line.offset for line in lines if line.after_blank}
    if any(match.end() - len(b"From ") not in starts for match in _UNQUOTED.finditer(sample)):
        return "plain"
    found = None
    for match in _QUOTED.finditer(sample):
        line = sample.rfind(b"\n", max(0, match.start() - MAX_DEPTH), match.start()) + 1
        if not line:
            continue
        depth = match.start() + 1 - line
        if sample[line : match.start()].strip(b">") or _depth_around(sample, line) >= depth:
            continue
        if depth > 1:
            return "mboxrd"
        found = "mboxo"
    return found


def _depth_around(sample: bytes, line: int) -> int:
    before = sample[max(0, line - _AROUND) : max(0, line - 1)].rpartition(b"\n")[2]
    after = sample[line : line + _AROUND].partition(b"\n")[2]
    if before.startswith(b"From "):
        return len(after)  # not quoted: a UUCP relay wrote `>From ` below the From_ line
    return max(len(text) - len(text.lstrip(b">")) for text in (before, after))


def _most(answers: Iterable[bool]) -> bool:
    given = [*answers]
    return sum(given) >= MOST * len(given)


# The first bytes of other formats: offset, bytes, name. A zip or tar file may store members
# uncompressed: all From_ lines but the first would be found, and names of members would look like
# mail.
_BEGINNINGS = (
    (0, b"PK\x03\x04", "a zip file"),
    # POSIX.1-1988 and later: follows the header fields of the first member
    (257, b"ustar", "a tar file"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z file"),
    (0, b"Rar!\x1a\x07", "a rar file"),
    (0, b"\x1f\x9d", "a file of compress (.Z)"),
    (0, b"\x1f\x8b", "compressed twice"),
    (0, b"!BDN", "a store of Outlook (.pst)"),
    (0, b"BABYL OPTIONS:", "a Babyl file (rmail)"),
    (0, b"\x01\x01\x01\x01\n", "a file of MMDF"),
    (0, b"=" * 73, "a log of LISTSERV"),
    (0, b"#! rnews ", "a batch of Usenet news"),
)

MAX_MESSAGE = 100 << 20  # bytes; longer messages are cut and marked truncated

_BLANK_LINES = (b"\n\r\n", b"\n\r\r\n", b"\n\r\r\r\n")
_LINE_END = re.compile(rb"\r{2,8}\n")  # converted more than once
# a From_ line, and a blank line that some programs write below it
_ENVELOPE = re.compile(rb"From [^\n]*\n(?:[ \t]{0,80}\r{0,3}\n)?")
_SAMPLE = 64 << 10  # bytes that show the line ends of an archive
_JUNK = b"\0\x1a \t\r\n\v\f"  # bytes that are not part of a message

# Pine and UW-IMAP store folder data in a pseudo message at the beginning of a mailbox.
_FOLDER_DATA = re.compile(
    rb"\nSubject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\r?\n", re.I
)
_UNQUOTE = {"mboxrd": re.compile(rb"^>(>*From )", re.M), "mboxo": re.compile(rb"^>(From )", re.M)}


class RawMessage(NamedTuple):
    """One message of an archive.

    `archive[offset:offset + length]` of the decompressed archive is the From_ line and the message
    as written. It leaves out the blank line that mbox adds after a message, and zero bytes that a
    crash left there.
    """

    offset: int
    length: int
    from_line: bytes  # without its line end; empty for bytes before the first From_ line
    raw: bytes  # header and body, with `>From ` unquoted and broken line ends repaired
    truncated: bool  # longer than max_message
    suspicious: bool  # perhaps a wrong split; see boundaries.py


def split_archive(path: Path, dialect: str) -> Iterator[RawMessage]:
    """Yield the messages of an archive in order.

    Raises:
        ArchiveError: the archive is damaged, or not an mbox.
    """
    with unpacked(path) as data:
        yield from split_mbox(data, dialect, name=str(path))


def split_mbox(
    data: bytes | mmap, dialect: str, max_message: int = MAX_MESSAGE, *, name: str = "archive"
) -> Iterator[RawMessage]:
    """Yield the messages of a decompressed archive in order.

    Bytes before the first From_ line are a message without a From_ line, unless they are blank. The
    pseudo message in which a mail program stores folder data is left out.

    Raises:
        ArchiveError: the archive is not an mbox.
        ValueError: the dialect is unknown.
    """
    check_dialect(dialect)
    if b"\n" not in data[:_SAMPLE] and b"\r" in data[:_SAMPLE] and data.find(b"\n") < 0:
        data = data[:].replace(b"\r", b"\n")  # from a classic Mac; offsets do not change
    starts = find_starts(data, dialect)
    first = starts[0].offset if starts else len(data)
    text = data[: min(first, max_message)].removeprefix(BOM)
    if text := text.strip(_JUNK if starts else None):
        for at, magic, format in _BEGINNINGS:
            if data[at : at + len(magic)] == magic:
                raise ArchiveError(
                    f"{name}: it is not an mbox but {format}; convert it at the source"
                )
        if not starts:
            raise ArchiveError(
                f"{name}: it is not an mbox: no line `From sender date` above a header field; "
                f"it begins with {text[:60]!r}"
            )
        starts.insert(0, Start(0, 0, suspicious=True))
    ends = [*(start.offset for start in starts[1:]), len(data)]
    for start, end in zip(starts, ends, strict=False):  # an empty archive has an end only
        if start.offset > first or not _is_folder_data(data, start.header):
            yield _message(data, start, end, dialect, max_message)


def read_range(path: Path, offset: int, length: int) -> bytes:
    """Return `archive[offset:offset + length]` of the decompressed archive.

    Raises:
        ArchiveError: the archive is damaged, or too short.
    """
    with open_archive(path) as archive:
        if archive.seekable():
            archive.seek(offset)
        else:
            left = offset
            while left and (skipped := archive.read(min(left, BUFFER))):
                left -= len(skipped)
        data = archive.read(length)
    if len(data) < length:
        raise ArchiveError(
            f"{path}: it does not have {length} bytes at offset {offset}; "
            "it is not the archive that offset and length were recorded for"
        )
    return data


def extract_message(data: bytes, dialect: str) -> bytes:
    """Return header and body as in RawMessage.raw; `data` is the range of the message."""
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    envelope = _ENVELOPE.match(data)
    line = envelope.end() if envelope else 0
    return _as_written(data[line:], data[:line], dialect)


def _as_written(raw: bytes, from_line: bytes, dialect: str) -> bytes:
    if from_line.endswith(b"\r\r\n"):  # line ends were converted twice
        raw = _LINE_END.sub(b"\r\n", raw)
    return _unquote(raw, dialect)


def _unquote(raw: bytes, dialect: str) -> bytes:
    if dialect not in _UNQUOTE or b">From " not in raw:
        return raw
    return _UNQUOTE[dialect].sub(rb"\1", raw)


def _is_folder_data(data: bytes | mmap, header: int) -> bool:
    return _FOLDER_DATA.search(data, header, header + 2_000) is not None


def _message(
    data: bytes | mmap, start: Start, end: int, dialect: str, max_message: int
) -> RawMessage:
    if data[end - 1] not in b"\r\n":
        end = max(skip_junk_back(data, end), start.header)
    truncated = end - start.offset > max_message
    if truncated:
        end = start.offset + max_message
    # postgresql.org adds no blank line, so a blank line there belongs to the message
    elif dialect != "pg":
        tail = data[max(start.header, end - 5) : end]
        if tail.endswith(b"\n\n"):
            end -= 1
        elif tail.endswith(_BLANK_LINES):
            end -= len(tail) - len(tail[:-1].rstrip(b"\r"))
    line = data[start.offset : start.header]
    raw = _as_written(data[start.header : end], line, dialect)
    from_line = line.rstrip(b"\r\n")
    length = end - start.offset
    return RawMessage(start.offset, length, from_line, raw, truncated, start.suspicious)


_HEADER_END = re.compile(rb"\n\r?\n")
_ID = re.compile(rb"^message-id[ \t]{0,8}:[ \t\r\n]{0,8}<?([^\s<>]{1,998})", re.I | re.M)
_LIST_ID = re.compile(
    rb"^list-id[ \t]{0,8}:[^\n<]{0,998}(?:\n[ \t][^\n<]{0,998})?<([^\s<>]{1,255})>", re.I | re.M
)
_NAMING = re.compile(rb"^(?:from|date|subject)[ \t]{0,8}:[^\n]{0,998}", re.I | re.M)


class Contents(NamedTuple):
    """Contents of an archive, found in one pass."""

    dialect: str  # used to read it
    found_dialect: str | None  # detected in the archive
    found: int  # messages
    digest: str  # hex sha256 of all messages without their From_ lines
    messages: dict[str, str]  # digest (see `identify`) -> Message-ID, "" without one
    list_id: str  # List-Id of most messages; "" without a majority


def read_contents(data: bytes | mmap, setting: str | None, name: str) -> Contents:
    """Return the contents of a decompressed archive; `setting` is the configured dialect, if any.

    Raises:
        ArchiveError: the archive is not an mbox.
    """
    found_dialect = find_dialect(data)
    dialect = setting or found_dialect or "plain"
    found, content = 0, hashlib.sha256(dialect.encode())
    messages: dict[str, str] = {}
    lists: Counter[str] = Counter()
    for message in split_mbox(data, dialect, name=name):
        found += 1
        content.update(hashlib.sha256(message.raw).digest())
        header = _header(message.raw)
        digest, message_id = identify(header)
        messages[digest] = message_id
        lists[_list_id(header)] += 1
    list_id, count = lists.most_common(1)[0] if lists else ("", 0)
    majority = list_id if 2 * count > found else ""
    return Contents(dialect, found_dialect, found, content.hexdigest(), messages, majority)


def identify(header: bytes) -> tuple[str, str]:
    """Return a digest that identifies a message in every dialect, and its Message-ID or "".

    The digest is of the Message-ID; without one, of From, Date and Subject.
    """
    if named := _ID.search(header):
        return hashlib.sha256(named[1]).hexdigest(), _decode(named[1])
    fields = sorted(b" ".join(field.split()).lower() for field in _NAMING.findall(header))
    return hashlib.sha256(b"\n".join(fields) if fields else header).hexdigest(), ""


def _header(raw: bytes) -> bytes:
    end = _HEADER_END.search(raw, 0, MAX_HEADER)
    return raw[: end.start() + 1 if end else MAX_HEADER]


def _list_id(header: bytes) -> str:
    named = _LIST_ID.search(header)
    return _decode(named[1]).lower() if named else ""


def _decode(field: bytes) -> str:
    # the parser removes NUL too, which PostgreSQL does not store
    return field.decode("utf-8", "replace").replace("\0", "")
