"""An answer in words: excerpts of the hits go to a chat model, its checked words come back.

What is shown is what was checked: a citation that no excerpt has never gets out, and an answer that
broke off says so. What does not live here: finding (searcher.py), choosing (excerpts.py), the
rules that the model is given (prompt.py), the checking (citations.py).
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psycopg

from mail_assets.answers.citations import Citations
from mail_assets.answers.excerpts import Excerpt, find_excerpts
from mail_assets.answers.prompt import INSUFFICIENT, messages
from mail_assets.openai.chat import ChatModel
from mail_assets.openai.client import Client
from mail_assets.openai.completion import complete
from mail_assets.openai.errors import EndpointError
from mail_assets.search.request import Request
from mail_assets.search.searcher import Searcher

Show = Callable[[str], None]

#: What some models put around a first word.
_DECORATION = " \n*_#>\"'"


@dataclass(frozen=True)
class Citation:
    """A message that the answer cites; spans are (start, end) in characters of its body."""

    number: int
    message_id: str
    lists: tuple[str, ...]
    month: str
    subject: str
    from_name: str
    from_email: str
    sent_at: str
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Answer:
    """What the model said, and what it rests on.

    `sufficient`: the excerpts answer the question, by the model's word; where there are none, it
    is not asked. `complete`: the answer was given to its end; else `fault` says what happened.
    `dropped` counts citations of excerpts that do not exist, which are not in `text`.
    """

    question: str
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


def answer(
    searcher: Searcher,
    connection: psycopg.Connection,
    client: Client,
    chat: ChatModel,
    request: Request,
    show: Show,
) -> Answer:
    """Find excerpts for a request and have them answer it; `show` gets the text as it comes.

    Raises:
        EndpointError: the server gave nothing of an answer.
        RequestError, VectorError: see Searcher.search.
    """
    began = time.perf_counter()
    hits = searcher.search(request).hits
    excerpts = find_excerpts(connection, hits, chat.budget)
    reader = _Reader([excerpt.number for excerpt in excerpts], show)
    if excerpts:
        reader.read(complete(client, chat, messages(request.query, excerpts)))
    return Answer(
        question=request.query,
        text=reader.text,
        sufficient=bool(excerpts) and not reader.refused,
        complete=not reader.fault,
        fault=reader.fault,
        citations=_citations(excerpts, reader.citations.cited),
        dropped=reader.citations.dropped,
        excerpts=len(excerpts),
        took_ms=round((time.perf_counter() - began) * 1000, 1),
    )


class _Reader:
    """Reads an answer as it comes: first whether it is one, then its text."""

    def __init__(self, numbers: Sequence[int], show: Show) -> None:
        self.citations = Citations(numbers)
        self.refused = False
        self.text = ""
        self.fault = ""
        self._show = show

    def read(self, texts: Iterable[str]) -> None:
        """Read to the end, or to the fault; one before the first word is raised."""
        head: str | None = ""
        try:
            for text in texts:
                if head is None:
                    self._give(self.citations.feed(text))
                    continue
                head += text
                first = head.lstrip(_DECORATION)
                if not INSUFFICIENT.startswith(first[: len(INSUFFICIENT)]):
                    self._give(self.citations.feed(head))
                    head = None
                elif len(first) >= len(INSUFFICIENT):
                    self.refused = True
                    self._give(self.citations.feed(first[len(INSUFFICIENT) :].lstrip()))
                    head = None
        except EndpointError as error:
            if not (self.text or head):
                raise
            self.fault = str(error)
        self._give(self.citations.feed(head or ""))
        self._give(self.citations.finish())
        if not (self.text.strip() or self.refused):
            self.fault = self.fault or "the model answered nothing"

    def _give(self, text: str) -> None:
        if text:
            self.text += text
            self._show(text)


def _citations(excerpts: Sequence[Excerpt], cited: Sequence[int]) -> tuple[Citation, ...]:
    """Return what the cited numbers stand for, in the order of the numbers."""
    by_number = {excerpt.number: excerpt for excerpt in excerpts}
    return tuple(_citation(by_number[number]) for number in sorted(cited))


def _citation(excerpt: Excerpt) -> Citation:
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
    )
