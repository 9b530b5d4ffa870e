"""How alike two sentences are: vectors of their terms, weighted by tf-idf within the thread."""

import math
from collections import Counter
from collections.abc import Sequence

Vector = dict[str, float]


def weigh_terms(sentences: Sequence[Sequence[str]]) -> list[Vector]:
    """Return a vector of length 1 for each sentence; one without terms is empty."""
    frequency = Counter(term for terms in sentences for term in set(terms))
    vectors = []
    for terms in sentences:
        weights = {
            term: count * math.log(1 + len(sentences) / frequency[term])
            for term, count in Counter(terms).items()
        }
        length = math.sqrt(sum(weight * weight for weight in weights.values()))
        vectors.append({term: weight / length for term, weight in weights.items()})
    return vectors


def measure_similarity(a: Vector, b: Vector) -> float:
    """Return the cosine of two vectors of length 1."""
    if len(a) > len(b):
        a, b = b, a
    return sum(weight * b.get(term, 0.0) for term, weight in a.items())
