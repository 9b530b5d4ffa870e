"""The test of relevance: whether passages answer a question, by features of each.

Until it is calibrated it says so of none.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple


class Features(NamedTuple):
    """What is known of a passage, each 0 to 1.

    `words` is the weighted share of the question's words in the passage, `with_subject` in the
    passage and its subject; `similarity` is the cosine of question and passage, with the subject,
    by the model of the index; `score` is the message's; `legs` is the share of the retrievers that
    found the message.
    """

    words: float
    with_subject: float
    similarity: float
    score: float
    legs: float


def rate(one: Features) -> float:
    """Return how likely a passage answers, 0 to 1."""
    return 1 / (1 + math.exp(-(one.similarity + 0.7 * one.with_subject + one.score - 1)))


def answers(passages: Sequence[Features]) -> bool:
    """Return whether passages, the best first, answer the question."""
    return False
