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
from typing import NamedTuple

from benchmarks.corpus.pieces import FIELD, TEXT
from benchmarks.corpus.source import Message

HEAPS = 0.72
#: The share of all messages from which a word is frequent.
FREQUENT = 0.004
#: Messages that count for a word's chance to be chosen again: more would make a name immortal.
MOST = 200

WORD = re.compile(rb"([A-Za-z][A-Za-z0-9]{2,}|[0-9][A-Za-z0-9]{4,})")
_NAME = re.compile(rb"[A-Za-z]{3,}")
_CONSONANTS, _VOWELS, _DIGITS, _HEXES = (
    *(b"bcdfghjklmnprstvz", b"aeiou"),
    *(b"0123456789", b"abcdef"),
)
_IS_HEX = re.compile(rb"[0-9a-f]+")


class Vocabulary(NamedTuple):
    """What is known of a source's words, in lower case.

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
    spellings: Counter[bytes] = Counter()
    named: set[bytes] = set()
    total = 0
    for message in messages:
        total += 1
        texts = [piece.data for piece in message if piece.kind in (FIELD, TEXT)]
        spellings.update({word for text in texts for word in WORD.findall(text)})
        named |= {
            name
            for text in texts
            if text[:5].lower() == b"from:"
            for name in _NAME.findall(text.partition(b"<")[0])
        }
    counts: Counter[bytes] = Counter()
    for word, count in spellings.items():
        counts[word.lower()] += count
    names = {
        name.lower()
        for name in named
        if 2 * spellings[name.capitalize()] > counts[name.lower()]  # "Will", but no "will"
    }
    kinds: dict[bytes, str] = {}
    pools: dict[str, list[bytes]] = {"name": [], "word": [], "code": []}
    for word, count in sorted(counts.items()):
        if word in names or count <= max(1, FREQUENT * total):
            kinds[word] = "name" if word in names else "word" if word.isalpha() else "code"
            pools[kinds[word]] += [word] * (2 * min(count, MOST) - 1)
    return Vocabulary(frozenset(counts.keys() - kinds.keys()), kinds, pools)


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
    """Return a word that never was: syllables, or digits and letters as they were."""
    stream = blake2b(draw, digest_size=64).digest()
    if kind != "code":
        length = min(max(len(word), 6), 24)
        sets = (_CONSONANTS, _VOWELS)
        return bytes(sets[i % 2][stream[i] % len(sets[i % 2])] for i in range(length))
    letters = _HEXES if _IS_HEX.fullmatch(word) else _CONSONANTS
    return bytes(
        (_DIGITS if 48 <= byte < 58 else letters)[
            stream[i % 64] % len(_DIGITS if 48 <= byte < 58 else letters)
        ]
        for i, byte in enumerate(word)
    )


def _as_written(pattern: bytes, word: bytes) -> bytes:
    """Return a word with the capitals of another."""
    if pattern.islower():
        return word
    return word.upper() if pattern.isupper() else word.capitalize()
