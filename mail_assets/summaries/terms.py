"""The words of a sentence that say what it is about."""

import re
from functools import lru_cache

_WORD = re.compile(r"[^\W_][\w'’]{1,40}")
_KNOWN_WORDS = 1 << 14  # whose terms are remembered
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{2}")

_COMMON_WORDS = """
    a about above after again against all also although always am an and any anyone anything are
    as ask at away back be because been before being below better between both but by came can
    cannot come could course did didn do does doesn doing don done down each either else enough
    etc even ever every few first for from further get gets getting give given go goes going good
    got had has hasn have haven having he hello her here hi him his how however i if in instead
    into is isn it its itself just keep kind know least less let like look looks lot made make
    makes many may maybe me mean might mine more most much must my myself need never new no nor
    not nothing now of off often oh ok on once one only or other others our out over own perhaps
    please possible probably put quite rather really right said same say says see seem seems seen
    shall she should since so some someone something somewhat sort still such sure take than thank
    thanks that the their them then there these they thing things think this those though thought
    through thus to too true try two under until up upon us use used using very via want wants was
    wasn way we well went were what when where whether which while who whole whom why will with
    within without won would wouldn wrote yes yet you your yours
    """
#: English words without a topic. Those of other languages are damped by their frequency alone.
COMMON = frozenset(_COMMON_WORDS.split())


def find_terms(text: str) -> list[str]:
    """Return the terms of a text in order: words in lower case, pairs of ideographs."""
    terms = [term for term in map(_find_term, _WORD.findall(text)) if term]
    return terms if text.isascii() else terms + _IDEOGRAPHS.findall(text)


@lru_cache(maxsize=_KNOWN_WORDS)
def _find_term(word: str) -> str:
    """Return the term of a word, "" of one without a topic."""
    plain = word.lower().replace("’", "'").removesuffix("'s")
    return "" if plain in COMMON or "'" in plain else _stem(plain)


def _stem(word: str) -> str:
    """Take the ending of an English plural or verb away: what is left need not be a word."""
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
