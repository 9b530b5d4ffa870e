"""A hit shows highlights that cut the body, and says why it is one.

[test_snippets] A snippet shows where most of a query is, loses nothing inside, and is safe as Markdown.
"""

import random
import re

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.month import ListMonth
from mail_assets.search.candidates import Candidate, MessageCopy
from mail_assets.search.highlights import Highlighter
from mail_assets.search.hits import (
    SHORTEST,
    StoredChunk,
    cut_snippet,
    escape_markdown,
    mark_spans,
    render_snippet_markdown,
    select_chunks,
)
from mail_assets.search.language.request import MODES
from mail_assets.search.query import WeighedTerm
from mail_assets.search.response import ChunkHit, Span
from mail_assets_tests.sample_corpus import QUERY, ROOT, Search


@pytest.mark.slow
def test_every_highlight_cuts_text_that_stands_in_the_body(
    search: Search, connection: psycopg.Connection
) -> None:
    bodies = connection.execute(
        "select list, month, message_id, body_text from messages"
    ).fetchall()
    texts: dict[str, set[str]] = {}
    for *_, message_id, body in bodies:
        texts.setdefault(message_id, set()).add(body)
    words = sorted(
        {w for *_, body in bodies for w in body.split() if '"' not in w and ":" not in w}
    )
    chance = random.Random(6)
    checked = highlighted = 0
    while checked < 1_000:
        query, mode = " ".join(chance.sample(words, 3)), chance.choice(MODES)
        for found in search(query, mode=mode, limit=50, group="message").hits:
            checked += 1
            for chunk in found.chunks:
                cuts = [(s, e) for s, e in (*chunk.spans, *chunk.highlights)]
                assert any(
                    chunk.text == "".join(body[s:e] for s, e in chunk.spans)
                    and all(0 <= s < e <= len(body) for s, e in cuts)
                    for body in texts[found.message_id]
                )
                marked = [piece for piece, is_marked in chunk.pieces() if is_marked]
                highlighted += len(marked)
                assert all(piece in chunk.text for piece in marked)
    assert highlighted > checked


def test_a_hit_says_why_it_is_one(search: Search) -> None:
    response = search(QUERY, explain=True)
    by_both = [h for h in response.hits if {*h.why.ranks} == {"semantic", "fulltext"}]
    assert by_both
    assert all(h.why.words and h.why.distance is not None for h in by_both)
    assert response.explain is not None
    assert response.explain["mix"]["semantic"] + response.explain["mix"]["fulltext"] == 1
    assert [t["lexeme"] for t in response.explain["terms"]]
    assert search(QUERY).explain is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("query", "found_by"),
    [
        (f"<{ROOT}>", "id"),
        ("lease renew sort:date", "date"),
        ("list:harbor-dev", "date"),
        ('"ran out"', "legs"),
    ],
)
def test_a_hit_says_what_found_it(search: Search, mode: str, query: str, found_by: str) -> None:
    hits = search(query, mode=mode).hits
    assert {hit.why.found_by for hit in hits} == {found_by}
    assert {bool(hit.why.ranks) for hit in hits} == {found_by == "legs"}


def test_messages_of_a_thread_that_no_leg_found_say_so(search: Search) -> None:
    hits = search(QUERY, limit=100, group="message").hits
    assert {hit.why.found_by for hit in hits} == {"legs", "thread"}
    assert all(bool(hit.why.ranks) == (hit.why.found_by == "legs") for hit in hits)


def test_words_of_the_subject_are_reasons_too_and_each_is_named_once(search: Search) -> None:
    for hit in search("lease renewal Upgrade", mode="fulltext", limit=20).hits:
        titled = [hit.subject[start:end] for start, end in hit.subject_highlights]
        named = [word.lower() for word in hit.why.words]
        assert named
        assert len({*named}) == len(named)
        assert {word.lower() for word in titled} <= {*named}
        assert hit.subject_highlights or hit.chunks[0].highlights
    [hit] = search("subject:Nombres nombres", mode="fulltext").hits
    assert (hit.subject_highlights, hit.why.words) == (((0, 7),), ("Nombres",))


