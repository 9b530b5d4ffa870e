"""Where a phrase with stop words may stand: a regular expression of PostgreSQL.

No index has stop words, so the texts of the messages with the other words are looked through. Stop
words are as they are written, other words are any that begin as all with the same stem do; whether
one has it, to_tsvector tells of each place that is found.
"""

import re
from collections.abc import Sequence, Set

from mail_assets.text.letters import UNSPACED, has_unspaced

#: Words of a phrase up to which its stop words are looked for: a longer one is told by its others,
#: and to find a pattern of 480 words takes 70 ms for each place where it stands.
MAX_PATTERN = 32
_WORD = re.compile(r"[^\W_]+")
_CONSONANTS = frozenset("bcdfghjklmnpqrstvwxz")
#: In PostgreSQL the rest of a word, what is between two of them, and where one begins and ends:
#: unspaced letters are no part of a word beside them.
_REST = rf"(?:(?![{UNSPACED}])[[:alnum:]])"
_BETWEEN = "[^[:alnum:]]+"
_BEGIN = rf"(?:(?<![[:alnum:]])|(?<=[{UNSPACED}]))"
_END = rf"(?:(?![[:alnum:]])|(?=[{UNSPACED}]))"
#: Where a stem of Porter's stemmer may differ from its word before it ends: happy, happi; ability,
#: abil; lying, lie. Of 194,879 words of 40,000 messages in English none differs elsewhere.
_ENGLISH_ENDING = re.compile(r"(?:ie|[eily])\Z")


def build_pattern(phrase: str, lexemes: Sequence[str], stop_words: Set[str], language: str) -> str:
    """Return the pattern, empty where there is nothing to find.

    That is of a phrase without stop words, of one with more than MAX_PATTERN words, and of one with
    unspaced letters, which are found as pairs. `lexemes` are those of the phrase in its order, in a
    text search configuration of this name.
    """
    words = [word.lower() for word in _WORD.findall(phrase)]
    if stop_words.isdisjoint(words) or len(words) > MAX_PATTERN or has_unspaced(phrase):
        return ""
    others = [word for word in words if word not in stop_words]
    beginnings = dict(zip(others, _find_beginnings(others, lexemes, language), strict=True))
    parts = [_alike(beginnings[word]) if word in beginnings else word for word in words]
    return f"{_BEGIN}{_BETWEEN.join(parts)}{_END}"


def _alike(beginning: str) -> str:
    return f"{beginning}{_REST}*" if beginning else f"{_REST}+"


def _find_beginnings(words: Sequence[str], lexemes: Sequence[str], language: str) -> list[str]:
    """Return what all words begin with that have the stem of each of these, empty for nothing.

    Stemmers with stop words change the end of a word, and vowels (German: Apfel, Äpfel).
    """
    if language == "english" and len(words) == len(lexemes):
        shared = [_ENGLISH_ENDING.sub("", lexeme) for lexeme in lexemes]
        if all(map(str.startswith, words, shared)) and "".join(shared).isalnum():
            return shared
    return [word[0] if word[0] in _CONSONANTS else "" for word in words]
