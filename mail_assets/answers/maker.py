"""The interface of makers of answers, and the events of an answer as a maker writes it.

    evidence = find_evidence(searcher, connection, request, maker.budget, history)
    for event in stream_answer(maker, evidence): ...

The second line uses neither the searcher nor the connection.
"""

import time
from collections.abc import Generator, Iterator
from typing import NamedTuple, Protocol

from mail_assets.answers.answer import Answer, Citation, Event, Sources, Text, cite
from mail_assets.answers.evidence import Evidence


class Written(NamedTuple):
    """The end of an answer; the fields are those of Answer."""

    citations: tuple[Citation, ...] = ()
    sufficient: bool = True
    fault: str = ""
    dropped: int = 0


class AnswerMaker(Protocol):
    """Writes answers from evidence: a chat model, or the extractive maker."""

    @property
    def name(self) -> str:
        """The name of the maker in its answers."""

    @property
    def budget(self) -> int:
        """Most tokens of excerpts."""

    def write(self, evidence: Evidence) -> Generator[str, None, Written]:
        """Yield the checked pieces of an answer; return its end.

        Raises:
            EndpointError: a server failed before the first word.
        """


def stream_answer(maker: AnswerMaker, evidence: Evidence) -> Iterator[Event]:
    """Yield the sources, the pieces of the text, and at last the whole answer.

    Raises:
        EndpointError: a server failed before the first word.
    """
    began = time.perf_counter()
    sources = tuple(cite(excerpt) for excerpt in evidence.excerpts)
    yield Sources(evidence.question, maker.name, sources)
    pieces: list[str] = []
    written = yield from _pass_on(maker.write(evidence), pieces)
    yield Answer(
        question=evidence.question,
        maker=maker.name,
        text="".join(pieces),
        sufficient=written.sufficient,
        complete=not written.fault,
        fault=written.fault,
        citations=written.citations,
        dropped=written.dropped,
        excerpts=len(evidence.excerpts),
        took_ms=round(evidence.took_ms + (time.perf_counter() - began) * 1000, 1),
    )


def read_answer(events: Iterator[Event]) -> Answer:
    """Return the whole answer, the last of its events."""
    *_, last = events
    if not isinstance(last, Answer):
        raise TypeError(f"the events of an answer end with {type(last).__name__}")
    return last


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
