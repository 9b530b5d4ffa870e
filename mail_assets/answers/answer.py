"""The answer to a question about the archive, its stream of events, and its makers.

Without a chat model, the answer is one line and the passages that were found.

    evidence = find_evidence(searcher, connection, request, maker.budget, history)
    for event in stream_answer(maker, evidence): ...

The second line uses neither the searcher nor the connection.
"""

import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

from mail_assets.answers.evidence import Evidence
from mail_assets.answers.excerpts import Excerpt, Spans


@dataclass(frozen=True)
class Citation:
    """A message cited by a number; spans are (start, end) in characters of its body.

    `text` is the passage, empty if a chat model cites an excerpt. `namesake` distinguishes the
    sender from another person under the same name.
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
    namesake: str = ""


@dataclass(frozen=True)
class Sources:
    """The first event: the question, its reading, the maker, and the excerpts it may cite."""

    question: str
    reading: str
    maker: str
    excerpts: tuple[Citation, ...]


@dataclass(frozen=True)
class Text:
    """A checked piece of the answer; all pieces together are its text."""

    text: str


@dataclass(frozen=True)
class Answer:
    """The last event: the whole answer, and the messages that it cites.

    `maker` is the name of the chat model, or "passages". In the latter case `text` is one line, and
    the citations are the passages, best first. `answers`: the chat model found the answer in the
    excerpts and cites them; None for passages. `reading` says how the question was understood, ""
    if by its words alone. `complete`: the answer did not break off; if it did, `fault` says why.
    `dropped` counts citations and references of unknown mail that were removed from `text`. The
    spans of a citation are those of its excerpt.
    """

    question: str
    maker: str
    text: str
    answers: bool | None
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
        namesake=excerpt.namesake,
    )


class Written(NamedTuple):
    """The end of an answer; the fields are those of Answer."""

    citations: tuple[Citation, ...] = ()
    answers: bool | None = None
    fault: str = ""
    dropped: int = 0


class AnswerMaker(Protocol):
    """Writes answers from evidence: a chat model, or the maker that shows passages."""

    @property
    def name(self) -> str:
        """The name of the maker in its answers."""

    @property
    def budget(self) -> int:
        """Most tokens of excerpts; 0 for a maker that shows passages."""

    def write(self, evidence: Evidence) -> Generator[str, None, Written]:
        """Yield the checked pieces of an answer; return its end.

        Raises:
            EndpointError: a server failed before the first word.
        """


#: The line above the passages. It does not claim that they answer: tests of that were often wrong.
NEAREST = "What the archive says nearest to it:"
NOTHING = "The archive says nothing near it."


@dataclass(frozen=True)
class PassageMaker:
    """Shows passages of the mail; the same evidence always gives the same answer."""

    name: str = "passages"
    budget: int = 0

    def write(self, evidence: Evidence) -> Generator[str, None, Written]:
        """Yield the line above the passages; the passages are the citations."""
        if not evidence.excerpts:
            yield f"{NOTHING} {evidence.doubt}".rstrip()
            return Written()
        yield NEAREST
        shown = tuple(replace(cite(one), text=one.text) for one in evidence.excerpts)
        return Written(shown)


def stream_answer(maker: AnswerMaker, evidence: Evidence) -> Iterator[Event]:
    """Yield the sources, the pieces of the text, and at last the whole answer.

    Raises:
        EndpointError: a server failed before the first word.
    """
    began = time.perf_counter()
    sources = tuple(map(cite, evidence.excerpts))
    yield Sources(evidence.question, evidence.reading, maker.name, sources)
    pieces: list[str] = []
    written = yield from _pass_on(maker.write(evidence), pieces)
    yield Answer(
        question=evidence.question,
        maker=maker.name,
        text="".join(pieces),
        answers=written.answers,
        reading=evidence.reading,
        complete=not written.fault,
        fault=written.fault,
        citations=written.citations,
        dropped=written.dropped,
        excerpts=len(evidence.excerpts),
        took_ms=round(evidence.took_ms + (time.perf_counter() - began) * 1000, 1),
    )


def _pass_on(
    writing: Generator[str, None, Written], pieces: list[str]
) -> Generator[Text, None, Written]:
    """Yield the pieces as events, collect them in `pieces`, and return the end."""
    while True:
        try:
            piece = next(writing)
        except StopIteration as end:
            written: Written = end.value
            return written
        pieces.append(piece)
        yield Text(piece)
