"""Letters of scripts without blanks between words, marks, limits in bytes, and counts of words.

A run of such letters cannot be indexed as one word: a query would not find a word inside a Chinese
sentence, nor a Korean word with its particle. So the index and queries replace the run by its
overlapping pairs, as Lucene's CJKAnalyzer does. A word is then a phrase of pairs.
https://lucene.apache.org/core/9_12_0/analysis/common/org/apache/lucene/analysis/cjk/CJKBigramFilter.html

Letters are given as ranges for a character class in regular expressions of Python and PostgreSQL.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

#: Ideographs, kana and bopomofo: each has a meaning of its own.
IDEOGRAPHS = (
    r"\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf"
    r"\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U0001b000-\U0001b16f"
    r"\U00020000-\U0003fffd"
)
# All letters of scripts without blanks between words: those above, Thai, Lao, Burmese and Khmer
_WITHOUT_BLANKS = (
    rf"{IDEOGRAPHS}\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u108f"
    r"\u109a-\u109d\ua9e0-\ua9ef\uaa60-\uaa7f\u1780-\u17d3\u17d7\u17dc\u17dd"
)
#: The same with Hangul, whose words have particles attached; all with their marks.
UNSPACED = rf"{_WITHOUT_BLANKS}\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb\uffa0-\uffdc"
# Marks that belong to the letter before: vowels and tones of these scripts, voicing of kana,
# variants of ideographs.
_ATTACHED = (
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059"
    r"\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d"
    r"\u17b4-\u17d3\u17dd\u3099\u309a\uff9e\uff9f\ufe00-\ufe0f\U000e0100-\U000e01ef"
)
#: One such letter with its marks, as a regular expression.
UNSPACED_LETTER = rf"[{UNSPACED}][{_ATTACHED}]*"
#: Marks in words of other scripts that are not in Python's `\w` (Arabic, Hebrew, those of India,
#: combining accents), and the joiners of Persian and Hindi.
MARKS = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    r"\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0"
    r"\u0816-\u082d\u0859-\u085b\u08d3-\u0963\u0971-\u0df3\u0f71-\u0f84\u0f8d-\u0fbc\u135d-\u135f"
    rf"\u1ab0-\u1ace\u1dc0-\u1dff\u200c\u200d\u20d0-\u20f0\ufe20-\ufe2f{_ATTACHED}"
)

#: The end of a line within such text, which may be within a word: group 1 is the letter before it.
WRAPPED = re.compile(
    rf"([{_WITHOUT_BLANKS}][{_ATTACHED}]{{0,4}})\n(?=([{_WITHOUT_BLANKS}][{_ATTACHED}]{{0,4}}))"
)
_LETTER = re.compile(rf"{UNSPACED_LETTER}+")  # possessive, not in PostgreSQL
_RUN = re.compile(rf"(?:{_LETTER.pattern})++")


def pair_letters(text: str) -> str:
    """Replace runs of unspaced letters by their overlapping pairs, with blanks around them.

    A single letter stays as it is.
    """
    if not has_unspaced(text):
        return text
    return _RUN.sub(lambda run: f" {' '.join(pair for _, pair in _pairs(run))} ", text)


def has_unspaced(text: str) -> bool:
    """Return whether a text has a letter of a script without blanks between words."""
    return not text.isascii() and bool(_LETTER.search(text))


def ends_in_pair(text: str) -> bool:
    """Return whether a text ends in two such letters, so that its last pair is complete."""
    if text.isascii():
        return False
    last = [letter.span() for letter in _LETTER.finditer(text)][-2:]
    return len(last) == 2 and last[0][1] == last[1][0] and last[1][1] == len(text)


def is_letter_alone(text: str) -> bool:
    """Return whether a text is one unspaced letter, which is less than an indexed pair."""
    return not text.isascii() and bool(re.fullmatch(UNSPACED_LETTER, text))


def is_unspaced(text: str) -> bool:
    """Return whether a text begins with a letter of a script without blanks between words."""
    return not text.isascii() and bool(_LETTER.match(text))


def _pairs(run: re.Match[str]) -> Iterator[tuple[int, str]]:
    letters = [(letter.start(), letter.end()) for letter in _LETTER.finditer(run[0])]
    spans = [(start, end) for (start, _), (_, end) in pairwise(letters)] or letters
    for start, end in spans:
        yield run.start() + start, run[0][start:end]


# Most bytes of the parts of a full-text vector (tables/search_vectors.py).
MAX_SUBJECT_BYTES = 4_000
MAX_NAMES_BYTES = 200_000  # of all identifiers of a message


def cut_to_bytes(text: str, limit: int) -> str:
    """Return the beginning of a text that takes at most `limit` bytes in UTF-8."""
    if len(text) * 4 <= limit:
        return text
    return text.encode()[:limit].decode(errors="ignore")


_SPACED_WORD = re.compile(r"[^\W\d_]+")
_ASCII_LETTERS = re.compile(r"[A-Za-z]+")  # the same for ASCII, in half the time
# Thai, Lao, Burmese, Khmer, kana and ideographs.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_CHARACTERS_OF_WORD = 4  # of these scripts; about one English word


def count_words(text: str) -> int:
    """Return the approximate number of words in a text; numbers do not count."""
    if text.isascii():
        return len(_ASCII_LETTERS.findall(text))
    spaced, unspaced = _UNSPACED.subn(" ", text)
    return len(_SPACED_WORD.findall(spaced)) + unspaced // _CHARACTERS_OF_WORD
