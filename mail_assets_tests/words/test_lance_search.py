"""The table of words answers any query as a search of every document would.

Half of the documents are indexed at once and the rest in appends, or all at the end as while an
index is being filled; a few are deleted.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mail_assets.vectors import lance_filters
from mail_assets.vectors.filters import Filter
from mail_assets.words.index import Document, Phrase, Prefix, Term, WordIndex, WordQuery
from mail_assets.words.open import open_words
from mail_assets_tests.words.reference import Bm25
from mail_assets_tests.words.samples import FLAGS, documents

# Lance rounds the lengths of documents.
EXACT = 1e-3
TOP_K = 20
# To shrink a failure takes minutes.
ASKED = settings(
    suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.reuse, Phase.generate]
)


class Corpus:
    def __init__(self, words: WordIndex, documents: list[Document]) -> None:
        self.words, self.documents, self.bm25 = words, documents, Bm25(documents)

    def __repr__(self) -> str:  # hypothesis writes down what a test was given
        return "corpus"


@pytest.fixture(scope="module", params=["maintained", "being filled"])
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    words = open_words(f"lance:{tmp_path_factory.mktemp('words')}", {})
    words.ensure()
    maintained = request.param == "maintained"
    upkeep: Callable[[], object] = words.maintain if maintained else list
    written = documents(1_200)
    words.put(written[:600])
    upkeep()
    for start in range(600, 1_200, 200):
        words.put(written[start : start + 200])
        upkeep()
    words.delete(document.key for document in written[::40])
    (words.maintain if maintained else words.catch_up)()
    kept = [document for number, document in enumerate(written) if number % 40]
    return Corpus(words, kept)


ALL = documents(1_200)
# Drawn from texts, so common lexemes come as often as they do there; and from all of them alike.
in_texts = st.sampled_from([lexeme for document in ALL[:100] for lexeme in document.lexemes])
any_lexeme = st.sampled_from(sorted({lexeme for document in ALL for lexeme in document.lexemes}))
lexemes = in_texts | any_lexeme | st.just("in no document")
terms = st.lists(
    st.builds(Term, lexemes, st.sampled_from([1.0, 1.0, 1.0, 2.0, 0.25])),
    max_size=50,
    unique_by=lambda term: term.lexeme,
)


@st.composite
def phrases(draw: st.DrawFn) -> Phrase:
    text = ALL[draw(st.integers(0, 200))].lexemes
    start = draw(st.integers(0, len(text) - 1))
    return Phrase(text[start : start + draw(st.integers(1, 3))])


prefixes = st.builds(lambda lexeme, length: Prefix(lexeme[:length]), in_texts, st.integers(1, 8))
clauses = lexemes | phrases() | prefixes


@st.composite
def queries(draw: st.DrawFn) -> WordQuery:
    """Queries whose terms are among what they require, more often than by chance."""
    ranked = tuple(draw(terms))
    own = st.sampled_from([term.lexeme for term in ranked]) if ranked else lexemes
    either = st.lists(own, min_size=1, max_size=2) | st.lists(clauses | own, min_size=1, max_size=3)
    required = draw(st.lists(either.map(tuple), max_size=2).map(tuple))
    return WordQuery(ranked, required, draw(st.lists(clauses, max_size=2).map(tuple)))


filters: st.SearchStrategy[Filter | None] = st.sampled_from(
    [
        None,
        None,
        {"list": "o'list"},
        {"list": {"$in": ["a-list", "another"]}, "month": {"$gte": 202201}},
        {"list": {"$ne": "a-list"}},
        {"month": 202203},
        {"sent_at": {"$gte": 1_600_300_000, "$lt": 1_600_600_000}},
        {"sender": "sender7@example.org"},
        {"sender": {"$nin": ["sender7@example.org"]}},
        *({"flags": flag} for flag in FLAGS),
        {"flags": {"$ne": "patch"}},
        {"flags": {"$in": ["patch", "first"]}, "list": "another"},
        {"$and": [{"flags": "patch"}, {"flags": {"$nin": ["first"]}}]},
        {"$or": [{"list": "another"}, {"flags": "reply"}]},
    ]
)


ranges: st.SearchStrategy[Filter | None] = st.sampled_from(
    [
        {"sent_at": {"$gte": 1_600_100_000}},
        {"sent_at": {"$gte": 1_600_050_000, "$lt": 1_600_900_000}},
        {"$and": [{"flags": {"$ne": "patch"}}, {"month": {"$lt": 202210}}]},
        {"list": "another", "sent_at": {"$lt": 1_600_800_000}},
    ]
)


@settings(ASKED, max_examples=40)
@given(queries().filter(lambda query: query.terms), ranges)
def test_a_filter_after_the_search_is_exact(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, query: WordQuery, where: Filter
) -> None:
    monkeypatch.setattr(lance_filters, "LISTED_WHILE_ONE_IS_READ", 0)
    found = corpus.words.search(query, TOP_K, where)
    true = corpus.bm25.scores(query, where)
    best = sorted(true.values(), reverse=True)[:TOP_K]
    assert [match.score for match in found] == pytest.approx(best, rel=EXACT)
    assert [true[match.key] for match in found] == pytest.approx(best, rel=EXACT)


@settings(ASKED, max_examples=60)
@given(terms.filter(bool), filters)
def test_the_best_match_an_exhaustive_search(
    corpus: Corpus, asked: list[Term], where: Filter | None
) -> None:
    query = WordQuery(tuple(asked))
    found = corpus.words.search(query, TOP_K, where)
    true = corpus.bm25.scores(query, where)
    best = sorted(true.values(), reverse=True)[:TOP_K]
    assert [match.score for match in found] == pytest.approx(best, rel=EXACT)
    assert [true[match.key] for match in found] == pytest.approx(best, rel=EXACT)
    assert len({match.key for match in found}) == len(found)


@settings(ASKED, max_examples=60)
@given(queries(), filters)
def test_the_hits_match_an_exhaustive_search(
    corpus: Corpus, query: WordQuery, where: Filter | None
) -> None:
    found = {match.key: match.score for match in corpus.words.search(query, 10_000, where)}
    assert found == pytest.approx(corpus.bm25.scores(query, where), rel=EXACT)


@settings(ASKED, max_examples=30)
@given(queries(), filters)
def test_without_terms_the_newest_are_found(
    corpus: Corpus, query: WordQuery, where: Filter | None
) -> None:
    query = query._replace(terms=())
    hits = corpus.bm25.scores(query, where)
    newest = sorted(
        (document for document in corpus.documents if document.key in hits),
        key=lambda document: -document.sent_at,
    )
    found = corpus.words.search(query, TOP_K, where)
    assert [match.key for match in found] == [document.key for document in newest[:TOP_K]]
