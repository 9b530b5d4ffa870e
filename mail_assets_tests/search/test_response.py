"""Snippets show the text around most words of a query, without gaps, as safe Markdown."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.search.response import (
    ChunkHit,
    Span,
    cut_snippet,
    escape_markdown,
    mark_spans,
    render_snippet_markdown,
)


def chunk(text: str, *highlights: Span, spans: tuple[Span, ...] = (), focus: int = 0) -> ChunkHit:
    return ChunkHit("key#0", 0, text, spans or ((0, len(text)),), 1.0, None, highlights, focus)


def test_snippet_reaches_a_highlight_in_a_later_span() -> None:
    text = "a" * 300 + "b" * 200 + "word and what follows"
    far = chunk(text, (1500, 1504), spans=((0, 300), (1300, 1521)), focus=500)
    assert ("word", True) in [*cut_snippet(far, 90)]


def test_chunk_without_highlights_starts_at_its_beginning() -> None:
    assert [*cut_snippet(chunk("one two three four"), 7)] == [("one two", False), ("...", False)]


@st.composite
def chunks(draw: st.DrawFn) -> ChunkHit:
    text = draw(st.text("ab \n*_<", min_size=1, max_size=80))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    marked = [(a, b) for a, b in pairs if text[a:b] == text[a:b].strip()]
    return chunk(text, *marked, focus=draw(st.sampled_from([start for start, _ in marked] or [0])))


@settings(max_examples=200)
@given(chunks(), st.integers(3, 100))
def test_snippet_is_a_part_of_the_text_around_its_focus(one: ChunkHit, size: int) -> None:
    pieces = [*cut_snippet(one, size)]
    shown = "".join(text for text, _ in pieces)
    squeezed = re.sub(r"\s+", " ", one.text)
    assert re.sub(" +", " ", shown.strip(".")).strip() in squeezed
    assert any(marked for _, marked in pieces) == bool(one.highlights)


def test_snippet_begins_with_a_word() -> None:
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
def test_markdown_of_mail_is_escaped(text: str, shown: str) -> None:
    assert escape_markdown(text) == shown


def test_highlights_are_bold() -> None:
    assert render_snippet_markdown(chunk("a *lease* b", (3, 8)), 50) == r"a \***lease**\* b"


@given(chunks())
def test_text_in_pieces_loses_nothing_and_marks_its_spans(one: ChunkHit) -> None:
    pieces = [*mark_spans(one.text, one.highlights)]
    assert "".join(text for text, _ in pieces) == one.text
    marked = [one.text[start:end] for start, end in one.highlights]
    assert [text for text, is_marked in pieces if is_marked] == marked
