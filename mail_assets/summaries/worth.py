"""What a sentence is worth to a summary: the sum of a few signals, each from 0 to about 1.

The weights are round numbers, fitted to the half of the marked threads that is not held back;
docs/summaries.md says what each signal gains.
"""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from mail_assets.summaries.candidates import Candidate
from mail_assets.summaries.message_text import MessageText
from mail_assets.summaries.reactions import count_reactions

_FULL_LENGTH = 20  # words from which a sentence is not worth more for its length
_MAX_SIGNS = 0.15  # of the characters of a whole sentence, digits too
_WORD = re.compile(r"\w+")
_SIGN = re.compile(r"[^\w\s]|[\d_]")
_ASCII_NO_SIGNS = bytes(code for code in range(128) if not _SIGN.match(chr(code)))
_END = re.compile(r"[.!?…。！？:;][\"'”’»)\]>*_」』）]*$")


@dataclass(frozen=True)
class Weights:
    """What each signal counts; 0 leaves it out."""

    position: float = 1.0  # 1 for the first sentence of a message, 1/2 for the second, 1/3 ...
    length: float = 1.0  # 1 for a sentence of _FULL_LENGTH words
    centrality: float = 0.5  # 1 for the sentence with most of what people share
    reactions: float = 0.25  # 1 for the first message that answers it, 1 for each doubling
    fragment: float = -0.5  # without a mark at its end, or full of signs and digits


WEIGHTS = Weights()


def weigh_candidates(
    messages: Sequence[MessageText], candidates: Sequence[Candidate], weights: Weights = WEIGHTS
) -> list[float]:
    """Return what each candidate is worth."""
    signals = zip(
        candidates,
        measure_centrality(messages, candidates),
        count_reactions(messages, candidates),
        strict=True,
    )
    return [
        weights.position / (1 + one.index)
        + weights.length * min(len(_WORD.findall(one.text)) / _FULL_LENGTH, 1.0)
        + weights.centrality * central
        + weights.reactions * math.log2(1 + reactions)
        + weights.fragment * is_fragment(one.text)
        for one, central, reactions in signals
    ]


def measure_centrality(
    messages: Sequence[MessageText], candidates: Sequence[Candidate]
) -> list[float]:
    """Return how much of what the thread's people share is in each candidate, 1 for the most.

    A term counts by the logarithm of the number of people who use it: one that a single person
    uses counts nothing, however often, as in the versions of a patch.
    """
    users: defaultdict[str, set[str]] = defaultdict(set)
    for one in candidates:
        for term in one.terms:
            users[term].add(messages[one.message].author)
    shared = {term: math.log(len(found)) for term, found in users.items()}
    values = [sum(shared[term] for term in sorted(set(one.terms))) for one in candidates]
    most = max(values, default=0.0)
    return [value / most for value in values] if most else values


def is_fragment(text: str) -> bool:
    """Tell whether a text is a heading, an item or code rather than a whole sentence."""
    if not _END.search(text[-12:]):
        return True
    return _count_signs(text) > _MAX_SIGNS * len(text)


def _count_signs(text: str) -> int:
    if text.isascii():  # in a tenth of the time
        return len(text.encode().translate(None, _ASCII_NO_SIGNS))
    return len(_SIGN.findall(text))