@pytest.mark.parametrize("mode", ["hybrid", "fulltext"])
def test_how_many_messages_have_a_word_is_said_where_it_is_known(search: Search, mode: str) -> None:
    explained = search("lease quuxblargh", mode=mode, explain=True).explain
    assert explained is not None
    english = {one["lexeme"]: one["messages"] for one in explained["terms"]}
    assert english["leas"] > 10
    assert english["quuxblargh"] is None


FOUND = Candidate("key", MessageCopy(ListMonth("dev", "2024-03"), 0), None, 1.0)


def chunk(text: str, *highlights: Span, spans: tuple[Span, ...] = (), focus: int = 0) -> ChunkHit:
    return ChunkHit("key#0", 0, text, spans or ((0, len(text)),), 1.0, None, highlights, focus)


def test_a_highlight_behind_the_first_span_is_reached() -> None:
    text = "a" * 300 + "b" * 200 + "word and what follows"
    far = chunk(text, (1500, 1504), spans=((0, 300), (1300, 1521)), focus=500)
    assert ("word", True) in [*cut_snippet(far, 90)]


def test_a_chunk_without_highlights_is_shown_from_its_beginning() -> None:
    assert [*cut_snippet(chunk("one two three four"), 7)] == [("one two", False), ("...", False)]


@st.composite
def chunks(draw: st.DrawFn) -> ChunkHit:
    text = draw(st.text("ab \n*_<", min_size=1, max_size=80))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    marked = [*pairs]
    return chunk(text, *marked, focus=draw(st.sampled_from([start for start, _ in marked] or [0])))


@settings(max_examples=200)
@given(chunks(), st.integers(3, 100))
def test_a_snippet_is_a_part_of_the_text_around_its_focus(one: ChunkHit, size: int) -> None:
    pieces = [*cut_snippet(one, size)]
    shown = "".join(text for text, _ in pieces)
    squeezed = re.sub(r"\s+", " ", one.text)
    assert re.sub(" +", " ", shown.strip(".")).strip() in squeezed
    assert any(marked for _, marked in pieces) == bool(one.highlights)


@pytest.mark.parametrize(
    ("words", "focus"),
    [
        # of the place where it begins, the rarest word and the most of them: not what comes first
        ({5: "common", 900: "rare"}, 900),
        ({5: "common", 20: "usual", 900: "rare"}, 900),
        ({5: "common", 500: "usual", 600: "common"}, 500),
        ({5: "common", 50: "common", 500: "common", 600: "usual"}, 500),
        ({5: "other", 500: "another", 650: "other"}, 500),  # of which nothing is known: two of them
        ({5: "rare", 900: "rare"}, 5),
        # what stands further than the snippet is long does not count
        ({5: "usual", 300: "rare", 500: "usual", 590: "rare"}, 500),
        ({}, 0),
    ],
)
def test_a_chunk_is_shown_where_it_has_most_of_the_query(words: dict[int, str], focus: int) -> None:
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


def test_a_snippet_begins_with_a_word() -> None:
    text = "aaaa bbbb cccc dddd word"
    assert [*cut_snippet(chunk(text, (20, 24), focus=20), 24)] == [
        ("...", False), ("dddd ", False), ("word", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![x](http://evil.example/p.png)", r"\!\[x\]\(http\:\/\/evil\.example\/p\.png\)"),
        ("<img src=x>", r"\<img src\=x\>"),
        ("a\n\n# b\n1. c", r"a \# b 1\. c"),
        ("&lt;", r"\&lt\;"),
        ("a | b", r"a \| b"),
    ],
)
def test_mail_brings_no_markdown(text: str, shown: str) -> None:
    assert escape_markdown(text) == shown


def test_highlights_are_bold() -> None:
    assert render_snippet_markdown(chunk("a *lease* b", (3, 8)), 50) == r"a \***lease**\* b"


@given(chunks())
def test_a_text_in_pieces_loses_nothing_and_marks_its_spans(one: ChunkHit) -> None:
    pieces = [*mark_spans(one.text, one.highlights)]
    assert "".join(text for text, _ in pieces) == one.text
    marked = [one.text[start:end] for start, end in one.highlights]
    assert [text for text, is_marked in pieces if is_marked] == marked
