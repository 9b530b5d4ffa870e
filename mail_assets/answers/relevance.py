"""The test of relevance: how likely a passage answers a question, and whether to say so.

A logistic regression over features of a passage, fitted on judged questions to three lists, each
list rated by what the two others taught. docs/answers.md has the figures, `python -m
benchmarks.answers --fit` prints the coefficients.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

#: Encoders whose similarities the coefficients were fitted to: others have another scale.
FITTED_ENCODERS = ("all-minilm-l6-v2",)
#: Least likelihood of the best passage at which "the archive answers this" is said: on the judged
#: questions, at most 5 % of what was said so was wrong.
LEAST = 0.4


class Features(NamedTuple):
    """What is known of a passage, each 0 to 1."""

    #: Weighted share of the question's words in the passage.
    words: float
    #: Cosine of the question and the passage with its subject, by the model of the index.
    similarity: float
    #: The same of the nearest chunk of the index that it shares text with.
    chunk: float
    #: 1 for a passage of the first hit, 1/2 of the second, and so on.
    place: float
    #: Share of the names and numbers of the question that neither it nor its subject has: an answer
    #: about something else of the same kind.
    missing: float
    #: Its words, 1 from LONG on: a few words state little.
    length: float
    #: 1 if the question asks for a quantity or version and the passage has no digit.
    uncounted: float
    #: 1 if it ends as a question.
    asks: float


#: What each feature adds to the logarithm of the odds.
COEFFICIENTS = Features(
    words=2.4,
    similarity=4.1,
    chunk=2.2,
    place=1.4,
    missing=-1.0,
    length=1.3,
    uncounted=-0.9,
    asks=-1.0,
)
INTERCEPT = -9.1
#: Words of a passage that is long enough.
LONG = 40

_WORD = re.compile(r"[^\s?!,;\"()\u00bf]+")
_NAME = re.compile(r"[\d_/]|[a-z][A-Z]|\.\w|.[A-Z]")
_DIGIT = re.compile(r"\d")
_QUANTITY = re.compile(
    r"\b(?:how (?:many|much|large|long|big|often|old|fast)|since (?:which|when)|"
    r"(?:which|what) (?:\w+ )?(?:version|size|number|year)|maximum|default)\b",
    re.IGNORECASE,
)


def describe(
    question: str, subject: str, text: str, *, words: float, chunk: float, rank: int
) -> Features:
    """Return the features of a passage without its similarity; `rank` is that of its hit."""
    names = find_names(question)
    whole = f"{subject}\n{text}".lower()
    return Features(
        words=words,
        similarity=0.0,
        chunk=chunk,
        place=1 / (1 + rank),
        missing=sum(name not in whole for name in names) / len(names) if names else 0.0,
        length=min(1.0, len(text.split()) / LONG),
        uncounted=float(bool(_QUANTITY.search(question)) and not _DIGIT.search(text)),
        asks=float(text.rstrip().endswith(("?", "\uff1f"))),
    )


def find_names(question: str) -> set[str]:
    """Return the names and numbers of a question, in small letters.

    They have a digit, a sign or a capital letter inside, or a capital letter and do not begin the
    question.
    """
    words = [word.strip(".:'") for word in _WORD.findall(question)]
    return {
        word.lower()
        for place, word in enumerate(words)
        if _NAME.search(word) or (place and len(word) > 1 and word[0].isupper())
    }


def rate(one: Features) -> float:
    """Return how likely a passage answers, 0 to 1."""
    odds = INTERCEPT + sum(a * b for a, b in zip(COEFFICIENTS, one, strict=True))
    return 1 / (1 + math.exp(-odds))


def answers(passages: Sequence[Features], encoder: str) -> bool:
    """Return whether passages, the best first, answer the question: rarely wrong, often silent."""
    return encoder in FITTED_ENCODERS and bool(passages) and rate(passages[0]) >= LEAST
