"""The text of an answer as a page shows it: paragraphs, with what it cites as links."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mail_assets.serving.text_view import Piece

#: Numbers of citations as they are shown (answers/citations.py), and code, in which there are none.
_CITED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\[(\d{1,4}(?:, \d{1,4}){0,50})\]", re.DOTALL)


def view_answer(document: Mapping[str, Any]) -> Iterator[list[Piece]]:
    """Yield the paragraphs of an answer; nothing in one leads anywhere but into the archive."""
    urls = {str(one["number"]): one["url"] for one in document["citations"]}
    pieces = [*_link_citations(document["text"], urls)]
    for paragraph in _split_lines(pieces):
        if any(piece.text.strip() for piece in paragraph):
            yield paragraph


def _split_lines(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    line: list[Piece] = []
    for piece in pieces:
        first, *others = piece.text.split("\n")
        line.append(Piece(first, piece.url))
        for text in others:
            yield line
            line = [Piece(text)]
    yield line


def _link_citations(text: str, urls: Mapping[str, str]) -> Iterator[Piece]:
    at = 0
    for found in _CITED.finditer(text):
        if not found[1]:
            continue
        yield Piece(text[at : found.start()] + "[")
        for place, number in enumerate(found[1].split(", ")):
            yield Piece(", " if place else "")
            yield Piece(number, urls.get(number, ""))
        yield Piece("]")
        at = found.end()
    yield Piece(text[at:])
