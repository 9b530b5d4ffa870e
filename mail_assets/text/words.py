"""Words of a text with their places: one function for the index, for queries and for highlights.

A word is a run of letters and digits with their marks. The text around it does not matter, so texts
and queries are cut alike. Each word takes the next position, so the parts of `a/b`, of a URL, of a
path or of `pg_stat_statements` are found as a phrase. Letters of scripts without blanks between
words become overlapping pairs (letters.py).

The normal form of a word is lower case, with widths and ligatures folded (NFKC) and all digits in
ASCII. Invisible characters and terminal codes are removed. Further forms have the same position:
the parts of `getUserName`, the word without accents, and the name before the digits of `python3`.
https://www.unicode.org/reports/tr15/

Stems are not computed here: the dictionaries of PostgreSQL compute them from single words
(tables/search_vectors.py).
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import chain, groupby, pairwise
from typing import NamedTuple, TypeAlias, TypeVar

from mail_assets.text.letters import MARKS, UNSPACED, UNSPACED_LETTER, WRAPPED
from mail_assets.text.untrusted import INVISIBLE

#: Codes of a terminal: colours and cursor (ECMA-48, 5.4), and titles.
TERMINAL = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"
#: A mail address in its plain form, not as `jo at example.org`.
_IN_ADDRESS = "A-Za-z0-9\\u00c0-\\u024f\\u0300-\\u036f"
_LOCAL = f"{_IN_ADDRESS}._%+=-"
ADDRESS = f"(?<![{_LOCAL}])[{_LOCAL}]++@[{_IN_ADDRESS}][{_IN_ADDRESS}.-]*+"
#: Most characters of a word: a longer run is data.
MAX_LENGTH = 200
#: Most characters of a word that is split into parts, and most parts: more are noise.
MAX_CAMEL, MAX_PARTS = 60, 8
_LEAST_ALONE = 2  # characters; a single part is longer: "phone" of iPhone, not "ph" of PhD

UNSEEN = rf"(?:[{INVISIBLE}]|{TERMINAL})"
_LETTER = rf"[^\W_{UNSPACED}]"
_SPACED = rf"{_LETTER}(?:{_LETTER}|[{MARKS}]|{UNSEEN})*+"
_PAIRED = rf"{UNSPACED_LETTER}(?:{UNSPACED_LETTER}|{UNSEEN})*+"
#: Terminal codes are matched first, because their letters are not words.
_RUN = re.compile(rf"{TERMINAL}|({_PAIRED})|({_SPACED})")
_ASCII_RUN = re.compile(r"[A-Za-z0-9]+")
#: Replaces signs by blanks: split() then finds the runs of an ASCII text in a third of the time.
_SIGNS_TO_BLANKS = {sign: " " for sign in range(128) if not chr(sign).isalnum()}
_REMOVED = re.compile(UNSEEN)
_UNSPACED_LETTER = re.compile(UNSPACED_LETTER)
_WORD = re.compile(rf"{_LETTER}(?:{_LETTER}|[{MARKS}])*")
_ADDRESS = re.compile(ADDRESS)
#: Letters that NFKC folds to other letters of unspaced scripts, as ranges for a character class.
WIDTHS = "\uf900-\ufaff\uff66-\uffdc"
_WIDTHS = re.compile(f"[{WIDTHS}]")

#: Parts by kinds of characters: u upper case, l lower case or none, d digit. "URLs" is one part.
_PART = re.compile(r"u+(?=ull)|u*(?:l[ld]*|d(?:[ld]|u(?!ll|l[ud]))*)|u[ud]*")
_JOINER = "\u200c"  # separates the words of a Persian compound
_ACCENT = re.compile(
    "(?<![\u0400-\u04ff])[\u0300-\u036f]|(?<=[\u0435\u0415])\u0308"
    "|[\u0591-\u05c7\u064b-\u065f\u0670\u0640]"
)
#: Letters that people also write as two.
_DOUBLE_LETTERS = {"ß": "ss", "æ": "ae", "œ": "oe", "ĳ": "ij", "þ": "th"}
_UNDOUBLED = str.maketrans(_DOUBLE_LETTERS)
_PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "đ": "d", "ł": "l", "ħ": "h", "ŧ": "t", "ı": "i", "ð": "d"} | _DOUBLE_LETTERS
)
_DIGIT = re.compile(r"\d")
#: A name before a number, as in glibc2.38. With two letters it is mostly a code: rc1, md5.
_NUMBERED = re.compile(r"([^\W\d_]{3,})[0-9]+")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
#: Most runs in a cache: most of a text is common words.
_KEPT = 1 << 16


#: The normal form of a word, and its further forms.
Forms: TypeAlias = tuple[str, tuple[str, ...]]


class Word(NamedTuple):
    """A word and its place in a text.

    `text` is the normal form. `forms` are further forms at the same position. `in_address`: the
    word is part of a mail address.
    """

    start: int
    end: int
    text: str
    forms: tuple[str, ...] = ()
    in_address: bool = False


def find_words(text: str) -> Iterator[Word]:
    """Yield the words of a text in their order, one for each position; takes linear time."""
    words = _find(text)
    if "@" not in text:
        return words
    return _mark_addresses(words, [found.span() for found in _ADDRESS.finditer(text)])


def list_forms(text: str) -> Iterator[tuple[Forms, bool]]:
    """Yield the forms of each word of a text, and whether the word is part of an address."""
    return ((forms, shown) for words, shown in list_pieces(text) for forms in words)


def list_pieces(text: str) -> Iterator[tuple[list[Forms], bool]]:
    """Yield pieces: forms of their words, and whether an address; 8 times as fast as find_words.

    The pair of letters around the end of a line is listed too, in scripts without blanks, because
    mail programs wrap such text within words.
    """
    if _is_plain(text):
        yield from _list_plain(text)
        return
    text = WRAPPED.sub(r"\1\n\1\2\n", text)
    for crossing, lines in groupby(text.split("\n"), _may_cross_blanks):
        joined = "\n".join(lines)
        if not crossing:
            yield [*chain.from_iterable(map(_FORMS_OF_TOKEN.__getitem__, joined.split()))], False
        elif _is_plain(joined):
            yield from _list_plain(joined)
        else:
            for in_address, words in groupby(find_words(joined), lambda word: word.in_address):
                yield [(word.text, word.forms) for word in words], in_address


def _may_cross_blanks(line: str) -> bool:
    """Return whether a line may have an address or a terminal code, and is not split at blanks."""
    return "@" in line or "\x1b" in line or "\x9b" in line


def _list_plain(text: str) -> Iterator[tuple[list[Forms], bool]]:
    """Yield the pieces of a plain text; only lines with "@" are searched for addresses."""
    at, sign = 0, text.find("@")
    while sign >= 0:
        end = text.find("\n", sign)
        end = len(text) if end < 0 else end
        for found in _ADDRESS.finditer(text, text.rfind("\n", at, sign) + 1 or at, end):
            yield _list_runs(text, at, found.start()), False
            yield _list_runs(text, *found.span()), True
            at = found.end()
        sign = text.find("@", end)
    yield _list_runs(text, at, len(text)), False


def _list_forms_of_token(token: str) -> tuple[Forms, ...]:
    return tuple((word.text, word.forms) for word in _find(token))


def _list_runs(text: str, start: int, end: int) -> list[Forms]:
    runs = text[start:end].translate(_SIGNS_TO_BLANKS).split()
    return [*chain.from_iterable(map(_FORMS.__getitem__, runs))]


def _find(text: str) -> Iterator[Word]:
    """Yield words line by line: a line in ASCII takes a third of the time."""
    if _is_plain(text):
        yield from _find_ascii(text, 0)
        return
    at = 0
    for line in text.split("\n"):
        yield from _find_ascii(line, at) if _is_plain(line) else _find_any(line, at)
        at += len(line) + 1


def _is_plain(text: str) -> bool:
    return text.isascii() and "\x1b" not in text


def _find_ascii(text: str, at: int) -> Iterator[Word]:
    for run in _ASCII_RUN.finditer(text):
        start, end = run.span()
        for form, others in _FORMS[run[0]]:
            yield Word(at + start, at + end, form, others)


def _find_any(text: str, at: int) -> Iterator[Word]:
    for run in _RUN.finditer(text):
        if run[2]:
            end = run.end() - len(run[2]) + len(_trim(run[2]))
            for form, others in _FORMS[run[2]]:
                yield Word(at + run.start(), at + end, form, others)
        elif run[1]:
            yield from _find_pairs(run, at)


def _find_pairs(run: re.Match[str], at: int) -> Iterator[Word]:
    # the Hangul fillers are invisible letters
    found = _UNSPACED_LETTER.finditer(run[0])
    letters = [letter.span() for letter in found if not _REMOVED.match(letter[0])]
    spans = [(start, end) for (start, _), (_, end) in pairwise(letters)] or letters
    for start, end in spans:
        first, last = at + run.start() + start, at + run.start() + end
        yield Word(first, last, _normalize_pair(run[0][start:end]))


def _normalize_pair(pair: str) -> str:
    """Return a pair with its width folded; other pairs skip NFKC, which splits Thai letters."""
    seen = _REMOVED.sub("", pair)
    return unicodedata.normalize("NFKC", seen) if _WIDTHS.search(seen) else seen


def _trim(run: str) -> str:
    """Return a run without invisible characters at its end."""
    last = [found for found in _REMOVED.finditer(run) if found.end() == len(run)]
    return _trim(run[: last[0].start()]) if last else run


def _mark_addresses(words: Iterator[Word], spans: list[tuple[int, int]]) -> Iterator[Word]:
    remaining = iter(spans)
    start, end = next(remaining, (-1, -1))
    for word in words:
        while 0 <= end <= word.start:
            start, end = next(remaining, (-1, -1))
        yield word._replace(in_address=True) if start <= word.start < end else word


def _normalize(run: str) -> str:
    """Return a run in lower case and normal form, without invisible characters."""
    if run.isascii() and "\x1b" not in run:
        return run.lower()
    seen = unicodedata.normalize("NFKC", _REMOVED.sub("", run)).lower()
    return _fold_digits(unicodedata.normalize("NFKC", seen))


def _fold_digits(text: str) -> str:
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def _read_run(run: str) -> tuple[Forms, ...]:
    """Return the words of a run with their further forms.

    A run is one word, unless it has a fraction or an old ligature, which stand for several words. A
    run longer than MAX_LENGTH has none.
    """
    if len(run) > MAX_LENGTH:
        return ()
    if run.isascii() and run.isalpha() and run.islower():
        return ((run, ()),)
    normal = _normalize(run)
    if normal.isascii() and normal.isalnum():
        parts = find_parts(run) if _is_mixed(run) else ()
        return ((normal, parts or name_before_number(normal)),)
    found = [word[0] for word in _WORD.finditer(normal)]
    parts = find_parts(run) if len(found) == 1 and (_JOINER in run or _is_mixed(run)) else ()
    return tuple(
        # a lone mark, such as the Arabic tatweel, is nothing without accents
        (word, tuple(dict.fromkeys(x for x in _list_further(word, parts) if x not in ("", word))))
        for word in found
    )


def _list_further(word: str, parts: tuple[str, ...]) -> list[str]:
    return [*(parts or name_before_number(word)), *_plain_forms(word)]


def name_before_number(word: str) -> tuple[str, ...]:
    """Return the name in a word that ends in digits, if it has one."""
    found = _NUMBERED.fullmatch(word)
    return (found[1],) if found else ()


def _plain_forms(word: str) -> tuple[str, str]:
    """Return a word with letters such as \u00df as two, and the word without accents."""
    return word.translate(_UNDOUBLED), remove_accents(word)


def _is_mixed(run: str) -> bool:
    return not (run.islower() or run.isupper() or run.istitle())


_T = TypeVar("_T")


class Kept(dict[str, tuple[_T, ...]]):
    """A cache of values computed from words; it is emptied when it is full."""

    def __init__(self, make: Callable[[str], tuple[_T, ...]]) -> None:
        self._make = make

    def __missing__(self, run: str) -> tuple[_T, ...]:
        made = self._make(run)
        if len(run) <= MAX_LENGTH:
            if len(self) >= _KEPT:
                self.clear()
            self[run] = made
        return made


_FORMS = Kept(_read_run)
_FORMS_OF_TOKEN = Kept(_list_forms_of_token)


def find_parts(run: str) -> tuple[str, ...]:
    """Return a camel-case name's parts of two letters or more; none for "URLs", "GHz", "PhD"."""
    if len(run) > MAX_CAMEL:
        return ()
    pieces = [piece for piece in _REMOVED.sub(_keep_joiner, run).split(_JOINER) if piece]
    parts = [part for piece in pieces for part in _split_camel(piece)]
    if len(parts) < 2 or len(parts) > MAX_PARTS:
        return ()
    named = tuple(_normalize(part) for part in parts if len(part) > 1)
    return named if len(named) > 1 or len("".join(named)) > _LEAST_ALONE else ()


