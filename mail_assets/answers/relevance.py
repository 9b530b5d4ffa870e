"""Rate passages: the likelihood that one answers, and that the archive does.

Two logistic regressions, fitted on judged questions to three lists, each list rated by what the two
others taught. The first rates a passage by its features, and ranks passages. The second rates what
is shown: by the best passage, how far it stands above the best of another conversation, and the
rank of its message. docs/answers.md has the figures, `python -m benchmarks.answers --fit` prints
the coefficients.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

#: Encoders whose similarities the coefficients were fitted to: others have another scale.
FITTED_ENCODERS = ("all-minilm-l6-v2",)
#: Least likelihood at which "the archive answers this" is said. On the judged questions at most 5 %
#: of these claims are wrong, also where each list is judged by coefficients of the other two.
LEAST = 0.85


class Features(NamedTuple):
    """Features of a passage, each 0 to 1."""

    #: Weighted share of the question's words in the passage.
    words: float
    #: Cosine of the question and the passage with its subject, by the model of the index.
    similarity: float
    #: The same of the nearest chunk of the index that it shares text with.
    chunk: float
    #: Share of the names and numbers of the question that neither it nor its subject has: an answer
    #: about something else of the same kind.
    missing: float
    #: Its words, 1 from LONG on: a few words state little.
    length: float
    #: 1 if the question asks for a quantity or version and the passage has no digit.
    uncounted: float
    #: 1 if it ends as a question, or asks what the question asks.
    asks: float


#: What the features add to the logarithm of the odds that a passage answers.
COEFFICIENTS = Features(
    words=1.95,
    similarity=3.26,
    chunk=2.84,
    missing=-1.02,
    length=0.94,
    uncounted=-0.16,
    asks=-1.07,
)
#: What words and similarity add together, beyond each alone, and the odds without any feature.
BOTH, INTERCEPT = 1.31, -8.15


class Shown(NamedTuple):
    """Features of the passages that are shown: logarithms of odds, and a rank."""

    #: The odds of the best one.
    best: float
    #: The odds of the second: many that are as good say that none stands out.
    second: float
    #: 1 if the best is of the first hit, 1/2 of the second, and so on.
    place: float


#: What these add to the logarithm of the odds that one of the passages answers.
CLAIM, CLAIM_INTERCEPT = Shown(best=1.22, second=-0.37, place=0.18), 0.86
#: The odds of a second passage where there is none.
NO_SECOND = -6.0
#: Words of a passage that is long enough.
LONG = 40

_WORD = re.compile(r"[^\s?!,;\"()\u00bf]+")
_NAME = re.compile(r"[\d_/]|[a-z][A-Z]|\.\w|.[A-Z]")
_DIGIT = re.compile(r"\d")
_PLAIN = re.compile(r"\w+")
_ASKED = re.compile(r"[^.!?\uff1f]{1,300}[?\uff1f]")
_QUANTITY = re.compile(
    r"\b(?:how (?:many|much|large|long|big|often|old|fast)|since (?:which|when)|"
    r"(?:which|what) (?:\w+ )?(?:version|size|number|year)|maximum|default)\b",
    re.IGNORECASE,
)

#: The author says that he does not know, or asks others.
_UNSURE = re.compile(
    r"\b(?:I(?:'m| am) (?:a bit |\w+ )?(?:confused|puzzled|unsure|not sure|wondering|curious)|"
    r"I (?:\w+ )?(?:don't|do not|can't|cannot) (?:know|understand|tell)|I(?:'ve| have) no idea|"
    r"I wonder|(?:does|can|could|has) any(?:one|body))\b",
    re.IGNORECASE,
)
#: The kind of thing that is asked for: "Which package has it?" asks for a package.
_KIND = re.compile(
    r"\W*(?:(?:in|on|to|from|for|of|with|by|at|since|until|under) )?which "
    r"(?!(?:is|are|was|were|of|ones?|does|did|has|have|can|should|would|will)\b)(\w{3,})",
    re.IGNORECASE,
)


def describe(question: str, subject: str, text: str, *, words: float, chunk: float) -> Features:
    """Return the features of a passage without its similarity."""
    names = find_names(question)
    whole = f"{subject}\n{text}".lower()
    return Features(
        words=words,
        similarity=0.0,
        chunk=chunk,
        missing=sum(name not in whole for name in names) / len(names) if names else 0.0,
        length=min(1.0, len(text.split()) / LONG),
        uncounted=float(bool(_QUANTITY.search(question)) and not _DIGIT.search(text)),
        asks=float(text.rstrip().endswith(("?", "\uff1f")) or _repeats(question, text)),
    )


def _repeats(question: str, text: str) -> bool:
    """Return whether a text asks a question with half of the words of this one."""
    words = {*_PLAIN.findall(question.lower())}
    asked = ({*_PLAIN.findall(one.lower())} for one in _ASKED.findall(text))
    return any(2 * len(words & one) >= len(words) for one in asked)


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


def lacks_kind(question: str, text: str) -> bool:
    """Return whether a question asks which of a kind, and a text has no word for that kind."""
    asked = _KIND.match(question)
    return asked is not None and asked[1].lower().rstrip("s") not in text.lower()


def is_unsure(text: str) -> bool:
    """Return whether the author of a text says that he does not know, or asks others."""
    return bool(_UNSURE.search(text.replace("\u2019", "'")))


def rate(one: Features) -> float:
    """Return the logarithm of the odds that a passage answers."""
    added = sum(a * b for a, b in zip(COEFFICIENTS, one, strict=True))
    return INTERCEPT + BOTH * one.words * one.similarity + added


def describe_shown(rates: Sequence[float], rank: int) -> Shown:
    """Return the features of shown passages: their rates, best first, and the rank of the first."""
    return Shown(rates[0], rates[1] if len(rates) > 1 else NO_SECOND, 1 / (1 + rank))


def rate_shown(shown: Shown) -> float:
    """Return how likely one of the passages that are shown answers, 0 to 1."""
    odds = CLAIM_INTERCEPT + sum(a * b for a, b in zip(CLAIM, shown, strict=True))
    return 1 / (1 + math.exp(-odds))


def answers(shown: Shown, encoder: str) -> bool:
    """Return whether to say that the archive answers: rarely wrong, often silent."""
    return encoder in FITTED_ENCODERS and rate_shown(shown) >= LEAST
