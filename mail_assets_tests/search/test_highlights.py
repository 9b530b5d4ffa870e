"""Highlights are the words of a query in texts; their weights measure a text."""

from itertools import permutations

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.month import ListMonth
from mail_assets.search.highlights import (
    Highlighter,
    StoredChunk,
    WordReader,
    select_chunks,
    to_body_spans,
)
from mail_assets.search.language.request import Mode, Request, RequestError
from mail_assets.search.language.syntax import parse_request
from mail_assets.search.matches import Candidate, MessageCopy
from mail_assets.search.query import WeighedTerm
from mail_assets.search.response import SHORTEST, ChunkHit, cut_snippet
from mail_assets.search.searcher import Searcher
from mail_assets.text.words import find_words
from mail_assets_tests.search.fixed_indexes import read_query


def test_highlights_are_stems_and_names_as_written() -> None:
    terms = [
        WeighedTerm("leas", 5, 2.0),
        WeighedTerm("harbor_lease", 1, 3.0),
        WeighedTerm("gone", 0, 9.0),
    ]
    marker = Highlighter({"leases": "leas", "lease": "leas"}, ["harbor_lease"], terms)
    text = "Leases: HARBOR_lease(1), release, lease2, lease."
    marks = marker.find(text)
    assert [text[s:e] for s, e in marks.spans] == ["Leases", "HARBOR_lease", "lease2", "lease"]
    assert (marks.weight, marks.lexemes) == (5.0, [{"leas"}, {"harbor_lease"}, {"leas"}, {"leas"}])
    assert Highlighter({}, [], terms).find(text) == ([], 0.0, [])


@given(
    st.text("abAB_-. İΣéx数据库ฐ้ก\u0301\u00ad", max_size=40),
    st.sets(st.text("abéx数据库ฐ้ก", min_size=1, max_size=3), max_size=4),
)
def test_highlights_are_words_of_the_text(text: str, wanted: set[str]) -> None:
    stems = {word.text: word.text for asked in wanted for word in find_words(asked)}
    marked = {
        at for start, end in Highlighter(stems, [], []).find(text).spans for at in range(start, end)
    }
    words = [word for word in find_words(text) if {word.text, *word.forms} & {*stems}]
    assert marked == {at for word in words for at in range(word.start, word.end)}


@pytest.mark.parametrize(("language", "query", "text", "marked"), [
    ("german", "Größe", "Die Größen, GROSSE", ["Größen", "GROSSE"]),
    ("german", "äpfel", "Ein Apfel, viele Äpfel", ["Apfel", "Äpfel"]),
    ("turkish", "istanbul", "İstanbul'da ISTANBUL", ["İstanbul", "ISTANBUL"]),
    ("turkish", "İSTANBUL", "istanbul", ["istanbul"]),
    ("greek", "μνήμης", "η μνήμη της ΜΝΗΜΗΣ", ["μνήμη", "ΜΝΗΜΗΣ"]),
    ("arabic", "البيانات", "قاعدة البيانات", ["البيانات"]),
    ("hindi", "डेटाबेस", "यह डेटाबेस है।", ["डेटाबेस"]),
    ("simple", "café", "Le café, cafe\u0301, cafés", ["café", "cafe\u0301"]),
    ("english", "bjorn", "Björn and Bjo\u0308rn's", ["Björn", "Bjo\u0308rn"]),
    ("english", "userName", "getUserName", ["getUserName"]),
    ("english", "users", "getUserName", ["getUserName"]),
    (
        "english",
        "databases",
        "data\u200bbase \x1b[1mdatabase\x1b[0m",
        ["data\u200bbase", "database"],
    ),
    ("english", "leases of pg_class", "Leased: PG_CLASS, class", ["Leased", "PG_CLASS", "class"]),
])  # fmt: skip
def test_word_is_marked_by_a_stem_of_other_letters(
    connection: psycopg.Connection, language: str, query: str, text: str, marked: list[str]
) -> None:
    asked = read_query(connection, parse_request(Request(query)), {"one": language}, ["one"])
    highlighter = WordReader(connection).build_highlighter(asked, (), [text])
    assert [text[start:end] for start, end in highlighter.find(text).spans] == marked


