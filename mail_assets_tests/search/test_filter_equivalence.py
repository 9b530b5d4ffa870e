"""Random trees of fields find the same as a scan, in PostgreSQL and in all indexes."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import psycopg
import pytest

from mail_assets.encoding.local_encoder import LocalEncoder, open_local_encoder
from mail_assets.month import month_number
from mail_assets.postgres.programs import vector_cpu_ok
from mail_assets.postgres.statements import statement
from mail_assets.search import filters as module
from mail_assets.search.field_conditions import VECTOR_FIELDS
from mail_assets.search.filters import compile_filters
from mail_assets.search.language.fields import OPTIONS, VALUE_FORMS
from mail_assets.search.language.request import EmptyPeriodError, Request, RequestError
from mail_assets.search.language.syntax import parse_request
from mail_assets.search.open import open_index
from mail_assets.search.response import Hit
from mail_assets.search.searcher import Searcher
from mail_assets.tables.lists import EVERY_LIST, show_lists
from mail_assets.vectors.filters import matches_filter
from mail_assets.vectors.index import VectorIndex
from mail_assets.vectors.open import open_bucket
from mail_assets.words.index import WordIndex
from mail_assets_tests.sample_corpus import Corpus
from mail_assets_tests.search.field_trees import Row, flags, make_fields, make_tree, read_rows
from mail_assets_tests.search.fixed_indexes import FixedVectors, asking, read_query

QUERIES = 300
#: Searchers for each backend and bound.
SEARCHES = 50
QUERY = "harbor lease queue upgrade"
LEXEMES = "harbor | leas | queue | queu | upgrad"


@pytest.fixture(scope="module")
def encoder(corpus: Corpus) -> LocalEncoder:
    settings = corpus.settings
    return open_local_encoder(settings.encoder, settings.precision, settings.model_cache)


@pytest.fixture(scope="module")
def lance(corpus: Corpus) -> VectorIndex:
    s = corpus.settings
    return open_index(s.database, s.vectors, s.encoder, s.precision)


@pytest.fixture(scope="module")
def pgvector(corpus: Corpus, lance: VectorIndex) -> Iterator[VectorIndex]:
    if not vector_cpu_ok():
        pytest.skip("the embedded server's pgvector does not run on this processor")
    index = open_bucket("pgvector:", dsn=corpus.settings.pg_dsn).index(lance.spec)
    index.ensure()
    index.put(lance.get([*lance.keys()], data=True).values())
    yield index
    index.drop()


@pytest.fixture(scope="module")
def rows(connection: psycopg.Connection) -> list[Row]:
    return read_rows(connection)


def vector_metadata(row: Row) -> dict[str, Any]:
    kept = VECTOR_FIELDS.texts
    return {
        "list": row["list"],
        "month": month_number(row["month"]),
        "sent_at": int(row["sent_at"].timestamp()),
        "sender": row["sender"][: kept["sender"]],
        "message_id": row["id"][: kept["message_id"]],
        "kind": "patch" if "patch" in flags(row) else "text",
    }


#: Aliases of `kind:`, and fields of patches and commits, which the sample mail lacks.
APART = {"has", "is", "version", "commit"}


def test_every_field_is_in_the_trees(rows: list[Row]) -> None:
    there = {field.partition(":")[0] for field, _ in make_fields(rows, random.Random(1))}
    missing = {*VALUE_FORMS} - {*OPTIONS} - APART - there
    assert missing == set(), "write their meaning into make_fields of field_trees.py"


def test_any_tree_of_fields_finds_what_a_scan_finds(
    connection: psycopg.Connection, corpus: Corpus, rows: list[Row]
) -> None:
    chance, matched = random.Random("trees"), 0
    languages = corpus.settings.languages
    show_lists(connection, EVERY_LIST)  # a searcher of another test may have shown fewer
    for _ in range(QUERIES):
        query, means = make_tree(rows, chance)
        expected = {row["id"] for row in rows if means(row)}
        try:
            parsed = parse_request(Request(query))
        except RequestError:  # a period without a day
            assert expected == set(), query
            continue
        filters = compile_filters(connection, parsed.clauses, languages)
        if filters is None:
            assert expected == set(), query
            continue
        required = filters.require_words(read_query(connection, parsed, languages, filters.lists))
        ((found, _, _),) = connection.execute(
            required.find_by_index().statement("passing"),
            {**required.parameters, "most": 10_000, "spread": 1, "least": 1, "many": 1_000_000},
        ).fetchall()
        assert {*found} == expected, query
        matched += bool(expected)
        for row in rows:
            word_metadata = {**vector_metadata(row), "sender": row["sender"], "flags": flags(row)}
            for (where, complete), metadata in (
                (required.vector_filter(100), vector_metadata(row)),
                (required.word_filter, word_metadata),
            ):
                passes = where is None or matches_filter(where, metadata)
                assert passes or not means(row), (query, where)
                assert not complete or passes == means(row), (query, where)
    assert matched > QUERIES // 2


def test_conditions_are_in_the_statement_as_values(connection: psycopg.Connection) -> None:
    parsed = parse_request(Request('subject:"x\'; drop table messages; --" or to:%'))
    filters = compile_filters(connection, parsed.clauses, ["harbor-dev"])
    assert filters is not None
    assert "drop table" not in filters.statement("newest")
    assert "{passes}" in statement("search", "newest")


Scores = dict[tuple[str, str, str, int], float]


@pytest.fixture(scope="module")
def similarities(
    connection: psycopg.Connection, lance: VectorIndex, encoder: LocalEncoder
) -> Scores:
    """The similarity of each copy's nearest chunk to the query."""
    vector, stored = encoder.encode_query(QUERY), lance.get([*lance.keys()], data=True)
    best: Scores = {}
    for key, *copy in connection.execute(
        "select key, message_id, list, month, variant from chunks"
    ):
        score = float(np.asarray(stored[key].values) @ vector)
        best[*copy] = max(best.get((*copy,), -1.0), score)
    return best


