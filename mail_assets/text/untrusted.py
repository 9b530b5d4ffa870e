"""Make text of mail harmless: for a model, a terminal and a page.

Anybody can write mail. Names and subjects lose the characters that nobody sees and that change what
others see (`clean_line`). In the input of a model, mail is enclosed in marks with a random word,
which no mail can know, and each of its lines begins with a bar.
"""

import re
import secrets
from collections.abc import Callable, Iterator
from typing import NamedTuple

MAX_HEADER = 160  # characters of a line above a text; mail can make it arbitrarily long

#: Characters without width, as a class of regular expressions: soft hyphen, joiners, marks of
#: direction, variation selectors, byte order marks, fillers of Hangul.
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
#: Marks that change the direction of the text after them. https://www.unicode.org/reports/tr36/
TURNS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
#: Controls except tabs and line feeds; separators of lines and paragraphs; tag characters, which
#: spell invisible text; all that a terminal or a page obeys.
_OBEYED = f"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufff9-\ufffb\U000e0000-\U000e007f{TURNS}"
# not the joiners U+200C and U+200D: Persian and Hindi are written with them, and emoji
_INVISIBLE = re.compile(f"[{_OBEYED}\u200b\u2060-\u2065\u206a-\u206f\ufeff]")
#: Flags of regions are spelled with tags after a black flag (UTS 51), which end in U+E007F.
_LINE_CONTROLS = re.compile(
    rf"(\U0001f3f4[\U000e0030-\U000e007a]{{2,6}}\U000e007f)|[{_OBEYED}\t\n]+"
)

#: Characters of a name that nobody sees. Joiners, variation selectors and tags stay behind letters
#: of the scripts that need them, from Arabic on, and behind emoji. U+2800 is Braille without dots.
_UNSEEN_IN_NAMES = re.compile(
    rf"(?<![\u0600-\u1dff\u2100-\U0010ffff])[{INVISIBLE}]+|\u2800|"
    rf"(?![\u180b-\u180f\u200c\u200d\ufe00-\ufe0f\U000e0000-\U000e0fff])[{INVISIBLE}]"
)

_BREAKS = re.compile("[\t-\r\x85\u2028\u2029]")


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


def clean_line(text: str) -> str:
    """Return a name or a subject on one line, without what a terminal or a page obeys.

    Letters of all scripts, joiners and emoji stay. Controls between words become a blank.
    """
    if text.isprintable():  # nearly all
        return text
    return _LINE_CONTROLS.sub(_clean, text).strip()


def clean_name(text: str) -> str:
    """Return the name of a person: a clean line without characters that nobody sees.

    So names that look the same are the same, but for letters of several scripts that look alike.
    """
    if text.isascii():
        return clean_line(text)
    return " ".join(_UNSEEN_IN_NAMES.sub("", clean_line(text)).split())


def _clean(found: re.Match[str]) -> str:
    if found[1]:
        return found[1]
    return " " if _BREAKS.search(found[0]) else ""
