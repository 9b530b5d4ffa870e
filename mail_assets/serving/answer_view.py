"""The text of an answer as a page shows it: paragraphs, with what it cites as links."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mail_assets.serving.text_view import Piece

#: Numbers of citations as they are shown (answers/citations.py).
_CITED = re.compile(r"\[(\d{1,4}(?:, \d{1,4}){0,50})\]")


def view_answer(document: Mapping[str, Any]) -> Iterator[list[Piece]]:
    """Yield the paragraphs of an answer; nothing in one leads anywhere but into the archive."""
    urls = {str(one["number"]): one["url"] for one in document["citations"]}
    for paragraph in document["text"].split("\n"):
        if paragraph.strip():
            yield [*_link_citations(paragraph, urls)]


def _link_citations(text: str, urls: Mapping[str, str]) -> Iterator[Piece]:
    at = 0
    for found in _CITED.finditer(text):
        yield Piece(text[at : found.start()] + "[")
        for place, number in enumerate(found[1].split(", ")):
            yield Piece(", " if place else "")
            yield Piece(number, urls.get(number, ""))
        yield Piece("]")
        at = found.end()
    yield Piece(text[at:])
