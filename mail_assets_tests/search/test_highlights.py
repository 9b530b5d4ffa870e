"""Highlights are the words of the query, and cut the body where they stand."""

import re
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.search.highlights import Highlighter, to_body_spans
from mail_assets.search.response import ChunkHit
from mail_assets.search.terms import Term


def test_highlights_are_words_by_their_stem_and_names_as_written() -> None:
    terms = [Term("leas", 5, 2.0), Term("harbor_lease", 1, 3.0), Term("gone", 0, 9.0)]
    marker = Highlighter({"leases": "leas", "lease": "leas"}, ["harbor_lease"], terms)
    text = "Leases: HARBOR_lease(1), release, lease2, lease."
    marks = marker.find(text)
    assert [text[s:e] for s, e in marks.spans] == ["Leases", "HARBOR_lease", "lease"]
    assert (marks.weight, marks.lexemes) == (5.0, ["leas", "harbor_lease", "leas"])
    assert Highlighter({}, [], terms).find(text) == ([], 0.0, [])


@given(
    st.text("abAB_-. İΣéxy", max_size=60),
    st.sets(st.text("abéxy", min_size=1, max_size=5), max_size=4),
)
def test_the_words_of_a_text_are_those_that_a_pattern_of_any_word_finds(
    text: str, wanted: set[str]
) -> None:
    expected = [
        match.span()
        for match in re.finditer(r"[^\W_]+", text)
        if "".join(low if len(low := one.lower()) == 1 else one for one in match[0]) in wanted
    ]
    assert Highlighter({word: word for word in wanted}, [], []).find(text).spans == expected


@pytest.mark.parametrize("words", [*permutations(("large", "small", "minus"))])
def test_the_weight_of_a_text_does_not_depend_on_the_order_of_its_words(
    words: tuple[str, str, str],
) -> None:
    # summed one after the other, the small one is lost in half of the orders
    weights = dict(zip(words, (1e16, 1.0, -1e16), strict=True))
    terms = [Term(word, 1, weight) for word, weight in weights.items()]
    highlighter = Highlighter({word: word for word in words}, [], terms)
    assert highlighter.find(" ".join(words)).weight == 1.0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=5), st.data())
def test_a_span_of_a_chunk_is_the_same_characters_in_the_body(
    pieces: list[tuple[int, int]], data: st.DataObject
) -> None:
    body = "".join(chr(0x4E00 + i) for i in range(100))
    spans, at = [], 0
    for gap, length in pieces:
        spans.append((at + gap, at + gap + length))
        at += gap + length
    text = "".join(body[s:e] for s, e in spans)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    cut = to_body_spans([(start, end)], spans)
    assert "".join(body[s:e] for s, e in cut) == text[start:end]
    chunk = ChunkHit("k", 0, text, tuple(spans), 1.0, None, cut)
    assert "".join(piece for piece, _ in chunk.pieces()) == text
    assert "".join(piece for piece, marked in chunk.pieces() if marked) == text[start:end]
