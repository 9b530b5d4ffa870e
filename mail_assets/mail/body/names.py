"""Tell whether a line is somebody's name: the author's own, or anybody's."""

import re
from functools import lru_cache

_MAX_WORDS = 4
_MIN_SHORT = 3  # letters that a short form shares with the name: "Serg" of "Sergio"
_MAX_LOWER = 12  # letters of a lower-case name: "sam"
_EDGES = " \t-–—~_=*/\\.,;!()<>\"'"
_IDEOGRAPHS = re.compile(r"[\u3400-\u9fff]{2,}")  # a family name, or a given one
_COMMENT = re.compile(r"\([^()]{0,80}\)")
_WORD = re.compile(r"[^\W\d_]+")
_COLUMN = re.compile(r"[ \t]{3,}|\t|[ \t]*\|")  # beside a drawing: "Jo Roe          |  ___"
_NOT_NAMES = frozenset(
    (
        *("a", "all", "and", "any", "anybody", "anyone", "applied", "committed", "done", "for"),
        *("everybody", "everyone", "fixed", "folks", "from", "guys", "in", "is", "it", "lists"),
        *("lot", "me", "merged", "much", "my", "no", "none", "not", "of", "ok", "on", "or", "yes"),
        *("pushed", "that", "the", "there", "this", "to", "very", "we", "what", "with", "you"),
        "your",
    )
)


@lru_cache(maxsize=4096)
def name_words(name: str, address: str) -> frozenset[str]:
    """Return the words of an author's name in lower case, and those of the address's left part."""
    plain = _COMMENT.sub(" ", name)
    return frozenset(_WORD.findall(f"{plain} {address.partition('@')[0]}".casefold()))


def is_name_of(line: str, words: frozenset[str]) -> bool:
    """Tell whether a line is a form of a name: "- Jo", "jo roe", "Jo R. Roe", "J"."""
    if not words:
        return False
    text = _COLUMN.split(line.strip(), maxsplit=1)[0].strip(_EDGES)
    found = text.split()
    if not 1 <= len(found) <= _MAX_WORDS or not all(_is_word(word) for word in found):
        return False
    first = found[0].strip(_EDGES).casefold()
    if len(text) == 1:
        return any(word[0] == first for word in words)
    return any(_is_form(first, word) for word in words) and all(
        len(word) == 1 or not word.isascii() or any(_is_form(word, each) for each in words)
        for word in (each.strip(_EDGES).casefold() for each in found[1:])
    )


def looks_like_name(line: str) -> bool:
    """Tell whether a line could be a name: up to four words in capitals, or one that is not."""
    found = _COLUMN.split(line.strip(), maxsplit=1)[0].strip(_EDGES).split()
    if not 1 <= len(found) <= _MAX_WORDS or not all(_is_word(word) for word in found):
        return False
    if any(word.casefold() in _NOT_NAMES for word in found):
        return False
    if len(found) == 1:
        return len(found[0]) <= _MAX_LOWER or found[0][0].isupper()
    return all(not word[0].islower() for word in found)


def _is_form(short: str, word: str) -> bool:
    """Tell whether a word is another or its beginning; "?" stands for a letter that was lost."""
    if "?" in short and len(short) == len(word):
        return all(mine in ("?", letter) for mine, letter in zip(short, word, strict=True))
    if short == word:
        return True
    if _IDEOGRAPHS.fullmatch(short):  # names of these have no blank in them
        return word.startswith(short) or word.endswith(short)
    return len(short) >= _MIN_SHORT and word.startswith(short)


def _is_word(word: str) -> bool:
    return word.replace(".", "").replace("-", "").replace("'", "").replace("?", "").isalpha()
