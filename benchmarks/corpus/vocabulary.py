"""The words of a source: those that stay in every epoch, and those that become others.

A frequent word stays. A rare one is another in each epoch, and so is the name of a person however
frequent: new people come as the years go by. With probability (e + 1)^HEAPS - e^HEAPS, e the epoch,
it becomes a word that never was, else one of an earlier epoch, which the more likely is chosen the
more messages it stands in: the process of Pitman and Yor, whose vocabulary grows as n^HEAPS (Heaps'
law) and whose counts follow Zipf's.
"""

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from itertools import cycle
from typing import NamedTuple

from benchmarks.corpus.pieces import FIELD, TEXT
from benchmarks.corpus.source import Message

HEAPS = 0.72
#: The share of all messages from which a word is frequent.
FREQUENT = 0.004
#: The share of a word's messages whose sender has it from which it is a name: "Will" has less.
NAMES = 0.1
#: Messages that count for a word's chance to be chosen again: more would make a name immortal.
MOST = 200

WORD = re.compile(rb"([A-Za-z][A-Za-z0-9]{2,}|[0-9][A-Za-z0-9]{4,})")
_DOMAIN = re.compile(rb"@[^\s<>()]*")
_CONSONANTS, _VOWELS = b"bcdfghjklmnprstvz", b"aeiou"
_DIGITS, _HEX_LETTERS = b"0123456789", b"abcdef"
_IS_HEX = re.compile(rb"[0-9a-f]+")


class Vocabulary(NamedTuple):
    """Facts about the words of a source, in lower case.

    `pools` has the words that become others by kind ("name", "word", "code"), each as often as
    it may be chosen, and `kinds` the kind of each.
    """

    staying: frozenset[bytes]
    kinds: dict[bytes, str]
    pools: dict[str, list[bytes]]


#: Renames nothing.
NO_WORDS = Vocabulary(frozenset(), {}, {})


def read_vocabulary(messages: Iterable[Message]) -> Vocabulary:
    """Count in how many messages each word stands, and tell which stay."""
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
    """Return the words of a sender's name and of his address in front of the @."""
    field, _, value = text.partition(b":")
    if field.lower() != b"from":
        return []
    return WORD.findall(_DOMAIN.sub(b"", value).lower())


class Renaming(dict[bytes, bytes]):
    """The words of an epoch by those of the source, as they are written: filled as asked for."""

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
    """Return the word of an epoch; the words of epoch 0 are the source's own."""
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
    """Return a word that never was: syllables, or digits and letters where there were some."""
    if kind == "code":
        letters = _HEX_LETTERS if _IS_HEX.fullmatch(word) else _CONSONANTS
        sets = [_DIGITS if byte in _DIGITS else letters for byte in word]
    else:
        length = min(max(len(word), 6), 24)
        sets = [_VOWELS if place % 2 else _CONSONANTS for place in range(length)]
    stream = cycle(blake2b(draw, digest_size=64).digest())
    return bytes(one[byte % len(one)] for one, byte in zip(sets, stream, strict=False))


def _as_written(pattern: bytes, word: bytes) -> bytes:
    """Return a word with the capitals of another."""
    if pattern.islower():
        return word
    return word.upper() if pattern.isupper() else word.capitalize()
