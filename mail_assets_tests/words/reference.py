"""Reference of a search of words, without an index: a matcher, and BM25 over all documents."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from mail_assets.month import month_number
from mail_assets.vectors.filters import Filter, matches_filter
from mail_assets.words.index import Clause, Document, Phrase, Prefix, WordQuery

K1, B = 1.2, 0.75


def matches(document: Document, query: WordQuery, where: Filter | None = None) -> bool:
    """Return whether a document is a hit."""
    fields = {
        "list": document.month.list_name,
        "month": month_number(document.month.month),
        "sent_at": document.sent_at,
        "sender": document.sender,
        "flags": list(document.flags),
    }
    return (
        (where is None or matches_filter(where, fields))
        and (not query.terms or any(term.lexeme in document.lexemes for term in query.terms))
        and all(any(has(document, clause) for clause in either) for either in query.required)
        and not any(has(document, clause) for clause in query.excluded)
    )


def has(document: Document, clause: Clause) -> bool:
    lexemes = document.lexemes
    if isinstance(clause, Prefix):
        return any(x.startswith(clause.text) for x in (*lexemes, *document.written))
    if isinstance(clause, Phrase):
        length = len(clause.lexemes)
        return any(
            lexemes[start : start + length] == clause.lexemes for start in range(len(lexemes))
        )
    return clause in lexemes


class Bm25:
    """BM25 with k1 = 1.2, b = 0.75 and the idf of Lucene (Robertson, Zaragoza 2009)."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = documents
        self.counts = [Counter(document.lexemes) for document in documents]
        self.mean = sum(len(document.lexemes) for document in documents) / len(documents)
        self.having = Counter(lexeme for counts in self.counts for lexeme in counts)
        self.places: dict[str, list[int]] = {}
        for place, counts in enumerate(self.counts):
            for lexeme in counts:
                self.places.setdefault(lexeme, []).append(place)

    def scores(self, query: WordQuery, where: Filter | None = None) -> dict[str, float]:
        places: Iterable[int] = range(len(self.documents))
        if query.terms:
            places = {place for term in query.terms for place in self.places.get(term.lexeme, ())}
        return {
            self.documents[place].key: self._score(query, place)
            for place in places
            if matches(self.documents[place], query, where)
        }

    def _score(self, query: WordQuery, place: int) -> float:
        counts, length = self.counts[place], len(self.documents[place].lexemes) / self.mean
        score = 0.0
        for term in query.terms:
            if count := counts[term.lexeme]:
                having = self.having[term.lexeme]
                idf = math.log(1 + (len(self.documents) - having + 0.5) / (having + 0.5))
                score += term.share * idf * count * (K1 + 1) / (count + K1 * (1 - B + B * length))
        return score
