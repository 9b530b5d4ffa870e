"""The answer to a question about the archive, and the events in which it arrives."""

from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from mail_assets.answers.excerpts import Excerpt, Spans


@dataclass(frozen=True)
class Turn:
    """An earlier question of a conversation, and its answer."""

    question: str
    answer: str


@dataclass(frozen=True)
class Citation:
    """A message that is cited by a number; spans are (start, end) in characters of its body.

    `text` is the passage, empty where a chat model cites an excerpt.
    """

    number: int
    message_id: str
    lists: tuple[str, ...]
    month: str
    subject: str
    from_name: str
    from_email: str
    sent_at: str
    spans: Spans
    contested: bool = False
    text: str = ""


@dataclass(frozen=True)
class Sources:
    """The first event: the question, its reading, the maker, and what may be cited."""

    question: str
    reading: str
    maker: str
    excerpts: tuple[Citation, ...]


@dataclass(frozen=True)
class Text:
    """A piece of the answer, checked; all pieces together are its text."""

    text: str


@dataclass(frozen=True)
class Answer:
    """The last event: the whole answer, and the messages that it cites.

    `maker` is the chat model, or "passages"; then `text` is one line, and the citations are the
    passages, best first. `answers`: the test of relevance is passed, or the chat model found the
    answer in the excerpts and cites them. `reading` says how the question was understood, where
    that is more than its words. `complete`: the answer did not break off; if it did, `fault` says
    why. `dropped` counts the citations and references of unknown mail, which were removed from
    `text`. The spans of a citation are those of its excerpt.
    """

    question: str
    maker: str
    text: str
    answers: bool
    complete: bool
    fault: str
    citations: tuple[Citation, ...]
    dropped: int
    excerpts: int
    took_ms: float
    reading: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the answer as plain values."""
        return asdict(self)


Event: TypeAlias = Sources | Text | Answer


def cite(excerpt: Excerpt) -> Citation:
    """Return the citation of an excerpt."""
    hit = excerpt.hit
    return Citation(
        number=excerpt.number,
        message_id=hit.message_id,
        lists=hit.lists,
        month=hit.month,
        subject=hit.subject,
        from_name=hit.from_name,
        from_email=hit.from_email,
        sent_at=hit.sent_at,
        spans=excerpt.spans,
        contested=hit.contested,
    )
