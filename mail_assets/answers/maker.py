"""Makers of answers, and the events of an answer as a maker writes it.

Without a chat model the answer is the passages that were found, and one line above them.

    evidence = find_evidence(searcher, connection, request, maker.budget, history)
    for event in stream_answer(maker, evidence): ...

The second line uses neither the searcher nor the connection.
"""

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from mail_assets.answers.answer import Answer, Citation, Event, Sources, Text, cite
from mail_assets.answers.evidence import Evidence


class Written(NamedTuple):
    """The end of an answer; the fields are those of Answer."""

    citations: tuple[Citation, ...] = ()
    answers: bool = False
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


#: The line above the passages: the first only where the test of relevance is passed.
ANSWERED = "The archive answers this:"
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
        yield ANSWERED if evidence.answers else NEAREST
        shown = tuple(replace(cite(one), text=one.text) for one in evidence.excerpts)
        return Written(shown, answers=evidence.answers)


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
