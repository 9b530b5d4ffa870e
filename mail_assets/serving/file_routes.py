"""Where files are had: mailboxes of searches, threads and messages, and attachments."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from mail_assets.serving.downloads import Download, Downloads
from mail_assets.serving.exports import Export, Exports
from mail_assets.serving.inputs import read_attachment_number, read_id, read_query
from mail_assets.serving.responses import DEFAULT_MAX_AGE, SEARCH_MAX_AGE, allow_keeping
from mail_assets.serving.workers import Workers

ShowError = Callable[[Request, Exception], Awaitable[Response]]
Read = Callable[[Request], tuple[Any, ...]]


@dataclass(frozen=True)
class FileRoutes:
    """Answers with files; `show_error` makes the response where there is none."""

    workers: Workers
    exports: Exports
    downloads: Downloads
    show_error: ShowError

    def list_routes(self) -> Iterator[Route]:
        """Yield the routes; that of an attachment goes before that of the message's page."""
        yield Route(
            "/search.mbox.gz", self._stream(read_query, self.exports.search, SEARCH_MAX_AGE)
        )
        for path in ("/thread.mbox.gz", "/thread.mbox.gz/{id:path}"):
            yield Route(path, self._stream(read_id, self.exports.thread))
        for path in ("/message.mbox", "/message.mbox/{id:path}"):
            yield Route(path, self._send(read_id, self.downloads.message))
        for path in ("/message/attachment/{number}", "/message/{id:path}/attachment/{number}"):
            yield Route(path, self._send(read_attachment_number, self.downloads.attachment))

    def _stream(
        self, read: Read, make: Callable[..., Export], max_age: int = DEFAULT_MAX_AGE
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                export = await self.workers.run(lambda: make(*read(request)))
            except Exception as error:
                return await self.show_error(request, error)
            return StreamingResponse(
                self.workers.follow(export.pieces),
                headers=_as_file(export.name, max_age),
                media_type="application/gzip",
            )

        return answer

    def _send(
        self, read: Read, make: Callable[..., Download]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                file = await self.workers.run(lambda: make(*read(request)))
            except Exception as error:
                return await self.show_error(request, error)
            return Response(file.data, headers=_as_file(file.name), media_type=file.media_type)

        return answer


def _as_file(name: str, max_age: int = DEFAULT_MAX_AGE) -> Mapping[str, str]:
    """Return the headers of what is kept and not shown (RFC 6266)."""
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return disposition | allow_keeping(max_age)
