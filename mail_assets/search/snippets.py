"""Snippets: the part of a chunk around its first highlight, also as Markdown."""

import re
from collections.abc import Iterator
from itertools import takewhile

from mail_assets.search.response import ChunkHit

#: What may have a meaning in Markdown; a backslash takes it away (CommonMark 0.31, 2.4).
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


def cut_snippet(chunk: ChunkHit, size: int) -> Iterator[tuple[str, bool]]:
    """Yield about `size` characters of a chunk, starting shortly before its first highlight.

    In pieces, each with whether it is highlighted; white space becomes single spaces, and "..."
    marks where the chunk continues.
    """
    pieces = [*chunk.pieces()]
    unmarked = takewhile(lambda piece: not piece[1], pieces)
    before = sum(len(text) for text, _ in unmarked) if any(m for _, m in pieces) else 0
    start = max(0, before - size // 3)
    if start:
        yield "...", False
    at = 0
    for text, marked in pieces:
        part = text[max(0, start - at) : max(0, start + size - at)]
        if part:
            yield re.sub(r"\s+", " ", part), marked
        at += len(text)
    if at > start + size:
        yield "...", False


def render_snippet_markdown(chunk: ChunkHit, size: int) -> str:
    """Return a snippet as one line of Markdown, its highlights bold."""
    pieces = ((escape_markdown(text), marked) for text, marked in cut_snippet(chunk, size))
    return "".join(f"**{text}**" if marked else text for text, marked in pieces).strip()


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows unchanged: mail must not insert images or links."""
    return _PUNCTUATION.sub(r"\\\g<0>", re.sub(r"\s+", " ", text))
