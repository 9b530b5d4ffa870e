"""Search in SQL finds what search in Python finds over pgvector."""

import datetime as dt
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from mail_assets.encoding.local_encoder import LocalEncoder
from mail_assets.month import ListMonth
from mail_assets.search.filters import MessageFilter, compile_filters
from mail_assets.search.fulltext import FULLTEXT_DEPTH
from mail_assets.search.language.request import Request
from mail_assets.search.language.syntax import parse_request
from mail_assets.search.look_up import LookedUp, LookUp
from mail_assets.search.matches import Candidate, Depths, MessageCopy
from mail_assets.search.retrieval import Retriever
from mail_assets.search.semantic import SEMANTIC_DEPTH
from mail_assets.text.identifiers import find_names
from mail_assets.text.words import clean_text, find_words
from mail_assets.vectors.index import VectorIndex
from mail_assets.words.open import open_words
from mail_assets_tests.sample_corpus import Corpus
from mail_assets_tests.search.fixed_indexes import FixedVectors, always, asking
from mail_assets_tests.sql_functions.conftest import call, vector_text

QUESTIONS = [
    "why do jobs run twice after a worker pauses", "harbor lease queue upgrade",
    "ejecutamos una de las tareas", "pg_catalog.pg_class in src/backend/access/heap/heapam.c",
    "harbor_lease and the harbor's leases", '"completed jobs leave the hot table"', "lease -worker",
    "lease -the", '"lease" renew "queue"', "una jirafa alta", "--schema-only a - b -t",
    "Robert'); DROP TABLE messages;-- & | ! :* <-> 'x' \\ \"y\" % _",
    "twice@example.es https://example.org/a.b deadbeef1 40P01", "lease C++ .NET", "lease -C#",
    "[PATCH -worker] lease", "[x] lease -worker [y]", '[x -"worker" y] lease',
    "lease -.NET -7.5.0 -/usr", "lease -x. -worker.", '"a C++ queue" lease',
]  # fmt: skip
FILTERS: list[dict[str, Any]] = [
    {},
    {"lists": ("harbor-dev",)},
    {"lists": ("harbor-dev", "harbor-es"), "after": dt.date(2024, 3, 5)},
    {"after": dt.date(2024, 3, 4), "before": dt.date(2024, 3, 20)},
]


