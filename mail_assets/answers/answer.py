"""An answer to a question about the archive, and the events in which it arrives."""

from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from mail_assets.answers.excerpts import Excerpt, Spans


@dataclass(frozen=True)
class Citation:
    """A message that is cited by a number; spans are (start, end) in characters of its body."""

    number: int
    message_id: str
    lists: tuple[str, ...]
    month: str
    subject: str
    from_name: str
    from_email: str
    sent_at: str
    spans: Spans


@dataclass(frozen=True)
class Sources:
    """The first event: what may be cited, the excerpts of the mail that was found."""

    question: str
    maker: str
    excerpts: tuple[Citation, ...]


@dataclass(frozen=True)
class Text:
    """A piece of the answer, checked: the pieces of all such events are its text."""

    text: str


@dataclass(frozen=True)
class Answer:
    """The last event: the whole answer, and the messages that it cites.

    `maker` is the chat model, or "extractive". `sufficient`: the archive answers the question, as
    the maker says; without excerpts it is not asked. `complete`: the answer did not break off; else
    `fault` says why it did. `dropped` counts citations of what was not given to the maker, which
    are not in `text`. The spans of a citation are the excerpt's, those of an extractive answer its
    sentences, in the order in which the text has them.
    """

    question: str
    maker: str
    text: str
    sufficient: bool
    complete: bool
    fault: str
    citations: tuple[Citation, ...]
    dropped: int
    excerpts: int
    took_ms: float

    def as_json(self) -> dict[str, Any]:
        """Return the answer as what json.dumps takes."""
        return asdict(self)


Event: TypeAlias = Sources | Text | Answer


def cite(excerpt: Excerpt, spans: Spans | None = None) -> Citation:
    """Return the citation of an excerpt, or of some characters of it."""
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
        spans=excerpt.spans if spans is None else spans,
    )
