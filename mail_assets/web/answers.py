"""Answers to questions over HTTP: as a page, as JSON, or as a stream of events.

The client chooses the format by its Accept header. GET only shows the form: robots and prefetching
browsers must not start answers. The events
(https://html.spec.whatwg.org/multipage/server-sent-events.html) and their data:

excerpts   what may be cited       {"question", "reading", "maker", "excerpts": [citation, ...]}
text       a piece of the answer   {"text"}
citations  what the text cites     {"citations": [citation, ...]}
end        how it ended            {"answers", "complete", "dropped", "took_ms", "fault"}
error      there is no answer      {"error": {...}}
"""

import json
import logging
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import parse_qsl

from anyio import CancelScope, create_task_group
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from mail_assets.answers.answer import (
    Answer,
    AnswerMaker,
    Citation,
    Event,
    Sources,
    Text,
    stream_answer,
)
from mail_assets.answers.evidence import Evidence
from mail_assets.answers.excerpts import BudgetError
from mail_assets.openai import EndpointError
from mail_assets.web.document_types import AnswerDocument, CitationDocument, Document
from mail_assets.web.documents import Documents
from mail_assets.web.pages import Pages
from mail_assets.web.parameters import require_once
from mail_assets.web.privacy import mark_person
from mail_assets.web.requests import (
    ASKED,
    QUESTION,
    drop_empty,
    link_data,
    make_request,
    page_url,
    write_json,
)
from mail_assets.web.responses import ServingError
from mail_assets.web.searchers import Workers

logger = logging.getLogger(__name__)

#: Most messages that an answer may use.
MESSAGES = 12
#: Most fields of a form.
MAX_FIELDS = 50
FORM, JSON, EVENTS, HTML = (
    "application/x-www-form-urlencoded",
    "application/json",
    "text/event-stream",
    "text/html",
)
#: Caches must not keep answers, and proxies must not buffer them.
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class AnswerEvent(NamedTuple):
    """An event of an answer: its name and its data."""

    name: str
    data: Document


@dataclass(frozen=True)
class Answering:
    """Answers questions with a maker of answers: a chat model, or passages of the mail."""

    documents: Documents
    maker: AnswerMaker

    def find(self, given: Mapping[str, str]) -> Evidence:
        """Return the evidence for an answer as it may be published.

        The answer itself needs neither a search slot nor a connection.
        """
        with self.documents.service.audit.watch(self.documents.surface) as watched:
            request = make_request({**drop_empty(given), "limit": str(MESSAGES)})
            watched.request = replace(request, facets=False, explain=False)
            publication = self.documents.publication
            asked, hide = publication.restrict(watched.request), publication.publish_part
            try:
                evidence = self.documents.service.find_evidence(asked, self.maker.budget, hide)
            except BudgetError as error:
                logger.error("a question was not answered: %s", error)
                message = "the chat model's budget is too small for this archive"
                raise ServingError(503, "unavailable", message) from None
            watched.mode, watched.hits = evidence.mode, len(evidence.excerpts)
        return self._hide_addresses(evidence) if publication.hides else evidence

    def stream(self, evidence: Evidence) -> Generator[AnswerEvent, None, None]:
        """Yield the events of an answer; the last is an end or an error."""
        events = stream_answer(self.maker, evidence)
        ids = frozenset(excerpt.hit.message_id for excerpt in evidence.excerpts)
        try:
            for event in events:
                for name, data in _describe(event):
                    yield AnswerEvent(name, self.documents.publication.publish(data, ids))
        except EndpointError as error:
            logger.error("a question was not answered: %s", error)
            shown = ServingError(
                503, "unavailable", "the chat model does not answer", retry_after=5
            )
            yield AnswerEvent("error", {**shown.as_json()})

    def _hide_addresses(self, evidence: Evidence) -> Evidence:
        """Hide the addresses in evidence, so that a chat model cannot repeat them.

        They were hidden in each span already, but joined spans and lines may form an address.
        """
        mask, key = self.documents.publication.publish, self.documents.publication.mark_key
        excerpts = tuple(
            replace(
                excerpt,
                text=mask(excerpt.text),
                namesake=mark_person(key, excerpt.namesake),
                hit=replace(
                    excerpt.hit,
                    from_email="",
                    from_name=mask(excerpt.hit.from_name),
                    subject=mask(excerpt.hit.subject),
                ),
            )
            for excerpt in evidence.excerpts
        )
        return replace(evidence, excerpts=excerpts)


def read_events(events: Iterable[AnswerEvent]) -> AnswerDocument:
    """Collect the events of an answer into one document."""
    pieces: list[str] = []
    found: dict[str, Document] = {}
    for name, data in events:
        if name == "error":
            message = data["error"]["message"]
            raise ServingError(503, data["error"]["code"], message, retry_after=5)
        if name == "text":
            pieces.append(data["text"])
        found[name] = data
    start, end = found["excerpts"], found["end"]
    return {
        "text": "".join(pieces),
        "question": start["question"],
        "maker": start["maker"],
        "citations": found["citations"]["citations"],
        "answers": end["answers"],
        "reading": start["reading"],
        "complete": end["complete"],
        "dropped": end["dropped"],
        "took_ms": end["took_ms"],
        "fault": end["fault"],
    }


