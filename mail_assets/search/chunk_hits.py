"""The chunks of a message that are shown: those that match the query best, with highlights."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mail_assets.search.candidates import Candidate
from mail_assets.search.highlights import Highlighter, Highlights, to_body_spans
from mail_assets.search.response import ChunkHit, Span
from mail_assets.search.snippets import SHORTEST, find_start

#: Chunks that are shown of a message.
MAX_CHUNKS = 3


class StoredChunk(NamedTuple):
    """A chunk as it is stored; `spans` are the places of its text in the body."""

    key: str
    index: int  # type: ignore[assignment]  # hides tuple.index(), which nobody calls
    text: str
    spans: tuple[Span, ...]


def select_chunks(
    candidate: Candidate, chunks: Sequence[StoredChunk], highlighter: Highlighter
) -> list[ChunkHit]:
    """Return the chunks of a message that match best, best first.

    If none matches, because the message was found by its thread alone, the first one is shown.
    """
    # A long message has dozens of chunks: without a part in their rank, words are for those shown.
    by_words = "fulltext" in candidate.ranks
    highlights = {chunk.key: highlighter.find(chunk.text) for chunk in chunks if by_words}
    evidence = _evidence(candidate, chunks, highlights)
    ranked = sorted(chunks, key=lambda chunk: (-evidence[chunk.key], chunk.index))
    best = evidence[ranked[0].key] if ranked else 0.0
    shown = [chunk for chunk in ranked[:MAX_CHUNKS] if evidence[chunk.key] > 0] or ranked[:1]
    highlights |= {c.key: highlighter.find(c.text) for c in shown if c.key not in highlights}
    return [
        ChunkHit(
            key=chunk.key,
            index=chunk.index,
            text=chunk.text,
            spans=chunk.spans,
            score=_share(candidate.score, evidence[chunk.key] / best if best else 1.0),
            distance=candidate.chunks.get(chunk.key),
            highlights=to_body_spans(highlights[chunk.key].spans, chunk.spans),
            focus=_find_focus(chunk.text, highlights[chunk.key], highlighter),
        )
        for chunk in shown
    ]


def _find_focus(text: str, found: Highlights, highlighter: Highlighter) -> int:
    """Return where the highlight stands whose snippet has most of the query, 0 where none is.

    That is the weight of its different lexemes, then their number: by meaning none has a weight.
    """
    best, focus = (-1.0, 0), 0
    for at, _ in found.spans:
        start = find_start(text, at, SHORTEST)
        first = bisect_left(found.spans, (start, 0))
        last = bisect_left(found.spans, (start + SHORTEST, 0))
        lexemes = set[str]().union(*found.lexemes[first:last])
        said = highlighter.weigh(lexemes), len(lexemes)
        if said > best:
            best, focus = said, at
    return focus


def _evidence(
    candidate: Candidate, chunks: Sequence[StoredChunk], highlights: Mapping[str, Highlights]
) -> dict[str, float]:
    """Return how well each chunk matches, by its key: 0 to 2.

    The sum of the weight of its words, where full text found the message, and its similarity, each
    as a share of the best chunk's. `highlights` are those of all chunks, or of none.
    """
    heaviest = max((one.weight for one in highlights.values()), default=0.0) or 1.0
    nearest = max((1 - distance for distance in candidate.chunks.values()), default=0.0) or 1.0
    evidence = {}
    for key in (chunk.key for chunk in chunks):
        words = highlights[key].weight / heaviest if highlights else 0.0
        near = (1 - candidate.chunks[key]) / nearest if key in candidate.chunks else 0.0
        evidence[key] = words + near
    return evidence


def _share(score: float, share: float) -> float:
    """Return the score of a chunk whose evidence is a share of the best one's."""
    return round(score - abs(score) * (1 - share), 6)
