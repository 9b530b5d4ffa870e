"""Snippets: the part of a chunk that has most of the query, also as Markdown."""

import re
from collections.abc import Iterable, Iterator

from mail_assets.search.response import ChunkHit, Span

#: What may have a meaning in Markdown; a backslash takes it away (CommonMark 0.31, 2.4).
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
#: Characters of a word that are left out where a snippet would begin within it; text of some
#: languages has no blanks.
MAX_CUT = 20
#: Characters of the shortest snippet that is shown of a chunk: a longer one has what this has.
SHORTEST = 240
_BLANK = re.compile(r"\s+")


def find_start(text: str, focus: int, size: int) -> int:
    """Return where a snippet of a text begins: a third of it before its focus, at a word."""
    start = max(0, focus - size // 3)
    blank = _BLANK.search(text, start - 1, min(focus, start + MAX_CUT)) if start else None
    return blank.end() if blank else start


def cut_snippet(chunk: ChunkHit, size: int) -> Iterator[tuple[str, bool]]:
    """Yield about `size` characters of a chunk, starting shortly before its focus.

    In pieces, each with whether it is highlighted; white space becomes single spaces, and "..."
    marks where the chunk continues.
    """
    start = find_start(chunk.text, chunk.focus, size)
    if start:
        yield "...", False
    at = 0
    for text, marked in chunk.pieces():
        part = text[max(0, start - at) : max(0, start + size - at)]
        if part:
            yield re.sub(r"\s+", " ", part), marked
        at += len(text)
    if at > start + size:
        yield "...", False


def mark_spans(text: str, spans: Iterable[Span]) -> Iterator[tuple[str, bool]]:
    """Yield a text in pieces, each with whether it is one of some ascending spans."""
    at = 0
    for start, end in spans:
        yield text[at:start], False
        yield text[start:end], True
        at = end
    yield text[at:], False


def render_snippet_markdown(chunk: ChunkHit, size: int) -> str:
    """Return a snippet as one line of Markdown, its highlights bold."""
    pieces = ((escape_markdown(text), marked) for text, marked in cut_snippet(chunk, size))
    return "".join(f"**{text}**" if marked else text for text, marked in pieces).strip()


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows unchanged: mail must not insert images or links."""
    return _PUNCTUATION.sub(r"\\\g<0>", re.sub(r"\s+", " ", text))
