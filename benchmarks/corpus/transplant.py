"""Write a message of an epoch: its pieces with other ids, dates and words.

Frequent words are kept. Rare words are replaced in each epoch, and so are names of people, even
frequent ones, because new people join a list over the years. In epoch e the replacement is a new
word with probability (e + 1)^HEAPS - e^HEAPS. Otherwise it is a word of an earlier epoch; words of
many messages are chosen more often. This is the process of Pitman and Yor: its vocabulary grows as
n^HEAPS (Heaps' law), and its counts follow Zipf's law.
"""

import binascii
import calendar
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import blake2b
from itertools import cycle
from typing import NamedTuple

from benchmarks.corpus.source import DATES, FIELD, FIXED, IDS, RECEIVED, TEXT, Message, Piece

HEAPS = 0.72
#: Share of all messages above which a word is frequent.
FREQUENT = 0.004
#: Share of a word's messages with the word in the sender, from which it is a name: "Will" has less.
NAMES = 0.1
#: Most messages that count when a word is chosen again: more would keep a name forever.
MOST = 200

WORD = re.compile(rb"([A-Za-z][A-Za-z0-9]{2,}|[0-9][A-Za-z0-9]{4,})")
_DOMAIN = re.compile(rb"@[^\s<>()]*")
_CONSONANTS, _VOWELS = b"bcdfghjklmnprstvz", b"aeiou"
_DIGITS, _HEX_LETTERS = b"0123456789", b"abcdef"
_IS_HEX = re.compile(rb"[0-9a-f]+")


class Vocabulary(NamedTuple):
    """Words of a source, in lower case.

    `staying` are kept. The others have a kind in `kinds`: "name", "word" or "code". `pools` has the
    words of each kind, each repeated by its weight.
    """

    staying: frozenset[bytes]
    kinds: dict[bytes, str]
    pools: dict[str, list[bytes]]


#: Vocabulary that renames nothing.
NO_WORDS = Vocabulary(frozenset(), {}, {})


def read_vocabulary(messages: Iterable[Message]) -> Vocabulary:
    """Return the vocabulary of the messages, by the number of messages that have each word."""
    counts: Counter[bytes] = Counter()
    senders: Counter[bytes] = Counter()
    total = 0
    for message in messages:
        total += 1
        texts = [piece.data for piece in message if piece.kind in (FIELD, TEXT)]
        counts.update({word.lower() for text in texts for word in WORD.findall(text)})
        senders.update({word for text in texts for word in _sender_words(text)})
    names = {word for word, count in senders.items() if count >= NAMES * counts[word]}
    kinds: dict[bytes, str] = {}
    pools: dict[str, list[bytes]] = {"name": [], "word": [], "code": []}
    for word, count in sorted(counts.items()):
        if word in names or count <= max(1, FREQUENT * total):
            kinds[word] = "name" if word in names else "word" if word.isalpha() else "code"
            pools[kinds[word]] += [word] * (2 * min(count, MOST) - 1)
    return Vocabulary(frozenset(counts.keys() - kinds.keys()), kinds, pools)


def _sender_words(text: bytes) -> list[bytes]:
    """Return the words of a sender's name, and of the address before the @."""
    field, _, value = text.partition(b":")
    if field.lower() != b"from":
        return []
    return WORD.findall(_DOMAIN.sub(b"", value).lower())


class Renaming(dict[bytes, bytes]):
    """Mapping of source words, with their capitals, to words of an epoch; filled on demand."""

    def __init__(self, vocabulary: Vocabulary, epoch: int) -> None:
        super().__init__()
        self._vocabulary, self._epoch = vocabulary, epoch

    def __missing__(self, word: bytes) -> bytes:
        low = word.lower()
        kind = self._vocabulary.kinds.get(low)
        if kind is None:
            renamed = word
        else:
            renamed = _as_written(word, _choose(self._vocabulary, kind, self._epoch, low))
        self[word] = renamed
        return renamed


def _choose(vocabulary: Vocabulary, kind: str, epoch: int, word: bytes) -> bytes:
    """Return a word's replacement in an epoch; epoch 0 has the words of the source."""
    pool = vocabulary.pools[kind]
    while epoch:
        draw = blake2b(b"%d %b" % (epoch, word), digest_size=16).digest()
        chance = int.from_bytes(draw[:4], "big") / 2**32
        if chance < (epoch + 1) ** HEAPS - epoch**HEAPS:
            return _coin(word, kind, draw)
        epoch = int.from_bytes(draw[4:8], "big") % epoch
        word = pool[int.from_bytes(draw[8:], "big") % len(pool)]
    return word


def _coin(word: bytes, kind: str, draw: bytes) -> bytes:
    """Return a new word: of syllables, or for a code with digits and letters where it has them."""
    if kind == "code":
        letters = _HEX_LETTERS if _IS_HEX.fullmatch(word) else _CONSONANTS
        sets = [_DIGITS if byte in _DIGITS else letters for byte in word]
    else:
        length = min(max(len(word), 6), 24)
        sets = [_VOWELS if place % 2 else _CONSONANTS for place in range(length)]
    stream = cycle(blake2b(draw, digest_size=64).digest())
    return bytes(one[byte % len(one)] for one, byte in zip(sets, stream, strict=False))


def _as_written(pattern: bytes, word: bytes) -> bytes:
    """Return a word with the capitals of a pattern."""
    if pattern.islower():
        return word
    return word.upper() if pattern.isupper() else word.capitalize()


#: Names in mail, which do not depend on the locale.
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
    """A message of an epoch: bytes, ids that it names, decoded subject and text."""

    raw: bytes
    ids: list[bytes]
    text: bytes


class Transplant:
    """Writer of the messages of one epoch."""

    def __init__(self, renaming: Renaming, epoch: int) -> None:
        self._renaming = renaming
        self._salt = b"%d " % epoch

    def write(self, message: Message, years: int) -> Transplanted:
        """Return a message with its dates moved by `years`, which may be negative."""
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
        """Return the id of a message in the epoch; blanks inside an id come from folding."""
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
    """Return a date moved by whole years; 29 February becomes 28 if the year has none."""
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
