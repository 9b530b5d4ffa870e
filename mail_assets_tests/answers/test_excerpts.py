"""Excerpts fit the budget, best first, and have each text of the body once."""

from collections.abc import Sequence

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.answers.chat import build_prompt
from mail_assets.answers.excerpts import (
    GAP,
    BudgetError,
    ChunkText,
    find_excerpts,
    join_chunks,
    neighbour_keys,
    select_excerpts,
)
from mail_assets.encoding.open import open_tokenizer
from mail_assets.search.response import ChunkHit, Hit, HitExplanation
from mail_assets_tests.sample_corpus import QUERY, Search

BODY = "".join(f"Line number {n:03} of the body.\n" for n in range(60))
LINE = len(BODY) // 60


def piece(first: int, last: int, tokens: int = 80) -> ChunkText:
    """A chunk of whole lines, without the last line's end."""
    return ChunkText(BODY, ((first * LINE, last * LINE - 1),), tokens)


def hit(name: str, *indexes: int) -> Hit:
    chunks = tuple(ChunkHit(f"{name}#{i}", i, "", (), 1.0, None, ()) for i in indexes)
    why = HitExplanation({}, (), None, 0.0)
    return Hit(
        f"{name}@x",
        ("dev",),
        "2024-03",
        "s",
        "Ann",
        "a@x",
        "2024-03-01",
        1.0,
        None,
        chunks,
        why,
        (),
    )


def chosen(hits: Sequence[Hit], pieces: dict[str, ChunkText], budget: int) -> list[tuple[str, int]]:
    """Return the messages, and the number of lines of each excerpt."""
    return [
        (e.hit.message_id, e.text.count("\n") + 1) for e in select_excerpts(hits, pieces, budget)
    ]


def test_best_chunks_come_first_and_neighbours_last() -> None:
    hits = [hit("a", 4, 8), hit("b", 2)]
    pieces = {f"{name}#{i}": piece(4 * i, 4 * i + 4) for name in "ab" for i in range(10)}
    cost = piece(0, 4).cost
    growth = [chosen(hits, pieces, cost * n) for n in range(1, 11)]
    assert growth[0] == [("a@x", 4)]
    assert growth[1] == [("a@x", 4), ("b@x", 4)]
    assert growth[2] == [("a@x", 4), ("a@x", 4), ("b@x", 4)]
    assert growth[3] == [("a@x", 8), ("a@x", 4), ("b@x", 4)]  # chunk 3 joins chunk 4
    assert growth[8] == growth[9] == [("a@x", 12), ("a@x", 12), ("b@x", 12)]


def test_smaller_chunk_is_taken_if_a_larger_does_not_fit() -> None:
    pieces = {"a#0": piece(0, 4), "b#0": piece(0, 4, tokens=5000), "c#0": piece(0, 4)}
    assert chosen([hit("a", 0), hit("b", 0), hit("c", 0)], pieces, 1000) == [("a@x", 4), ("c@x", 4)]


def test_excerpts_of_a_message_are_in_body_order() -> None:
    pieces = {f"a#{i}": piece(4 * i, 4 * i + 4) for i in (0, 5, 9)} | {"b#0": piece(0, 4)}
    found = select_excerpts([hit("a", 9, 0, 5), hit("b", 0)], pieces, 10_000)
    assert [e.number for e in found] == [1, 2, 3, 4]
    assert [e.hit.message_id for e in found] == ["a@x"] * 3 + ["b@x"]
    assert [e.spans[0][0] for e in found[:3]] == [0, 20 * LINE, 36 * LINE]


def test_neighbour_keys_are_before_and_after() -> None:
    assert neighbour_keys("0af#7") == ("0af#6", "0af#8")
    assert neighbour_keys("0af#0") == ("0af#-1", "0af#1")


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([piece(0, 4), piece(4, 8)], [(0, 8)]),  # only a line end between them
        ([piece(0, 4), piece(3, 8)], [(0, 8)]),  # they overlap
        ([piece(0, 9), piece(3, 5)], [(0, 9)]),  # one holds the other
        ([piece(0, 4), piece(5, 8)], [(0, 4), (5, 8)]),
    ],
)
def test_joined_chunks_share_text_once_and_mark_gaps(
    pieces: list[ChunkText], lines: list[tuple[int, int]]
) -> None:
    spans, text = join_chunks(pieces)
    assert spans == tuple((a * LINE, b * LINE - 1) for a, b in lines)
    assert text == GAP.join(BODY[a * LINE : b * LINE - 1] for a, b in lines)


@settings(max_examples=100)
@given(
    st.dictionaries(
        st.sampled_from([f"{name}#{i}" for name in "abc" for i in range(6)]), st.integers(1, 400)
    ),
    st.integers(0, 3000),
)
def test_excerpts_fit_the_budget_and_match_the_body(tokens: dict[str, int], budget: int) -> None:
    pieces = {key: piece(int(key[2]) * 4, int(key[2]) * 4 + 5, n) for key, n in tokens.items()}
    hits = [hit("a", 3, 1), hit("b", 0), hit("c", 5, 2)]
    excerpts = select_excerpts(hits, pieces, budget)
    assert [e.number for e in excerpts] == [*range(1, len(excerpts) + 1)]
    used = 0
    for excerpt in excerpts:
        name = excerpt.hit.message_id[0]
        assert excerpt.text == GAP.join(BODY[a:b] for a, b in excerpt.spans)
        inside = [
            p
            for key, p in pieces.items()
            if key[0] == name
            and any(a <= p.spans[0][0] and p.spans[0][1] <= b for a, b in excerpt.spans)
        ]
        assert inside
        used += min(p.cost for p in inside)
    assert used <= budget


def test_excerpts_of_real_hits_match_their_bodies(
    search: Search, connection: psycopg.Connection
) -> None:
    hits = search(QUERY, limit=12).hits
    excerpts = find_excerpts(connection, hits, 6000)
    assert len(excerpts) >= 5
    order = [hit.message_id for hit in hits]
    places = [order.index(excerpt.hit.message_id) for excerpt in excerpts]
    assert places == sorted(places)
    for excerpt in excerpts:
        rows = connection.execute(
            "select body_text from messages where message_id = %s", [excerpt.hit.message_id]
        ).fetchall()
        cut = GAP.join
        assert excerpt.text in {
            cut(body[a:b].strip("\n") for a, b in excerpt.spans) for (body,) in rows
        }


@pytest.mark.parametrize("budget", [1000, 2000, 6000])
def test_prompt_fits_the_budget(
    search: Search, connection: psycopg.Connection, budget: int
) -> None:
    excerpts = find_excerpts(connection, search(QUERY, limit=50).hits, budget)
    rules = len(open_tokenizer("all-minilm-l6-v2").encode(build_prompt("q", [])[1].content).ids)
    sent = len(
        open_tokenizer("all-minilm-l6-v2").encode(build_prompt("q", excerpts)[1].content).ids
    )
    assert budget / 2 < sent - rules <= budget


def test_too_small_budget_is_refused(search: Search, connection: psycopg.Connection) -> None:
    with pytest.raises(
        BudgetError, match=r"MAIL_CHAT_BUDGET='10': an excerpt needs at least \d+ tokens"
    ):
        find_excerpts(connection, search(QUERY).hits, 10)


def test_hits_without_text_have_no_excerpts(search: Search, connection: psycopg.Connection) -> None:
    assert find_excerpts(connection, [], 6000) == []
    hits = search("ornitorrinco", mode="fulltext").hits
    assert [hit.message_id for hit in hits] == ["quoted@example.es"]
    assert find_excerpts(connection, hits, 6000) == []
