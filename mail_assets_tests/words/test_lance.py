"""The word index in LanceDB gives the same hits as a search of every document.

In the exhaustive comparison half of the documents are indexed at once and the rest in appends, or
all at the end as while an index is being filled; a few are deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lancedb
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mail_assets.vectors import lance_filters
from mail_assets.vectors.filters import Filter
from mail_assets.words import lance_query as query_module
from mail_assets.words.index import (
    NAME,
    Clause,
    Document,
    MissingWordsError,
    Phrase,
    Prefix,
    Term,
    WordIndex,
    WordQuery,
    WordsError,
)
from mail_assets.words.lance import LanceWordIndex, to_arrow
from mail_assets.words.lance_query import (
    MAX_TERMS,
    MAX_TOKENS,
    lance_query,
    ranking_query,
    share_step,
)
from mail_assets.words.open import open_words
from mail_assets_tests.s3 import serve_bucket
from mail_assets_tests.vectors.interrupted import ERASED, fails_once
from mail_assets_tests.words.reference import Bm25
from mail_assets_tests.words.samples import FLAGS, STRANGE, document, documents


def found(words: WordIndex, lexeme: str) -> list[str]:
    return [match.message_id for match in words.search(WordQuery((Term(lexeme),)), 50)]


def test_lexeme_finds_exactly_its_documents(words: WordIndex) -> None:
    put = [document(number, ["before", one, "after"]) for number, one in enumerate(STRANGE)]
    words.put(put)
    for _ in ("before it is indexed", "after"):
        for one, wanted in zip(STRANGE, put, strict=True):
            assert found(words, one) == [wanted.message_id], one[:20]
            required = WordQuery((), required=((one,),))
            assert [match.key for match in words.search(required, 50)] == [wanted.key], one[:20]
        words.maintain()


def test_replaced_and_deleted_words_are_not_found(words: WordIndex) -> None:
    words.put([document(1, ["old"]), document(2, ["old"]), document(3, ["old"])])
    words.maintain()
    words.put([document(1, ["new"])])
    words.delete([document(2, []).key, "no such key"])
    assert found(words, "old") == ["<3@example.org>"]
    assert found(words, "new") == ["<1@example.org>"]
    assert words.count() == 2
    assert sorted(words.keys()) == sorted([document(1, []).key, document(3, []).key])


def test_a_write_to_an_erased_version_is_repeated(
    words: WordIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(words, LanceWordIndex)
    first, second = document(0, ["a"]), document(1, ["b"])
    kind = type(words._table.open())
    with fails_once(monkeypatch, kind, "merge_insert", ERASED):
        words.put([first, second])
    with fails_once(monkeypatch, kind, "delete", ERASED):
        words.delete([first.key])
    assert [*words.keys()] == [second.key]


@pytest.mark.parametrize("share", [0.25, 1.0, 2.0])
def test_share_multiplies_the_score_of_a_lexeme(words: WordIndex, share: float) -> None:
    words.put([document(number, ["word"] * (number + 1) + ["other"]) for number in range(5)])
    words.maintain()
    plain = {match.key: match.score for match in words.search(WordQuery((Term("word"),)), 5)}
    shared = words.search(WordQuery((Term("word", share),)), 5)
    assert {match.key: match.score for match in shared} == {
        key: pytest.approx(score * share, rel=1e-5) for key, score in plain.items()
    }


def test_without_terms_the_newest_come_first(words: WordIndex) -> None:
    words.put(document(number, ["word"]) for number in range(20))
    newest = [match.message_id for match in words.search(WordQuery(()), 3)]
    assert newest == ["<19@example.org>", "<18@example.org>", "<17@example.org>"]


@pytest.mark.parametrize("moved_by", ["a writer", "upkeep"])
def test_newest_are_found_while_their_rows_move(
    words: WordIndex, monkeypatch: pytest.MonkeyPatch, moved_by: str
) -> None:
    written = [document(number, ["word"]) for number in range(20)]
    for one in written:
        words.put([one])
    moves: dict[str, Callable[[], object]] = {
        "a writer": lambda: words.put(written),
        "upkeep": lambda: words.maintain(erase=True),
    }
    left = [moves[moved_by]]
    read_newest = query_module._read_newest

    async def read_and_move(*asked: Any) -> dict[int, float]:
        rows = await read_newest(*asked)
        if left:
            await asyncio.to_thread(left.pop())
        return rows

    monkeypatch.setattr(query_module, "_read_newest", read_and_move)
    newest = [match.message_id for match in words.search(WordQuery(()), 3)]
    assert newest == ["<19@example.org>", "<18@example.org>", "<17@example.org>"]
    assert not left


@pytest.mark.parametrize(("shares", "step"), [
    ([1.0] * 100, 1.0),
    ([2.0, 2.0], 2.0),
    ([2.0, 1.0], 1.0),
    ([1.0, 0.25], 0.25),
    ([0.75, 0.5], 0.25),
    ([*[1.0] * 60, 2.0, 0.25, 0.25], 0.25),
    ([*[1.0] * 90, 2.0, 0.25, 0.25], 0.5),
    ([*[2.0] * 99, 0.25], 1.0),
])  # fmt: skip
def test_shares_are_exact_until_query_has_too_many_tokens(shares: list[float], step: float) -> None:
    terms = [Term(f"w{number}", share) for number, share in enumerate(shares)]
    assert share_step(terms) == step
    assert len(ranking_query(terms).query.split()) <= MAX_TOKENS


def test_only_the_first_of_very_many_terms_count() -> None:
    terms = [Term(f"w{number}") for number in range(500)]
    assert ranking_query(terms).query.split() == [f"w{number}" for number in range(MAX_TERMS)]


@pytest.mark.parametrize(("required", "filtered"), [
    ((("page",),), False),
    ((("page",), ("file",)), False),
    (((Phrase(("page",)), "file"),), False),
    ((("page", "file"), ("file", "page")), True),
    ((("page", "lock"),), True),
    (((Prefix("page"),),), True),
    ((("lock",),), True),
    (((Phrase(("page", "lock")),),), False),
], ids=str)  # fmt: skip
def test_no_filter_looks_up_required_words_that_rank(
    required: tuple[tuple[Clause, ...], ...], filtered: bool
) -> None:
    query = WordQuery((Term("page"), Term("file"), Term("rare")), required)
    assert (lance_query(query, None).condition is not None) == filtered


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
def test_filter_after_the_search_is_exact(
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
def test_best_match_an_exhaustive_search(
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
def test_hits_match_an_exhaustive_search(
    corpus: Corpus, query: WordQuery, where: Filter | None
) -> None:
    found = {match.key: match.score for match in corpus.words.search(query, 10_000, where)}
    assert found == pytest.approx(corpus.bm25.scores(query, where), rel=EXACT)


@settings(ASKED, max_examples=30)
@given(queries(), filters)
def test_no_terms_find_the_newest(corpus: Corpus, query: WordQuery, where: Filter | None) -> None:
    query = query._replace(terms=())
    hits = corpus.bm25.scores(query, where)
    newest = sorted(
        (document for document in corpus.documents if document.key in hits),
        key=lambda document: -document.sent_at,
    )
    found = corpus.words.search(query, TOP_K, where)
    assert [match.key for match in found] == [document.key for document in newest[:TOP_K]]


LEASE = WordQuery((Term("lease"),))


@pytest.fixture
def s3() -> Iterator[dict[str, str]]:
    with serve_bucket() as environ:
        yield environ


@pytest.mark.slow
def test_index_on_s3_goes_through_its_whole_life(s3: dict[str, str]) -> None:
    index = open_words("lance:s3://mail/words", s3)
    with pytest.raises(MissingWordsError, match="`mail-assets backfill` creates it"):
        index.search(LEASE, 5)
    index.ensure()
    index.put(document(number, ["lease", f"w{number}"]) for number in range(20))
    index.maintain()
    index.put([document(20, ["lease", "lease"]), document(0, ["other"])])
    index.delete([document(1, []).key])
    first, *rest = index.search(LEASE, 50)
    assert (first.message_id, len(rest)) == ("<20@example.org>", 18)
    excluded = WordQuery((Term("lease"),), excluded=("w2", "w3"))
    assert len(index.search(excluded, 50, {"list": {"$eq": "a-list"}})) == 17
    index.maintain(erase=True)
    assert open_words("lance:s3://mail/words", s3).count() == 20
    assert {*index.find({"month": {"$eq": 202001}})} == {document(0, []).key}
    index.drop()
    with pytest.raises(MissingWordsError):
        index.count()


DOCUMENTS = [document(number, ["lease", f"w{number}"]) for number in range(3)]


def former(folder: Path, without: list[str]) -> WordIndex:
    """Return the index of a version that kept less."""
    rows = to_arrow(DOCUMENTS).drop_columns(without)
    lancedb.connect(folder / "words").create_table("words-1", rows)
    return open_words(f"lance:{folder / 'words'}", {}, name="words-1")


def test_missing_column_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    index = former(tmp_path, ["message_id", "match"])
    wanted = (
        "words-1 in lance:.*: another version of mail_assets filled it, without message_id, match; "
        f"run `mail-assets backfill`, which fills {NAME} and makes it live"
    )
    for where in (None, {"message_id": {"$in": ["<1@example.org>"]}}):
        with pytest.raises(WordsError, match=wanted) as caught:
            index.search(LEASE, 5, where)
        assert not isinstance(caught.value, MissingWordsError)


def test_table_with_every_column_is_searched(tmp_path: Path) -> None:
    assert len(former(tmp_path, []).search(LEASE, 5)) == 3


@pytest.mark.parametrize("without", [[], ["message_id"], ["prefixes", "flags"]], ids=len)
def test_forgetting_and_upkeep_need_no_new_column(tmp_path: Path, without: list[str]) -> None:
    index = former(tmp_path, without)
    index.maintain()
    index.delete([DOCUMENTS[1].key])
    index.maintain(erase=True)
    assert sorted(index.keys()) == [DOCUMENTS[0].key, DOCUMENTS[2].key]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if b"w1" in path.read_bytes()] == []