def given_to_sql(filters: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if "lists" in filters:
        given["in_lists"] = list(filters["lists"])
    for ours, theirs in (("after", "sent_after"), ("before", "sent_before")):
        if ours in filters:
            given[theirs] = dt.datetime.combine(filters[ours], dt.time(), dt.UTC)
    return given


def limits_of(db: psycopg.Connection, corpus: Corpus, filters: dict[str, Any]) -> MessageFilter:
    parsed = parse_request(Request("x", **filters))
    limits = compile_filters(db, parsed.clauses, corpus.settings.languages)
    assert limits
    return limits


def look_up(
    db: psycopg.Connection,
    corpus: Corpus,
    query: str,
    filters: dict[str, Any],
    vectors: FixedVectors | None = None,
) -> LookedUp:
    limits, source = limits_of(db, corpus, filters), vectors or always()
    look = LookUp(db, asking(open_words(corpus.settings.words)), source, corpus.settings.languages)
    mode = "semantic" if vectors else "fulltext"
    return look.read(parse_request(Request(query, mode=mode)), limits)


def by_words(
    db: psycopg.Connection, corpus: Corpus, query: str, filters: dict[str, Any]
) -> list[Candidate]:
    looked_up = look_up(db, corpus, query, filters)
    return Retriever(db).rank_legs(looked_up, Depths(words=FULLTEXT_DEPTH)).fulltext


def by_meaning(
    db: psycopg.Connection,
    corpus: Corpus,
    index: VectorIndex,
    vector: Any,
    filters: dict[str, Any],
    count: int = 10,
) -> list[Candidate]:
    vectors = FixedVectors(lambda _, top_k, where: index.query(vector, top_k, where), 10_000)
    looked_up = look_up(db, corpus, "x", filters, vectors)
    return (
        Retriever(db).rank_legs(looked_up, Depths(vectors=max(SEMANTIC_DEPTH, 3 * count))).semantic
    )


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_full_text_finds_the_same_messages(
    db: psycopg.Connection, stored: Corpus, question: str, filters: dict[str, Any]
) -> None:
    expected = by_words(db, stored, question, filters)
    arguments = given_to_sql(filters)
    rows = call(db, "search_fulltext", query_text=question, match_count=100, **arguments)
    # ranked by the index of words in Python, and by ts_rank's estimates in SQL
    assert len(rows) < 100
    assert {row["message_id"] for row in rows} == {c.message_id for c in expected}


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("question", QUESTIONS[:4])
def test_semantic_finds_the_same_hits_and_scores(
    db: psycopg.Connection,
    stored: Corpus,
    index: VectorIndex,
    encoder: LocalEncoder,
    question: str,
    filters: dict[str, Any],
) -> None:
    vector = encoder.encode_query(question)
    expected = by_meaning(db, stored, index, vector, filters, 30)[:30]
    rows = call(
        db,
        "search_semantic",
        query_embedding=vector_text(vector),
        match_count=30,
        **given_to_sql(filters),
    )
    assert expected
    assert [row["message_id"] for row in rows] == [c.message_id for c in expected]
    assert [row["chunk_key"] for row in rows] == [next(iter(c.chunks)) for c in expected]
    assert [row["similarity"] for row in rows] == pytest.approx(
        [c.score for c in expected], abs=2e-6
    )


def fuse_scores(
    lexical: list[Candidate], near: list[Candidate], weights: tuple[float, float, float], c: float
) -> list[tuple[str, float]]:
    """Return ids and scores as docs/sql.md states them; c is the share of the query covered."""
    words, meaning, threads = (
        weights[0] * (0.5 + 0.45 * c),
        weights[1] * (0.5 - 0.45 * c),
        weights[2],
    )
    threads *= 1 - c
    own: dict[str, float] = {}
    evidence: dict[str, float] = {}
    thread = {one.message_id: one.thread_key for one in (*lexical, *near)}
    for weight, leg in ((words, lexical), (meaning, near)):
        best: dict[str, float] = {}
        for one in leg:
            score = weight * max(one.score, 0.0)
            own[one.message_id] = own.get(one.message_id, 0.0) + score
            best[one.thread_key] = max(best.get(one.thread_key, 0.0), score)
        for key, score in best.items():
            evidence[key] = evidence.get(key, 0.0) + score
    most = (words + meaning) * (1 + threads)
    scores = {
        one: round((score + threads * evidence[thread[one]]) / most, 6)
        for one, score in own.items()
    }
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


@pytest.mark.parametrize("question", [q for q in QUESTIONS if '"' not in q and " -" not in q])
@pytest.mark.parametrize("weights", [(1, 1, 3), (0.3, 2.5, 10), (0, 1, 0)])
def test_hybrid_fuses_both_legs_and_the_thread(
    db: psycopg.Connection,
    stored: Corpus,
    index: VectorIndex,
    encoder: LocalEncoder,
    question: str,
    weights: tuple[float, float, float],
) -> None:
    vector = encoder.encode_query(question)
    filters = FILTERS[2]
    here = MessageCopy(ListMonth("harbor-dev", "2024-03"), 0)
    words_rows = call(
        db, "search_fulltext", query_text=question, match_count=100, **given_to_sql(filters)
    )
    lexical = [
        Candidate(row["message_id"], here, row["thread_id"], row["score"]) for row in words_rows
    ]
    near = by_meaning(db, stored, index, vector, filters, 20)
    rows = call(
        db,
        "search_hybrid",
        query_text=question,
        query_embedding=vector_text(vector),
        match_count=20,
        full_text_weight=weights[0],
        semantic_weight=weights[1],
        thread_weight=weights[2],
        **given_to_sql(filters),
    )
    covered = "select covered from fulltext_messages(%s, %s, %s, null) where rank = 1"
    given = given_to_sql(filters)
    parameters = [question, given["in_lists"], given["sent_after"]]
    [share] = db.execute(covered.encode(), parameters).fetchone() or (0.0,)
    expected = dict(fuse_scores(lexical, near, weights, share))
    assert len(rows) == min(20, len(expected))
    assert [row["score"] for row in rows] == pytest.approx(
        sorted(expected.values(), reverse=True)[: len(rows)], abs=3e-6
    )
    for row in rows:
        assert row["score"] == pytest.approx(expected[row["message_id"]], abs=3e-6)
        assert 0 <= row["score"] <= 1
        for leg, rank in ((lexical, row["full_text_rank"]), (near, row["semantic_rank"])):
            assert rank is None or leg[rank - 1].message_id == row["message_id"]
        assert (row["chunk"] is None) == (row["semantic_rank"] is None)


def test_quotes_and_minus_hold_for_both_legs(db: psycopg.Connection, encoder: LocalEncoder) -> None:
    vector = vector_text(encoder.encode_query("lease"))
    for query, unwanted in (("lease -worker", "worker"), ('lease -"hot table"', "hot <-> table")):
        rows = call(db, "search_hybrid", query_text=query, query_embedding=vector, match_count=50)
        ids = [row["message_id"] for row in rows]
        assert any(row["semantic_rank"] and not row["full_text_rank"] for row in rows)
        having = (
            "select count(*) from messages where message_id = any(%s) and search @@ %s::tsquery"
        )
        assert db.execute(having.encode(), [ids, unwanted]).fetchone() == (0,)


@pytest.mark.parametrize("lists", [{}, {"in_lists": ["harbor-dev"]}], ids=["all", "english"])
@pytest.mark.parametrize(
    ("query", "unwanted"),
    [("why the -worker", "worker"), ("lease -the", "zzz"), ("lease -the -worker", "worker")],
)
def test_other_languages_are_found_by_meaning(
    db: psycopg.Connection,
    encoder: LocalEncoder,
    query: str,
    unwanted: str,
    lists: dict[str, list[str]],
) -> None:
    vector = vector_text(encoder.encode_query("lease"))
    arguments = {"query_text": query, "query_embedding": vector, "match_count": 50, **lists}
    rows = [
        row
        for row in call(db, "search_hybrid", **arguments)
        if "harbor-dev" in row["lists"] and row["semantic_rank"]
    ]
    having = "select message_id from messages where search @@ %s::tsquery and list = 'harbor-dev'"
    excluded = {one for (one,) in db.execute(having.encode(), [unwanted]).fetchall()}
    assert rows
    assert excluded.isdisjoint(row["message_id"] for row in rows)


def test_messages_hold_every_chunk_over_the_threshold(
    db: psycopg.Connection, stored: Corpus, index: VectorIndex, encoder: LocalEncoder
) -> None:
    vector = encoder.encode_query("el barco cruza la bahía")
    found = by_meaning(db, stored, index, vector, {})
    scores = {c.message_id: [round(1 - d, 6) for d in c.chunks.values()] for c in found}
    threshold = sorted(scores["long@example.es"])[1] - 1e-5  # all but its farthest
    rows = call(
        db,
        "search_messages_with_chunks",
        query_embedding=vector_text(vector),
        match_threshold=threshold,
    )
    over = {one: [s for s in near if s >= threshold] for one, near in scores.items()}
    over = {one: near for one, near in over.items() if near}
    assert len(over["long@example.es"]) == len(scores["long@example.es"]) - 1 >= 2
    assert [row["message_id"] for row in rows] == [*over][:10]
    for row in rows:
        expected = over[row["message_id"]]
        assert row["max_similarity"] == pytest.approx(max(expected), abs=2e-6)
        assert row["average_similarity"] == pytest.approx(sum(expected) / len(expected), abs=2e-6)
        assert [c["similarity"] for c in row["chunks"]] == pytest.approx(expected, abs=2e-6)
        for chunk in row["chunks"]:
            text = "select text, index from chunks where key = %s"
            assert db.execute(text, [chunk["key"]]).fetchone() == (chunk["text"], chunk["index"])


def test_chunks_are_those_of_the_copy_that_is_nearest(
    db: psycopg.Connection, stored: Corpus, index: VectorIndex, encoder: LocalEncoder
) -> None:
    """Two contents stand under one id, each with a chunk of its own."""
    vector = encoder.encode_query("un texto distinto sobre tortugas")
    [expected] = [
        c
        for c in by_meaning(db, stored, index, vector, {}, 33)
        if c.message_id == "twice@example.es"
    ]
    rows = call(
        db,
        "search_messages_with_chunks",
        query_embedding=vector_text(vector),
        match_threshold=-1,
        match_count=33,
    )
    [row] = [row for row in rows if row["message_id"] == "twice@example.es"]
    assert [chunk["key"] for chunk in row["chunks"]] == [*expected.chunks]
    assert expected.copy.variant == 1
    assert row["subject"] == "Segunda"


def test_threshold_leaves_out_farther_text(db: psycopg.Connection, encoder: LocalEncoder) -> None:
    vector = vector_text(encoder.encode_query(QUESTIONS[0]))
    every = call(db, "search_semantic", query_embedding=vector, match_count=50)
    middle = every[25]["similarity"]
    over = call(
        db, "search_semantic", query_embedding=vector, match_count=50, match_threshold=middle
    )
    assert over == every[:26]


PIECES = st.sampled_from(
    [*"abxX09_./:$+-<>@ \n\"'", " ", "pg_", "::", "src/", ".c", "40P01", "00000", "deadbee1",
     " -", " or ", "é", "ñandú", "https://", "e.g.", "\\", "*", "(", "%"]
)  # fmt: skip


LETTERS = st.sampled_from(
    [*("数据库", "백업", "ฐ้", "हिन्दी", "ёлка", "ﾊﾞｯ", "Ｐ９＿", "e\u0301", "\u00ad", "\x1b[31m"),
     *(" jo@a.example ", "9.6.1", "9.6.1a", "a+b.", "v8.3beta2", "-x", "--", "a/b", "~/.x"),
     "get_X", "٩٫٦", "४2", "C++", "g++17 ", "C#", " .Net", ".NET", "می\u200cخواهم"]
)  # fmt: skip


@hypothesis(max_examples=200, deadline=None)
@given(st.lists(PIECES | LETTERS, min_size=1, max_size=25).map("".join))
def test_words_and_names_are_the_same_in_sql(db: psycopg.Connection, query: str) -> None:
    query = query.replace("\0", "").encode("utf-8", "ignore").decode()
    clean = clean_text(query)
    assert db.execute("select clean_text(%s)", [query]).fetchone() == (clean,)
    words = db.execute("select word, in_address from cut_words(%s) order by place", [clean])
    assert words.fetchall() == [(word.text, word.in_address) for word in find_words(clean)]
    if not clean.isascii():  # letters of names are those of each server's locale
        return
    names = db.execute(
        "select distinct whole, is_prose, is_signed from query_names(%s)", [clean]
    ).fetchall()
    assert {*names} == {(name.whole, name.is_prose, name.is_signed) for name in find_names(clean)}
