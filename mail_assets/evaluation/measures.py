"""The measures of a ranking against relevance judgements.

nDCG@10     DCG / the DCG of the best order, DCG = sum of (2**grade - 1) / log2(rank + 1)
            (Burges et al. 2005; with grades of 0 and 1 it is that of Järvelin, Kekäläinen
            2002)
MRR         1 / the rank of the first relevant message, 0 where none is among the first 50
recall@50   the share of the relevant messages among the first 50
success@10  whether any relevant message is among the first 10
threads@10  how many threads the first 10 come from: one that fills the page hides the others
"""

import math
from collections.abc import Iterable, Mapping, Sequence


def ndcg(ranking: Sequence[str], relevant: Mapping[str, int], depth: int) -> float:
    """Return the normalised discounted cumulative gain of the first `depth`, 0 to 1."""
    best = sorted(relevant.values(), reverse=True)
    return _dcg([relevant.get(i, 0) for i in ranking[:depth]]) / _dcg(best[:depth])


def reciprocal_rank(ranking: Sequence[str], relevant: Mapping[str, int]) -> float:
    """Return 1 / the rank of the first relevant message, 0 where there is none."""
    return next((1 / rank for rank, i in enumerate(ranking, 1) if i in relevant), 0.0)


def recall(ranking: Sequence[str], relevant: Mapping[str, int], depth: int) -> float:
    """Return the share of the relevant messages that are among the first `depth`."""
    return len(relevant.keys() & {*ranking[:depth]}) / len(relevant)


def success(ranking: Sequence[str], relevant: Mapping[str, int], depth: int) -> float:
    """Return 1 where any relevant message is among the first `depth`, else 0."""
    return float(not relevant.keys().isdisjoint(ranking[:depth]))


def count_threads(threads: Sequence[str], depth: int) -> int:
    """Return how many threads the first `depth` messages come from."""
    return len({*threads[:depth]})


def _dcg(grades: Iterable[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))