def turn_pages(searcher: Searcher, asked: Request) -> list[Hit]:
    """Return the hits of all pages, up to the first that is short."""
    hits: list[Hit] = []
    while True:
        response = searcher.search(replace(asked, offset=len(hits)))
        hits += response.hits
        if response.short:
            return hits


def key(hit: Hit) -> tuple[str, str, str]:
    return hit.message_id, hit.month, hit.subject


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["lance", "pgvector"])
@pytest.mark.parametrize("values", [3, 50])
def test_search_with_fields_finds_what_a_scan_finds(
    request: pytest.FixtureRequest,
    connection: psycopg.Connection,
    corpus: Corpus,
    encoder: LocalEncoder,
    rows: list[Row],
    similarities: Scores,
    words: WordIndex,
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
    values: int,
) -> None:
    index: VectorIndex = request.getfixturevalue(backend)
    # few values in the filters of indexes, so that most conditions are checked afterwards
    monkeypatch.setattr(module, "MAX_WORD_CONSTRAINTS", values)
    vector = encoder.encode_query(QUERY)
    vectors = FixedVectors(
        lambda _, top_k, where: index.query(vector, top_k, where), 10_000, max_constraints=values
    )
    searcher = Searcher(connection, asking(words), vectors, corpus.settings.languages)
    having = connection.execute(
        "select message_id, list, month, variant from messages where search @@ %s::tsquery",
        [LEXEMES],
    )
    worded = {*having.fetchall()}
    # a filter removes messages, and does not change the word scores of the others
    whole = {
        key(hit): hit.score
        for name in corpus.settings.languages
        for month in ("2024-03", "2024-04")
        for hit in turn_pages(
            searcher,
            Request(f"month:{month} {QUERY}", "fulltext", 100, (name,), group="message"),
        )
    }
    chance, found = random.Random(f"{backend} {values}"), 0
    for _ in range(SEARCHES):
        fields, means = make_tree(rows, chance, depth=1, texts=0)
        passing = [
            (row["id"], row["list"], row["month"], row["variant"]) for row in rows if means(row)
        ]
        near: dict[str, float] = {}
        for copy in passing:
            if copy in similarities:
                near[copy[0]] = max(near.get(copy[0], -1.0), similarities[copy])
        by_mode = {
            "semantic": near.keys(),
            "fulltext": {copy[0] for copy in passing if copy in worded},
        }
        for mode, expected in by_mode.items():
            asked = Request(f"{QUERY} {fields}", mode=mode, limit=100, group="message")
            try:
                hits = turn_pages(searcher, asked)
            except EmptyPeriodError:
                hits = []
            ids = {one for hit in hits for one in (hit.message_id, *hit.copies)}
            assert ids == expected, asked
            scores = [hit.score for hit in hits]
            assert scores == sorted(scores, reverse=True), asked
            for hit in hits:
                score = near[hit.message_id] if mode == "semantic" else whole.get(key(hit))
                assert hit.score == pytest.approx(score, abs=2e-3), asked  # halfvec
            found += len(expected)
    assert found > 2 * SEARCHES
