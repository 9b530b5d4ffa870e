"""Where files are had: mailboxes of searches, threads and messages, and attachments.

[downloads] Files to take away: attachments, and single messages as mailboxes.

Where addresses are hidden, bytes are given only of what is text, with the addresses masked: an
archive or picture may hold them where nobody can look, and raw messages hold all.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from mail_assets.month import ListMonth
from mail_assets.reading.attachments import AttachmentContent, read_attachment, read_parsed_bytes
from mail_assets.store.objects import ObjectStore
from mail_assets.store.open import open_store
from mail_assets.web.addresses import MASK
from mail_assets.web.documents import Documents
from mail_assets.web.exports import Export, Exports, name_file, quote_raw
from mail_assets.web.privacy import is_encoded
from mail_assets.web.requests import read_attachment_number, read_id, read_query
from mail_assets.web.responses import DEFAULT_MAX_AGE, SEARCH_MAX_AGE, ServingError, allow_keeping
from mail_assets.web.searchers import Workers

#: Bytes of an attachment whose addresses are masked, at about a second for each 1 MB of a patch.
MAX_MASKED = 512 << 10
#: Types that are refused whatever they hold: other messages and parts, and keys, which name people.
_REFUSED = ("message/", "multipart/", "application/pgp-keys")
#: Controls that texts do not have: these bytes are something else.
_NO_TEXT = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f]")
#: Line ends that part no words: those of quoted-printable in any text, and in calendars (RFC 5545,
#: 3.1), cards (RFC 6350, 3.2) and directories (RFC 2849) those before a blank.
_SOFT_END = re.compile(r"=\r?\n")
_FOLD = re.compile(r"=?\r?\n[ \t]|=\r?\n")
_IS_FOLDED = re.compile(r"^(?:BEGIN:V(?:CALENDAR|CARD)|dn::?)", re.MULTILINE | re.IGNORECASE)


class Download(NamedTuple):
    """A file: its name is of letters, digits and dots, its type what it may be taken for."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True)
class Downloads:
    """Makes files of what the archive holds, as it may be published."""

    documents: Documents
    exports: Exports

    def message(self, id: str) -> Download:
        """Return a message as a mailbox: as it was sent, or as it is known where addresses hide.

        Raises:
            ServingError: there is none of that id, or it was forgotten.
            StoreError: its archive is gone.
        """
        row = self.documents.read_copies(id)[0]
        message_id = row["message_id"]
        if self.documents.publication.hides:
            data = b"".join(map(self.exports.write, self.exports.read([message_id])))
        else:
            place = (
                ListMonth(row["list"], row["month"]),
                row["archive_offset"],
                row["archive_length"],
            )
            parsed = self.documents.service.read(read_parsed_bytes, self._store, *place)
            data = quote_raw(parsed, row["sent_at"])
        return Download(name_file("message", message_id, ".mbox"), "application/mbox", data)

    def attachment(self, id: str, number: int) -> Download:
        """Return an attachment of a message by its number, from 1.

        Raises:
            ServingError: there is no such message or attachment, or its bytes are not published.
            AttachmentError, StoreError: its archive is gone, or another than was read.
        """
        copies = self.documents.read_copies(id)
        has = max(len(copy["attachments"]) for copy in copies)
        if not 1 <= number <= has:
            raise ServingError(404, "not_found", f"no attachment {number}: the message has {has}")
        found = self.documents.service.read(read_attachment, self._store, copies, number)
        about = self.documents.publication.publish(found.name)
        name = name_file(f"attachment-{number}", about, "")
        if self.documents.publication.hides:
            return Download(name, "text/plain; charset=utf-8", self._mask(found))
        return Download(name, "application/octet-stream", found.data)

    @cached_property
    def _store(self) -> ObjectStore:
        return open_store(self.documents.service.options.store)

    def _mask(self, found: AttachmentContent) -> bytes:
        """Return the bytes of a text without its addresses."""
        text = _read_text(found)
        if text is None:
            message = (
                "where addresses are hidden, attachments are given only if they are plain text of "
                f"{MAX_MASKED >> 10} KB at most, and neither keys nor encoded"
            )
            raise ServingError(403, "not_published", message)
        published: str = self.documents.publication.publish(text)
        ends = _FOLD if _IS_FOLDED.search(text) else _SOFT_END
        return self._mask_joined(text, published, ends).encode()

    def _mask_joined(self, text: str, published: str, ends: re.Pattern[str]) -> str:
        """Return a published text in which what is one address without some line ends is masked."""
        lines = ends.split(text)
        if len(lines) == 1:
            return published
        joined = iter(self.documents.publication.publish("".join(lines)))
        pieces, at = [], 0
        for line, end in zip(lines, [*ends.findall(text), ""], strict=True):
            both = zip(published[at : at + len(line)], joined, strict=False)
            pieces += ["".join(MASK if MASK in signs else signs[0] for signs in both), end]
            at += len(line) + len(end)
        return "".join(pieces)


def _read_text(found: AttachmentContent) -> str | None:
    """Return the content if it is plain text, in UTF-8 or as Windows writes it, and not encoded."""
    if len(found.data) > MAX_MASKED or found.type.lower().startswith(_REFUSED):
        return None
    for charset in ("utf-8", "cp1252"):
        try:
            text = found.data.decode(charset)
        except UnicodeDecodeError:
            continue
        return None if _NO_TEXT.search(text) or is_encoded(text) else text
    return None


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
