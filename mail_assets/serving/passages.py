"""Parts of texts as passages that may be seen: an address that a part's border cuts is hidden.

A chunk ends where its size says, within a line and a word where there is no better place.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mail_assets.serving.addresses import CONTEXT, MASK
from mail_assets.serving.publication import Publication
from mail_assets.serving.service import SearchService
from mail_assets.tables.chunks import read_around

Document = dict[str, Any]


def hide_cut_addresses(
    hits: Iterable[Document], service: SearchService, publication: Publication
) -> None:
    """Hide in the chunks of hits what is hidden in their messages, whatever a chunk holds of it."""
    chunks = [chunk for hit in hits for chunk in hit["chunks"] if chunk["spans"]]
    if not chunks or not publication.hides:
        return
    around = service.read(read_around, {chunk["key"] for chunk in chunks}, CONTEXT)
    for chunk in chunks:
        parts = _hide(chunk, around.get(chunk["key"], ()), publication)
        chunk["text"] = "".join(parts)


def cut_texts(posts: Iterable[Document], most: int) -> None:
    """Cut the texts of posts that are longer, behind a whole line if there is one.

    Addresses are hidden in them already, by up to CONTEXT characters more.
    """
    for post in posts:
        text = post["body_text"]
        if len(text) > most:
            line_end = text.rfind("\n", 0, most) + 1
            end = line_end or most
            post["body_text"] = text[:end]
            post["segments"] = [
                (start, min(stop, end), kind)
                for start, stop, kind in post["segments"]
                if start < end
            ]


def _hide(chunk: Document, around: Sequence[str], publication: Publication) -> Iterator[str]:
    """Yield the text of each span; of a message that was replaced meanwhile nothing is known."""
    at = 0
    for place, (start, end) in enumerate(chunk["spans"]):
        text = chunk["text"][at : at + end - start]
        at += end - start
        whole = around[place] if place < len(around) else ""
        first = min(start, CONTEXT)
        last = first + len(text)
        is_there = whole[first:last] == text
        yield publication.publish_part(whole, first, last) if is_there else MASK * len(text)