def _keep_joiner(unseen: re.Match[str]) -> str:
    return unseen[0] if unseen[0] == _JOINER else ""


def _split_camel(run: str) -> list[str]:
    shape = "".join("u" if x.isupper() else "d" if x.isdigit() else "l" for x in run)
    return [run[part.start() : part.end()] for part in _PART.finditer(shape) if part[0]]


def remove_accents(word: str) -> str:
    """Return a word in normal form without accents, and without the points of Arabic and Hebrew.

    Marks that make a different letter stay (Cyrillic й, the vowels of India).
    """
    if word.isascii():
        return word
    bare = _ACCENT.sub("", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", bare).translate(_PLAIN_LETTERS)


def has_stem(word: str) -> bool:
    """Return whether a dictionary may stem a word: it has no digits or unspaced letters."""
    if word.isascii():
        return word.isalpha()
    return not _DIGIT.search(word) and not _UNSPACED_LETTER.match(word)


#: ASCII characters for wide ones, and for typographic hyphens and apostrophes.
ASCII_SIGNS: dict[int, str] = {wide: chr(wide - 0xFEE0) for wide in range(0xFF01, 0xFF5F)} | {
    0x2010: "-",
    0x2011: "-",
    0x2018: "'",
    0x2019: "'",
    0x02BC: "'",
    0x3000: " ",
}


_QUERY_WORD = re.compile(r"\w+")
_UNDOUBLE = re.compile(f"[{''.join(_DOUBLE_LETTERS)}]", re.I)
#: The vowel am of Thai and Lao: written with two characters, and the one character in texts.
_VOWELS = {"\u0e4d\u0e32": "\u0e33", "\u0ecd\u0eb2": "\u0eb3"}


def clean_query_text(text: str) -> str:
    """Clean a query as `clean_text` does, and write its words so that they find every spelling.

    A word with a Turkish \u0130 or \u0131 loses its accents: `ISPARTA` may be `\u0131sparta`. A
    letter such as \u00df becomes two letters, which also find texts with the letter.
    """
    if text.isascii():
        return clean_text(text)
    for asked, written in _VOWELS.items():
        text = text.replace(asked, written)
    return clean_text(_QUERY_WORD.sub(_fold_letters, text))


def _fold_letters(word: re.Match[str]) -> str:
    if "\u0130" in word[0] or "\u0131" in word[0]:
        return remove_accents(word[0].lower())
    return word[0] if word[0].isascii() else _UNDOUBLE.sub(_undouble, word[0])


def _undouble(letter: re.Match[str]) -> str:
    return _DOUBLE_LETTERS[letter[0].lower()]


def clean_text(text: str) -> str:
    """Return a text without invisible characters, with signs and digits in ASCII, for names."""
    return text if _is_plain(text) else "\n".join(map(_clean_line, text.split("\n")))


def _clean_line(line: str) -> str:
    if _is_plain(line):
        return line
    return _fold_digits(_REMOVED.sub("", line).translate(ASCII_SIGNS))
