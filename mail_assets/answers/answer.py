"""Answer a question: search, select excerpts, ask a chat model, check what it cites."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psycopg

from mail_assets.answers.excerpts import Excerpt, find_excerpts
from mail_assets.answers.prompt import build_prompt
from mail_assets.answers.stream import AnswerStream, ShowText
from mail_assets.openai.chat import ChatModel
from mail_assets.openai.client import Client
from mail_assets.openai.completion import complete
from mail_assets.search.fusion import MIN_STRENGTH
from mail_assets.search.request import Mode, Request
from mail_assets.search.response import Hit, Response
from mail_assets.search.searcher import Searcher


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
    """The answer of the model, and the messages that it cites.

    `sufficient`: the excerpts answer the question, as the model says; without excerpts it is not
    asked. `complete`: the answer did not break off; else `fault` says why it did. `dropped` counts
    citations of excerpts that do not exist, which are not in `text`.
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


# Six: the three services, the settings of the model, the request, and where text is shown.
def answer_question(
    searcher: Searcher,
    connection: psycopg.Connection,
    client: Client,
    chat: ChatModel,
    request: Request,
    show: ShowText,
) -> Answer:
    """Answer the query of a request from the excerpts that search finds.

    Where nothing that is found has to do with the query, the model is not asked. `show` gets the
    text as it arrives.

    Raises:
        EndpointError: the server failed before the first word.
        BudgetError: no excerpt fits into the budget of the model.
        RequestError, VectorError: see Searcher.search.
    """
    began = time.perf_counter()
    excerpts = find_excerpts(connection, _claims(searcher.search(request)), chat.budget)
    stream = AnswerStream([excerpt.number for excerpt in excerpts], show)
    if excerpts:
        stream.read(complete(client, chat, build_prompt(request.query, excerpts)))
    return Answer(
        question=request.query,
        text=stream.text,
        sufficient=bool(excerpts) and not stream.refused,
        complete=not stream.fault,
        fault=stream.fault,
        citations=_citations(excerpts, stream.citations.cited),
        dropped=stream.citations.dropped,
        excerpts=len(excerpts),
        took_ms=round((time.perf_counter() - began) * 1000, 1),
    )


def _claims(found: Response) -> Sequence[Hit]:
    """Return the hits; none where hybrid found them and even the best says next to nothing."""
    best = found.hits[0] if found.hits else None
    weak = best and best.why.ranks and best.score < MIN_STRENGTH
    return () if weak and found.mode == Mode.hybrid else found.hits


def _citations(excerpts: Sequence[Excerpt], cited: Sequence[int]) -> tuple[Citation, ...]:
    """Return the citations of the cited numbers, in the order of the numbers."""
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
