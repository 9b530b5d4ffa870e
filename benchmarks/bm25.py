"""BM25 over documents in memory: what an index of words is compared with."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from mail_assets.words.index import Document
from mail_assets.words.query import Term


class Bm25:
    """BM25 with k1 = 1.2 and b = 0.75 over all documents, as arrays."""

    def __init__(self, documents: Sequence[Document]) -> None:
        lengths = np.array([len(one.lexemes) for one in documents], dtype=np.float64)
        self.damping = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
        found: dict[str, list[tuple[int, int]]] = {}
        for place, one in enumerate(documents):
            for lexeme, count in Counter(one.lexemes).items():
                found.setdefault(lexeme, []).append((place, count))
        self.found = {lexeme: np.array(pairs) for lexeme, pairs in found.items()}
        self.having = Counter({lexeme: len(pairs) for lexeme, pairs in found.items()})

    def scores(self, terms: Iterable[Term]) -> npt.NDArray[np.float64]:
        """Return the score of every document."""
        scores = np.zeros(len(self.damping))
        for term in terms:
            places, counts = self.found[term.lexeme].T
            idf = np.log(1 + (len(scores) - len(places) + 0.5) / (len(places) + 0.5))
            scores[places] += term.share * idf * counts * 2.2 / (counts + self.damping[places])
        return scores
