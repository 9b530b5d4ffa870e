"""Lexemes as tokens that LanceDB leaves alone, and the beginnings by which prefixes find them.

LanceDB's tokenizer `simple` splits at what is not alphanumeric, in a query as in a text, and only
with it does an index answer `contains_tokens` in a filter. So every other character is written with
letters of the Yi syllabary: those of ASCII as one letter, the rest by number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Generic, TypeVar

from mail_assets.words.query import EXACT_PREFIX

#: Letters (U+A000 to U+A07F) that stand for the characters of ASCII, then one around numbers.
_LETTERS = 0xA000
_NUMBER = _LETTERS + 0x80

# Most of a text are words of the language, so few lexemes are encoded more than once a run.
_CACHED = 1 << 16


class _Letters(dict[int, str]):
    """A table for `str.translate` that grows by the characters it meets."""

    def __missing__(self, code: int) -> str:
        if _LETTERS <= code <= _NUMBER or not chr(code).isalnum():
            letters = (
                chr(_LETTERS + code) if code < 0x80 else f"{chr(_NUMBER)}{code:x}{chr(_NUMBER)}"
            )
        else:
            letters = chr(code)
        self[code] = letters
        return letters


_TO_LETTERS = _Letters()


Made = TypeVar("Made")


class _Cache(dict[str, Made], Generic[Made]):
    """What is made of lexemes, as a table that makes what it lacks and is emptied when it is full.

    A table is asked in a third of the time that a call of `lru_cache` takes, 100 times a message.
    """

    def __init__(self, make: Callable[[str], Made]) -> None:
        self._make = make

    def __missing__(self, lexeme: str) -> Made:
        if len(self) >= _CACHED:
            self.clear()
        made = self[lexeme] = self._make(lexeme)
        return made


def _encode(lexeme: str) -> str:
    return lexeme.translate(_TO_LETTERS)


def _beginnings(lexeme: str) -> tuple[str, ...]:
    longest = lexeme[:EXACT_PREFIX]
    beginnings = (longest[:length] for length in range(1, len(longest) + 1))
    if longest.isascii() and longest.isalnum():  # encoded as they are
        return tuple(beginnings)
    return tuple(map(_encode, beginnings))


_TOKENS, _BEGINNINGS = _Cache(_encode), _Cache(_beginnings)


def encode_lexeme(lexeme: str) -> str:
    """Return a lexeme as one token; different lexemes give different tokens."""
    return _TOKENS[lexeme]


def encode_lexemes(lexemes: Iterable[str]) -> str:
    """Return lexemes as a text, in their order."""
    return " ".join(map(_TOKENS.__getitem__, lexemes))


def encode_prefix(text: str) -> str:
    """Return the token that `encode_prefixes` gives every lexeme beginning so.

    Of a longer prefix it is that of its first characters: it finds what begins with so much of it.
    """
    return encode_lexeme(text[:EXACT_PREFIX])


def encode_prefixes(lexemes: Iterable[str]) -> str:
    """Return the beginnings of lexemes as a text, each once; the same text each time."""
    beginnings = map(_BEGINNINGS.__getitem__, dict.fromkeys(lexemes))
    return " ".join(dict.fromkeys(chain.from_iterable(beginnings)))
