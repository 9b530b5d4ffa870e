"""The part of a chunk that is shown to people, around the words of the question.

What does not live here: finding the words (highlights.py), and how a terminal marks them (cli).
"""

import re
from collections.abc import Iterator
from itertools import takewhile

from mail_assets.search.response import ChunkHit

#: What Markdown may take as its own. Each may stand behind a backslash (CommonMark 0.31, 2.4).
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


def snippet(chunk: ChunkHit, size: int) -> Iterator[tuple[str, bool]]:
    """Yield about `size` characters of a chunk from shortly before its first highlight.

    In pieces, each with whether it is highlighted; white space is single spaces, and "..." says
    where the chunk goes on.
    """
    pieces = [*chunk.marked()]
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


def as_markdown(chunk: ChunkHit, size: int) -> str:
    """Return a snippet as one line of Markdown, its highlights bold."""
    return "".join(
        f"**{escape(text)}**" if marked else escape(text) for text, marked in snippet(chunk, size)
    ).strip()


def escape(text: str) -> str:
    """Return text that Markdown shows as it stands: mail must not bring images or links."""
    return _PUNCTUATION.sub(r"\\\g<0>", re.sub(r"\s+", " ", text))
