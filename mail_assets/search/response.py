"""What is answered: hits with enough to render them and to point at the exact lines."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ChunkHit:
    """A chunk that speaks for a message; spans are (start, end) in characters of its body."""

    key: str
    index: int
    text: str
    spans: tuple[tuple[int, int], ...]
    score: float


@dataclass(frozen=True)
class Hit:
    """A message, whichever lists carry it; higher scores are better within one response."""

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


@dataclass(frozen=True)
class Response:
    """The hits, best first.

    `short`: fewer than asked for. No more match, or more than legs.DEPTH chunks or copies
    would have to be looked at, or an approximate index found fewer under a filter.
    """

    query_id: str
    query: str
    mode: str
    took_ms: float
    short: bool
    hits: tuple[Hit, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the response as what json.dumps takes."""
        return asdict(self)
