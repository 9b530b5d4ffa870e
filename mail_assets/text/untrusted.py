"""Make mail text safe for a chat model, a terminal and a web page.

Anybody can write mail. Names and subjects lose control characters, and characters that change the
display of the text around them (`clean_line`). In a prompt, mail stands between two marks with a
random word, which no mail can know, and each line of mail begins with a bar.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

MAX_HEADER = 160  # characters of a header's value in a prompt; mail may have longer ones

#: Characters without width, as a class of regular expressions: soft hyphen, joiners, marks of
#: direction, variation selectors, byte order marks, fillers of Hangul.
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
#: Marks that change the direction of the text after them. https://www.unicode.org/reports/tr36/
TURNS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_TURN = re.compile(f"[{TURNS}]")
#: Characters that a terminal or a page obeys: controls except tabs and line feeds, separators of
#: lines and paragraphs, tag characters (which spell invisible text), and marks of direction.
_OBEYED = f"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufff9-\ufffb\U000e0000-\U000e007f{TURNS}"
# without the joiners U+200C and U+200D, which Persian, Hindi and emoji need
_INVISIBLE = re.compile(f"[{_OBEYED}\u200b\u2060-\u2065\u206a-\u206f\ufeff]")
#: Group 1 is kept: the flag of a region, a black flag and tags that end in U+E007F (UTS 51).
_LINE_CONTROLS = re.compile(
    rf"(\U0001f3f4[\U000e0030-\U000e007a]{{2,6}}\U000e007f)|[{_OBEYED}\t\n]+"
)

#: Invisible characters of a name. Joiners, variation selectors and tags stay after emoji and after
#: letters of scripts that need them (from Arabic on). U+2800 is Braille without dots.
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
    """Return a random word that nobody can guess."""
    return secrets.token_hex(16)


def fence_mail(mail: str, choose_word: Callable[[], str] = new_word) -> Fenced:
    """Enclose lines of mail in two marks; the word is chosen again while the mail contains it."""
    word = choose_word()
    while word in mail:
        word = choose_word()
    return Fenced(word, f"BEGIN MAIL {word}\n{mail}\nEND MAIL {word}")


def quote_header(name: str, value: str) -> str:
    """Return a header line for a prompt; the value is cut to MAX_HEADER characters."""
    return f"| {name}: {' '.join(strip_invisible(value).split())[:MAX_HEADER]}"


def quote_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, each with a bar before it."""
    for line in strip_invisible(text).split("\n"):
        yield f"| {line}"


def strip_invisible(text: str) -> str:
    """Return text without invisible characters, with line ends as LF."""
    return _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def clean_line(text: str) -> str:
    """Return a name or a subject on one line, without characters that a terminal or a page obeys.

    Letters of all scripts, joiners and emoji stay. Breaks and tabs between words become a blank.
    """
    if text.isprintable():  # nearly all are
        return text
    return _LINE_CONTROLS.sub(_clean, text).strip()


def show_turns(code: str) -> str:
    """Return code with marks of direction written out: they make it look like other code.

    https://trojansource.codes/
    """
    return code if code.isascii() else _TURN.sub(lambda found: f"[U+{ord(found[0]):04X}]", code)


def show_patch_turns(text: str, segments: Iterable[tuple[int, int, str]]) -> str:
    """Return a body with the marks of direction in its patches written out.

    Each segment is its first character, the character after it, and its kind.
    """
    if text.isascii():
        return text
    parts, at = [], 0
    for start, end, kind in segments:
        if kind == "patch":
            parts += [text[at:start], show_turns(text[start:end])]
            at = end
    return "".join([*parts, text[at:]])


def clean_name(text: str) -> str:
    """Return the name of a person as a clean line without invisible characters.

    Names that look the same are then equal, except for similar letters of different scripts.
    """
    if text.isascii():
        return clean_line(text)
    return " ".join(_UNSEEN_IN_NAMES.sub("", clean_line(text)).split())


def _clean(found: re.Match[str]) -> str:
    if found[1]:
        return found[1]
    return " " if _BREAKS.search(found[0]) else ""