@pytest.mark.parametrize("words", [*permutations(("large", "small", "minus"))])
def test_weight_does_not_depend_on_the_order_of_words(words: tuple[str, str, str]) -> None:
    # a simple sum would lose the small weight in half of the orders
    weights = dict(zip(words, (1e16, 1.0, -1e16), strict=True))
    terms = [WeighedTerm(word, 1, weight) for word, weight in weights.items()]
    highlighter = Highlighter({word: word for word in words}, [], terms)
    assert highlighter.find(" ".join(words)).weight == 1.0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=5), st.data())
def test_span_of_a_chunk_has_the_same_text_in_the_body(
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


REQUEST = Request("when do leases expire", lists=("harbor-dev",))
TEXTS = ["The lease had expired.", "A lease is renewed.", "Bread is baked at night.", ""]


def test_text_has_the_weight_of_words_in_any_form(searcher: Searcher) -> None:
    both, one, none, empty = searcher.weigh_texts(REQUEST, TEXTS)
    assert both == 1.0 > one > none == empty == 0.0


def test_texts_are_compared_by_meaning_with_a_model(searcher: Searcher) -> None:
    both, one, none, _ = searcher.compare_texts(REQUEST, TEXTS)
    assert min(both, one) > none
    assert searcher.compare_texts(REQUEST, []) == []
    words = Request("when do leases expire", mode=Mode.fulltext)
    assert searcher.compare_texts(words, TEXTS) == [0.0] * len(TEXTS)


def test_query_without_words_weighs_nothing(searcher: Searcher) -> None:
    assert searcher.weigh_texts(Request("has:patch"), TEXTS) == [0.0] * len(TEXTS)


def test_wrong_filter_is_an_error(searcher: Searcher) -> None:
    with pytest.raises(RequestError):
        searcher.weigh_texts(Request("lease", lists=("nowhere",)), TEXTS)


FOUND = Candidate("key", MessageCopy(ListMonth("dev", "2024-03"), 0), None, 1.0)


@pytest.mark.parametrize(
    ("words", "focus"),
    [
        # the snippet is where the rarest and the most words are, not where the first word is
        ({5: "common", 900: "rare"}, 900),
        ({5: "common", 20: "usual", 900: "rare"}, 900),
        ({5: "common", 500: "usual", 600: "common"}, 500),
        ({5: "common", 50: "common", 500: "common", 600: "usual"}, 500),
        ({5: "other", 500: "another", 650: "other"}, 500),  # words without statistics: two of them
        ({5: "rare", 900: "rare"}, 5),
        # words beyond the length of the snippet do not count
        ({5: "usual", 300: "rare", 500: "usual", 590: "rare"}, 500),
        ({}, 0),
    ],
)
def test_chunk_is_shown_where_it_has_most_of_the_query(words: dict[int, str], focus: int) -> None:
    letters = ["."] * 1000
    for at, word in words.items():
        letters[at - 1 : at + len(word) + 1] = f" {word} "
    text = "".join(letters)
    terms = [
        WeighedTerm("rare", 1, 9.0),
        WeighedTerm("usual", 50, 2.0),
        WeighedTerm("common", 99, 1.0),
    ]
    highlighter = Highlighter({word: word for word in words.values()}, [], terms)
    stored = StoredChunk("key#0", 0, text, ((0, len(text)),))
    [shown] = select_chunks(FOUND, [stored], highlighter)
    assert shown.focus == focus
    said = "".join(text for text, marked in cut_snippet(shown, SHORTEST) if marked)
    assert said.startswith(words.get(focus, ""))
