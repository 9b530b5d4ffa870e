"""What makes an answer of evidence: a chat model, or a choice of sentences.

    evidence = find_evidence(searcher, connection, request, maker.budget, history)
    for event in stream_answer(maker, evidence): ...

While the second line runs, neither searcher nor connection is used.
"""

import time
from collections.abc import Generator, Iterator
from typing import NamedTuple, Protocol

from mail_assets.answers.answer import Answer, Citation, Event, Sources, Text, cite
from mail_assets.answers.evidence import Evidence


class Written(NamedTuple):
    """What is known of an answer at its end; the fields are those of Answer."""

    citations: tuple[Citation, ...] = ()
    sufficient: bool = True
    fault: str = ""
    dropped: int = 0


class AnswerMaker(Protocol):
    """Makes an answer of evidence."""

    @property
    def name(self) -> str:
        """The name that an answer has of its maker."""

    @property
    def budget(self) -> int:
        """How many tokens of excerpts it reads."""

    def write(self, evidence: Evidence) -> Generator[str, None, Written]:
        """Yield the text of the answer in pieces, each checked; return what is known at its end.

        Raises:
            EndpointError: a server failed before the first word.
        """


def stream_answer(maker: AnswerMaker, evidence: Evidence) -> Iterator[Event]:
    """Yield the sources, the text as it is made, and at last the answer.

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
    """Read the events of an answer to the last, which is the answer."""
    *_, last = events
    if not isinstance(last, Answer):
        raise TypeError(f"the events of an answer end with {type(last).__name__}")
    return last


def _pass_on(
    writing: Generator[str, None, Written], pieces: list[str]
) -> Generator[Text, None, Written]:
    """Yield what is written as events, keep its pieces, and return what is known at its end."""
    while True:
        try:
            piece = next(writing)
        except StopIteration as end:
            written: Written = end.value
            return written
        pieces.append(piece)
        yield Text(piece)