def _describe(event: Event) -> Iterator[tuple[str, Document]]:
    match event:
        case Sources(question, reading, maker, excerpts):
            cited = [_describe_citation(one) for one in excerpts]
            yield (
                "excerpts",
                {"question": question, "reading": reading, "maker": maker, "excerpts": cited},
            )
        case Text(text):
            yield "text", {"text": text}
        case Answer():
            yield "citations", {"citations": [_describe_citation(one) for one in event.citations]}
            if event.fault:
                logger.error("an answer broke off: %s", event.fault)
            names = ("answers", "complete", "dropped", "took_ms")
            end = {name: getattr(event, name) for name in names}
            # only the operator may see the error text of the chat server
            yield "end", end | {"fault": "the chat model broke off" if event.fault else ""}


def _describe_citation(citation: Citation) -> CitationDocument:
    return {
        "number": citation.number,
        "message_id": citation.message_id,
        "lists": [*citation.lists],
        "month": citation.month,
        "subject": citation.subject,
        "from_name": citation.from_name,
        "from_email": citation.from_email,
        "namesake": citation.namesake,
        "sent_at": citation.sent_at,
        "spans": [*citation.spans],
        "text": citation.text,
        "contested": citation.contested,
        "url": page_url("message", citation.message_id),
    }


@dataclass(frozen=True)
class AnswerRoutes:
    """Routes for questions; threads of `searches` find evidence, threads of `writers` answer."""

    searches: Workers
    writers: Workers
    answering: Answering
    pages: Pages

    async def handle(self, request: Request) -> Response:
        """Answer a question, or show its form."""
        if request.method == "POST":
            return await self._answer(request)
        [given] = QUESTION.read(request)
        parameters = drop_empty(given)
        make_request(parameters)
        return HTMLResponse(self.pages.answer(None, parameters))

    async def _answer(self, request: Request) -> Response:
        [given] = ASKED.read_values(await _read_fields(request))
        evidence = await self.searches.run(lambda: self.answering.find(given))
        events = self.answering.stream(evidence)
        wanted = choose_type(request.headers.get("accept", ""))
        if wanted == EVENTS:
            return StreamingResponse(self._stream(events), headers=HEADERS, media_type=EVENTS)
        answer = read_events(await self._collect(request, events))
        if wanted == JSON:
            return Response(write_json(link_data(answer)), headers=HEADERS, media_type=JSON)
        return HTMLResponse(self.pages.answer(answer, given), headers=HEADERS)

    async def _collect(
        self, request: Request, events: Generator[AnswerEvent, None, None]
    ) -> list[AnswerEvent]:
        """Return all events; stop as soon as the client leaves."""
        collected: list[AnswerEvent] = []
        has_left = True
        async with create_task_group() as tasks:
            tasks.start_soon(_await_leaving, request, tasks.cancel_scope)
            async for event in self.writers.follow(events):
                collected.append(event)
            has_left = False
            tasks.cancel_scope.cancel()
        if has_left:
            raise ServingError(408, "timeout", "the client left before the answer was complete")
        return collected

    async def _stream(self, events: Generator[AnswerEvent, None, None]) -> AsyncIterator[bytes]:
        async for event in self.writers.follow(events):
            yield write_event(event)


async def _await_leaving(request: Request, scope: CancelScope) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def choose_type(accept: str) -> str:
    """Choose the format of an answer: events, unless the client accepts a page or JSON."""
    asked = {one.partition(";")[0].strip().lower() for one in accept.split(",")}
    return next((one for one in (EVENTS, HTML, JSON) if one in asked), EVENTS)


def write_event(event: AnswerEvent) -> bytes:
    """Write an event in the format of event streams; its JSON contains no line ends."""
    data = write_json(link_data(event.data))
    return f"event: {event.name}\ndata: {data}\n\n".encode()


async def _read_fields(request: Request) -> Mapping[str, str]:
    """Return the fields of a form or of a JSON object."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    try:
        if kind == JSON:
            given = json.loads(body)
            if isinstance(given, dict) and all(isinstance(one, str) for one in given.values()):
                return given
            raise ServingError(400, "bad_request", "send a JSON object whose values are strings")
        if kind == FORM:
            text = body.decode()
            fields = parse_qsl(text, True, errors="strict", max_num_fields=MAX_FIELDS)
            return require_once(fields)
    except (ValueError, RecursionError) as error:
        raise ServingError(400, "bad_request", f"the body is not valid {kind}") from error
    allowed = (JSON, FORM)
    message = f"send a question as {' or '.join(allowed)}"
    raise ServingError(415, "unsupported_media_type", message, allowed=allowed)
