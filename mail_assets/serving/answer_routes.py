"""Where questions are answered: a form, a page, a stream of events, or data, as the client asks.

Only POST asks: what follows links, and what fetches pages ahead, starts nothing.
https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from anyio import CancelScope, create_task_group
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from mail_assets.serving.answering import AnswerEvent, Answering, read_events
from mail_assets.serving.errors import ServingError
from mail_assets.serving.inputs import read_query, require_once
from mail_assets.serving.pages import Pages
from mail_assets.serving.parameters import QUESTION_PARAMETERS, make_request, read_parameters
from mail_assets.serving.workers import Workers

ShowError = Callable[[Request, Exception], Awaitable[Response]]

FORM, JSON, EVENTS, HTML = (
    "application/x-www-form-urlencoded",
    "application/json",
    "text/event-stream",
    "text/html",
)
#: Answers are not kept, and not collected by a proxy until they are whole.
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
#: Fields of a form: more are not read.
MAX_FIELDS = 50


@dataclass(frozen=True)
class AnswerRoutes:
    """Answers questions; `searches` find what `writers` then write about, without a connection."""

    searches: Workers
    writers: Workers
    answering: Answering
    pages: Pages
    show_error: ShowError

    def list_routes(self) -> Iterator[Route]:
        """Yield the routes."""
        yield Route("/answer", self._handle, methods=["GET", "POST"])

    async def _handle(self, request: Request) -> Response:
        return await (self._answer if request.method == "POST" else self._show_form)(request)

    async def _show_form(self, request: Request) -> Response:
        try:
            [given] = read_query(request)
            parameters = read_parameters(given, QUESTION_PARAMETERS)
            make_request(parameters)
            return HTMLResponse(self.pages.question(parameters))
        except Exception as error:
            return await self.show_error(request, error)

    async def _answer(self, request: Request) -> Response:
        try:
            _require_same_site(request)
            given = await read_question(request)
            evidence = await self.searches.run(lambda: self.answering.find(given))
            events = self.answering.stream(evidence)
            wanted = choose_type(request.headers.get("accept", ""))
            if wanted == EVENTS:
                return StreamingResponse(self._stream(events), headers=HEADERS, media_type=EVENTS)
            answer = read_events(await self._collect(request, events))
            if wanted == JSON:
                return JSONResponse(answer, headers=HEADERS)
            return HTMLResponse(self.pages.answer(answer, given), headers=HEADERS)
        except Exception as error:
            return await self.show_error(request, error)

    async def _collect(
        self, request: Request, events: Generator[AnswerEvent, None, None]
    ) -> list[AnswerEvent]:
        """Return all events; where the client leaves, nothing more is written.

        Raises:
            ServingError: it has left.
        """
        collected: list[AnswerEvent] = []
        has_left = True
        async with create_task_group() as tasks:
            tasks.start_soon(_await_leaving, request, tasks.cancel_scope)
            async for event in self.writers.follow(events):
                collected.append(event)
            has_left = False
            tasks.cancel_scope.cancel()
        if has_left:
            raise ServingError(408, "timeout", "the client left before the answer was whole")
        return collected

    async def _stream(self, events: Generator[AnswerEvent, None, None]) -> AsyncIterator[bytes]:
        async for event in self.writers.follow(events):
            yield write_event(event)


async def _await_leaving(request: Request, scope: CancelScope) -> None:
    """Cancel a scope when the client leaves."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def choose_type(accept: str) -> str:
    """Return how an answer is written for a client: events, unless it asks for a page or data."""
    asked = {one.partition(";")[0].strip().lower() for one in accept.split(",")}
    return next((one for one in (EVENTS, HTML, JSON) if one in asked), EVENTS)


def write_event(event: AnswerEvent) -> bytes:
    """Return an event of a stream; JSON has no line ends."""
    data = json.dumps(event.data, ensure_ascii=False)
    return f"event: {event.name}\ndata: {data}\n\n".encode()


async def read_question(request: Request) -> Mapping[str, str]:
    """Return the fields of a form, or of an object of JSON.

    Raises:
        ServingError: it is neither, or a field is no text or given twice.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    try:
        if kind == JSON:
            given = json.loads(body)
            if isinstance(given, dict) and all(isinstance(one, str) for one in given.values()):
                return given
            raise ServingError(400, "bad_request", "send an object whose values are texts")
        if kind == FORM:
            text = body.decode()
            fields = parse_qsl(text, True, errors="strict", max_num_fields=MAX_FIELDS)
            return require_once(fields)
    except (ValueError, RecursionError) as error:
        raise ServingError(400, "bad_request", f"this cannot be read: {kind}") from error
    allowed = (JSON, FORM)
    message = f"send a question as {' or '.join(allowed)}"
    raise ServingError(415, "unsupported_media_type", message, allowed=allowed)


def _require_same_site(request: Request) -> None:
    """Refuse what a page of another site makes a browser ask (https://www.w3.org/TR/fetch-metadata).

    Raises:
        ServingError: it comes from another site.
    """
    if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        raise ServingError(403, "cross_site", "questions are asked from the pages of this site")
