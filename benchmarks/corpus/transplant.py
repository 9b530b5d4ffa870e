"""A message of an epoch: its pieces written with other ids, dates and words."""

import binascii
import calendar
import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import blake2b
from typing import NamedTuple

from benchmarks.corpus.pieces import DATES, FIELD, FIXED, IDS, RECEIVED, TEXT, Piece
from benchmarks.corpus.source import Message
from benchmarks.corpus.vocabulary import WORD, Renaming

#: As mail has them, whatever the locale says.
_MONTHS = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_DAYS = b"Mon Tue Wed Thu Fri Sat Sun".split()

_ID = re.compile(rb"<([^<>]+)>")
_BARE_ID = re.compile(rb"(?<![^\s:,])[^\s<>:,]+@[^\s<>,]+")
_NEW_ID = re.compile(rb"[0-9a-f]{24}(?=@corpus\.example)")
_BLANK = re.compile(rb"\s+")
_DAY = re.compile(
    rb"(?:\b(?:" + b"|".join(_DAYS) + rb")(,? +))?\b(0?[1-9]|[12]\d|3[01])([ -]+)"
    rb"(" + b"|".join(_MONTHS) + rb")([ -]+)(\d{4}|\d{2})\b(?![:.])"
)
_YEAR = re.compile(rb"(?<![\d:+-])(?:19[89]|20[0-3])\d(?![\d:])")
_NOT_ASCII = re.compile(
    r'[^\s<>"(),]*[^\x00-\x7f][^\s<>"(),]*(?: [^\s<>"(),]*[^\x00-\x7f][^\s<>"(),]*)*'
)


class Transplanted(NamedTuple):
    """A message of an epoch: its bytes, the ids it names, and its subject and text, decoded."""

    raw: bytes
    ids: list[bytes]
    text: bytes


class Transplant:
    """Writes the messages of one epoch."""

    def __init__(self, renaming: Renaming, epoch: int) -> None:
        self._renaming = renaming
        self._salt = b"%d " % epoch

    def write(self, message: Message, years: int) -> Transplanted:
        """Return a message, so many years later than it was sent (or earlier, below 0)."""
        writers: dict[str, Callable[[bytes], bytes]] = {
            FIXED: lambda data: data,
            IDS: self._rename_ids,
            DATES: lambda data: shift_years(data, years),
            RECEIVED: lambda data: _shift_received(data, years),
            FIELD: self._rename_value,
            TEXT: self.rename_words,
        }
        written = [(piece, writers[piece.kind](piece.data)) for piece in message]
        return Transplanted(
            b"".join(_encode(data, piece.encoding) for piece, data in written),
            [x for piece, data in written if piece.kind == IDS for x in _NEW_ID.findall(data)],
            b"\n".join(data for piece, data in written if _is_read(piece)),
        )

    def rename_words(self, data: bytes) -> bytes:
        """Return a text with the words of the epoch."""
        parts = WORD.split(data)
        parts[1::2] = map(self._renaming.__getitem__, parts[1::2])
        return b"".join(parts)

    def rename_id(self, message_id: bytes) -> bytes:
        """Return the id that a message has in the epoch; blanks within come from folding."""
        plain = _BLANK.sub(b"", message_id)
        return blake2b(self._salt + plain, digest_size=12).hexdigest().encode() + b"@corpus.example"

    def _rename_value(self, field: bytes) -> bytes:
        name, colon, value = field.partition(b":")
        return name + colon + self.rename_words(value)

    def _rename_ids(self, field: bytes) -> bytes:
        name, colon, value = field.partition(b":")
        if b"<" in value:
            value = _ID.sub(lambda found: b"<%b>" % self.rename_id(found[1]), value)
        else:
            value = _BARE_ID.sub(lambda found: self.rename_id(found[0]), value)
        return name + colon + value


def shift_years(text: bytes, years: int) -> bytes:
    """Return a date whole years later; 29 February becomes 28 where the year has none."""
    if not _DAY.search(text):
        return _YEAR.sub(lambda found: b"%d" % (int(found[0]) + years), text)

    def shifted(found: re.Match[bytes]) -> bytes:
        gap, day, before, month, behind, written = found.groups()
        number = _MONTHS.index(month) + 1
        year = int(written) + (0 if len(written) == 4 else 1900 if int(written) > 69 else 2000)
        year += years
        new = min(int(day), calendar.monthrange(year, number)[1])
        lead = b"" if gap is None else _DAYS[calendar.weekday(year, number, new)] + gap
        return b"%b%0*d%b%b%b%d" % (lead, len(day), new, before, month, behind, year)

    return _DAY.sub(shifted, text, count=1)


def _shift_received(field: bytes, years: int) -> bytes:
    hop, semicolon, date = field.rpartition(b";")
    return hop + semicolon + shift_years(date, years)


def _is_read(piece: Piece) -> bool:
    return piece.kind == TEXT or (piece.kind == FIELD and piece.data[:8].lower() == b"subject:")


def _encode(data: bytes, encoding: str) -> bytes:
    if encoding == "words":
        return _NOT_ASCII.sub(_encode_word, data.decode()).encode()
    if encoding == "quoted-printable":
        return binascii.b2a_qp(data)
    if encoding == "base64":
        lines = (data[at : at + 57] for at in range(0, len(data), 57))
        return b"\n".join(binascii.b2a_base64(line, newline=False) for line in lines)
    return data


def _encode_word(found: re.Match[str]) -> str:
    return f"=?UTF-8?B?{b64encode(found[0].encode()).decode()}?="
