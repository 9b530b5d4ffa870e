"""A snippet shows the first highlight, loses nothing between its ends, and is safe as Markdown."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.search.response import ChunkHit, Span
from mail_assets.search.snippets import cut_snippet, escape_markdown, render_snippet_markdown


def chunk(text: str, *highlights: Span, spans: tuple[Span, ...] = ()) -> ChunkHit:
    return ChunkHit("key#0", 0, text, spans or ((0, len(text)),), 1.0, None, highlights)


def test_a_highlight_behind_the_first_span_is_reached() -> None:
    text = "a" * 300 + "b" * 200 + "word and what follows"
    far = chunk(text, (1500, 1504), spans=((0, 300), (1300, 1521)))
    assert ("word", True) in [*cut_snippet(far, 90)]


def test_a_chunk_without_highlights_is_shown_from_its_beginning() -> None:
    assert [*cut_snippet(chunk("one two three four"), 7)] == [("one two", False), ("...", False)]


@st.composite
def chunks(draw: st.DrawFn) -> ChunkHit:
    text = draw(st.text("ab \n*_<", min_size=1, max_size=80))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return chunk(text, *pairs)


@settings(max_examples=200)
@given(chunks(), st.integers(3, 100))
def test_a_snippet_is_a_part_of_the_text_around_the_first_highlight(
    one: ChunkHit, size: int
) -> None:
    pieces = [*cut_snippet(one, size)]
    shown = "".join(text for text, _ in pieces)
    squeezed = re.sub(r"\s+", " ", one.text)
    assert re.sub(" +", " ", shown.strip(".")).strip() in squeezed
    assert any(marked for _, marked in pieces) == bool(one.highlights)


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
