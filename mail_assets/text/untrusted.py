"""Fence mail in the input of a model, so that nothing in it can look like instructions.

Anybody can write mail, and mail may address the model. It is enclosed in marks with a random word,
which no mail can know, and each of its lines begins with a bar. Invisible characters are removed.
"""

import re
import secrets
from collections.abc import Callable, Iterator
from typing import NamedTuple

MAX_HEADER = 160  # characters of a line above a text; mail can make it arbitrarily long

# Controls, except line ends and tabs; marks that change the direction of writing or have no width;
# the tag characters, which spell invisible text. https://www.unicode.org/reports/tr36/
_INVISIBLE = re.compile(
    # not the joiners U+200C and U+200D: Persian and Hindi are written with them
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)


class Fenced(NamedTuple):
    """Lines of mail between two marks, and the word of the marks."""

    word: str
    text: str


def new_word() -> str:
    """Return a word that nobody can guess."""
    return secrets.token_hex(16)


def fence_mail(mail: str, choose_word: Callable[[], str] = new_word) -> Fenced:
    """Enclose lines of mail; the word is chosen again while the mail contains it."""
    word = choose_word()
    while word in mail:
        word = choose_word()
    return Fenced(word, f"BEGIN MAIL {word}\n{mail}\nEND MAIL {word}")


def quote_header(name: str, value: str) -> str:
    """Return a line above a text, cut to MAX_HEADER."""
    return f"| {name}: {' '.join(strip_invisible(value).split())[:MAX_HEADER]}"


def quote_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, each after a bar."""
    for line in strip_invisible(text).split("\n"):
        yield f"| {line}"


def strip_invisible(text: str) -> str:
    """Return text without invisible characters, with line ends as LF."""
    return _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
