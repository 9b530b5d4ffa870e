"""The index of words as a LanceDB table: written documents are found, exactly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mail_assets.words import lance_query as query_module
from mail_assets.words.index import Clause, Phrase, Prefix, Term, WordIndex, WordQuery
from mail_assets.words.lance import LanceWordIndex
from mail_assets.words.lance_query import (
    MAX_TERMS,
    MAX_TOKENS,
    lance_query,
    ranking_query,
    share_step,
)
from mail_assets_tests.vectors.interrupted import ERASED, fails_once
from mail_assets_tests.words.samples import STRANGE, document


def found(words: WordIndex, lexeme: str) -> list[str]:
    return [match.message_id for match in words.search(WordQuery((Term(lexeme),)), 50)]


def test_a_lexeme_finds_exactly_its_documents(words: WordIndex) -> None:
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
def test_a_share_multiplies_the_score_of_a_lexeme(words: WordIndex, share: float) -> None:
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
def test_the_newest_are_found_while_their_rows_move(
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


@pytest.mark.parametrize(
    ("shares", "step"),
    [
        ([1.0] * 100, 1.0),
        ([2.0, 2.0], 2.0),
        ([2.0, 1.0], 1.0),
        ([1.0, 0.25], 0.25),
        ([0.75, 0.5], 0.25),
        ([*[1.0] * 60, 2.0, 0.25, 0.25], 0.25),
        ([*[1.0] * 90, 2.0, 0.25, 0.25], 0.5),
        ([*[2.0] * 99, 0.25], 1.0),
    ],
)
def test_shares_are_exact_until_a_query_has_too_many_tokens(
    shares: list[float], step: float
) -> None:
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
