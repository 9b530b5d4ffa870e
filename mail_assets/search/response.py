"""What is answered: hits with enough to render them and to point at the exact lines."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

Span = tuple[int, int]


@dataclass(frozen=True)
class ChunkHit:
    """A chunk that speaks for a message; spans are (start, end) in characters of its body.

    `highlights` are the words of the question in it, in characters of the body as well. `score`
    is that of the message for the chunk that speaks, less for the others; `distance` is that of
    the vector, where the index named the chunk.
    """

    key: str
    index: int
    text: str
    spans: tuple[Span, ...]
    score: float
    distance: float | None
    highlights: tuple[Span, ...]

    def marked(self) -> Iterator[tuple[str, bool]]:
        """Yield the text in pieces, each with whether it is highlighted."""
        at = 0
        for start, end in self.spans:
            inside = [(s, e) for s, e in self.highlights if start <= s < end]
            cut = start
            for s, e in inside:
                yield self.text[at : at + s - cut], False
                yield self.text[at + s - cut : at + e - cut], True
                at, cut = at + e - cut, e
            yield self.text[at : at + end - cut], False
            at += end - cut


@dataclass(frozen=True)
class Why:
    """Why a message is a hit.

    `ranks`: its place in each leg that found it, from 1; none where only its thread speaks for
    it. `words`: the words of the question that stand in the chunk shown first, as they are
    written there. `distance`: cosine distance of its nearest chunk. `thread_score`: the part of
    the score that the best of its thread gave.
    """

    ranks: Mapping[str, int]
    words: tuple[str, ...]
    distance: float | None
    thread_score: float


@dataclass(frozen=True)
class Hit:
    """A message, whichever lists carry it; higher scores are better within one response.

    `copies` are the ids of near-duplicates that were folded into it: the same sender, subject
    and words. `in_thread` are further hits of its thread, where hits are grouped by thread.
    """

    message_id: str
    lists: tuple[str, ...]
    month: str
    subject: str
    from_name: str
    from_email: str
    sent_at: str
    score: float
    thread_id: str | None
    chunks: tuple[ChunkHit, ...]
    why: Why
    attachments: tuple[str, ...]
    copies: tuple[str, ...] = ()
    in_thread: tuple[str, ...] = ()


@dataclass(frozen=True)
class Response:
    """The hits, best first.

    `short`: fewer than asked for. No more match, or more than DEPTH of a leg would have to be
    looked at, or an approximate index found fewer under a filter. `permalink` is a query that
    asks for the same again; `explain` says what was looked for and where the time went, where
    that was asked for.
    """

    query_id: str
    query: str
    mode: str
    took_ms: float
    short: bool
    hits: tuple[Hit, ...]
    permalink: str = ""
    explain: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the response as what json.dumps takes."""
        return asdict(self)
