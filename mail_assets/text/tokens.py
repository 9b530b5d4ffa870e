"""Tokenise texts: the place, the word and the id of each token."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import accumulate, chain, islice
from operator import attrgetter
from typing import NamedTuple

from tokenizers import Tokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

# ASCII characters at which BERT's tokenizer always splits: blanks, which it drops, and punctuation
# marks, each a word. Non-ASCII letters and control characters may change the word around them.
_BLANK, _PUNCTUATION = r" \t\n\r", r"!-/:-@\[-`{-~"
# unit of a text: an ASCII word, a punctuation mark, or everything up to the next blank
_UNIT = rf"[A-Za-z0-9]+(?=[{_BLANK}{_PUNCTUATION}]|\Z)|[{_PUNCTUATION}]|[^{_BLANK}]+"
# Number of cached units, and characters of the longest. In mail, 29 of 30 units are repeats; longer
# units are hashes and encoded data.
_CACHED, _LONGEST_CACHED = 1 << 16, 24


class Tokens(NamedTuple):
    """Tokens of a text. Characters without a token belong to the token on their left."""

    starts: list[int]  # first character of each token, and the length of the text
    words: list[int | None]  # number of the word of each token

    def begins_word(self, i: int) -> bool:
        """Return whether token i begins a word; true at both ends of the text."""
        return i in (0, len(self.words)) or self.words[i] != self.words[i - 1]

    def at(self, character: int) -> int:
        """Return the first token that begins at or after a character, else the token count."""
        return bisect_left(self.starts, character, 0, len(self.words))


def tokenise(text: str, tokenizer: Tokenizer) -> Tokens:
    """Tokenise a text without the special tokens."""
    known = _known_units(tokenizer)
    if known is None:
        encoding = tokenizer.encode(text, add_special_tokens=False)
        starts = [start for start, _ in encoding.offsets]
        return Tokens([0, *starts[1:], len(text)], encoding.word_ids)
    between_and_units = known.pattern.split(text)
    places = [*accumulate(map(len, between_and_units))][:-1:2]
    units = known.look_up(between_and_units[1::2])
    starts = [at + start for at, unit in zip(places, units, strict=True) for start in unit.starts]
    begins = chain.from_iterable(map(attrgetter("begins"), units))
    return Tokens([0, *starts[1:], len(text)], [*accumulate(begins, initial=-1)][1:])


def count_tokens(text: str, tokenizer: Tokenizer) -> int:
    """Count the tokens of a text without the special ones."""
    return len(tokenise(text, tokenizer).words)


def encode_ids(texts: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
    """Return the ids of the tokens of each text without the special ones."""
    known = _known_units(tokenizer)
    if known is None:
        encodings = tokenizer.encode_batch_fast([*texts], add_special_tokens=False)
        return [encoding.ids for encoding in encodings]
    named = [known.pattern.findall(text) for text in texts]
    ids = map(attrgetter("ids"), known.look_up([*chain.from_iterable(named)]))
    return [[*chain.from_iterable(islice(ids, len(names)))] for names in named]


class _Unit(NamedTuple):
    """The tokens of a unit: start of each, 1 if it begins a word, and its id."""

    starts: tuple[int, ...]
    begins: tuple[int, ...]
    ids: tuple[int, ...]


class _KnownUnits:
    """The units that a tokenizer of BERT's kind has met.

    A unit has the same tokens in every text, so a known unit is not encoded again. This halves the
    time for mail.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._units: dict[str, _Unit] = {}
        # The tokenizer finds added tokens, such as [MASK], before it splits a text.
        added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        by_length = sorted(added, key=len, reverse=True)
        self.pattern = re.compile(f"({'|'.join([*map(re.escape, by_length), _UNIT])})")

    def look_up(self, names: Sequence[str]) -> list[_Unit]:
        known = self._units
        units = [*map(known.get, names)]
        missing = {name for name, unit in zip(names, units, strict=True) if unit is None}
        learnt = self._learn(missing)
        if len(known) > _CACHED:
            self._units = known = {}
        known |= {name: unit for name, unit in learnt.items() if len(name) <= _LONGEST_CACHED}
        return [unit or learnt[name] for name, unit in zip(names, units, strict=True)]

    def _learn(self, names: Collection[str]) -> dict[str, _Unit]:
        if not names:
            return {}
        edges = [0, *accumulate(len(name) + 1 for name in names)]
        encoding = self._tokenizer.encode(" ".join(names), add_special_tokens=False)
        found: list[list[tuple[int, int, int]]] = [[] for _ in names]
        former: int | None = None
        tokens = zip(encoding.offsets, encoding.word_ids, encoding.ids, strict=True)
        for (start, _), word, token in tokens:
            at = bisect_right(edges, start) - 1
            found[at].append((start - edges[at], int(word != former), token))
            former = word
        return {
            name: _Unit(*zip(*rows, strict=True)) if rows else _Unit((), (), ())
            for name, rows in zip(names, found, strict=True)
        }


@lru_cache(maxsize=4)
def _known_units(tokenizer: Tokenizer) -> _KnownUnits | None:  # None if not BERT's
    bert = isinstance(tokenizer.normalizer, BertNormalizer) and isinstance(
        tokenizer.pre_tokenizer, BertPreTokenizer
    )
    return _KnownUnits(tokenizer) if bert else None
