"""How alike two sentences are: vectors of their terms, weighted by tf-idf within the thread."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

Vector = dict[str, float]


def weigh_terms(sentences: Sequence[Sequence[str]]) -> list[Vector]:
    """Return a vector of length 1 for each sentence; one without terms is empty."""
    frequency = Counter(chain.from_iterable(map(set, sentences)))
    rarity = {term: math.log(1 + len(sentences) / count) for term, count in frequency.items()}
    vectors = []
    for terms in sentences:
        weights = {term: terms.count(term) * rarity[term] for term in terms}
        length = math.sqrt(sum(weight * weight for weight in weights.values()))
        vectors.append({term: weight / length for term, weight in weights.items()})
    return vectors


def group_by_term(vectors: Sequence[Vector]) -> Mapping[str, Sequence[int]]:
    """Return by each term the vectors that have it: all others have nothing in common with one."""
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for number, vector in enumerate(vectors):
        for term in vector:
            holders[term].append(number)
    return holders


def measure_similarity(a: Vector, b: Vector) -> float:
    """Return the cosine of two vectors of length 1."""
    if len(a) > len(b):
        a, b = b, a
    return sum(weight * b.get(term, 0.0) for term, weight in a.items())
