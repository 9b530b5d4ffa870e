"""Mailboxes of lists, months, threads and searches, as gzip files in mboxrd (RFC 4155).

A mailbox is read and written in pieces. Between two pieces it uses neither a connection nor a
thread, so clients may be slow.

Messages are written from the stored rows, not from the original bytes. So hidden addresses are not
in them, and their text cannot begin another message or field.
https://doc.dovecot.org/configuration_manual/mail_location/mbox/ describes the dialects.
"""

import datetime as dt
import re
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from email.charset import QP, Charset
from email.header import Header
from functools import cached_property, partial
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import psycopg

from mail_assets import __version__
from mail_assets.month import ListMonth
from mail_assets.reading.exports import (
    ExportedMessage,
    TextOf,
    find_versions,
    list_month,
    list_thread,
    read_messages,
    read_rows,
)
from mail_assets.search.facets import NO_FACETS
from mail_assets.search.language.request import MAX_LIMIT, Group, Request
from mail_assets.search.response import Response
from mail_assets.text.untrusted import clean_line
from mail_assets.web.browse import Archives
from mail_assets.web.document_types import Document
from mail_assets.web.documents import MAX_EXPORTED, Documents
from mail_assets.web.privacy import Hidden, say_hidden
from mail_assets.web.requests import drop_empty, make_request, text_url
from mail_assets.web.responses import tag_document

#: The sender of a message if addresses are hidden (RFC 2606, 2: this domain never exists).
HIDDEN_ADDRESS = "hidden@addresses.invalid"
#: Field of the last message: the number of messages. Without it the mailbox is incomplete.
COUNT = "X-Export-Messages"

#: Field of a message that joined its thread by its subject only.
JOINED = "X-Joined-By"
#: Field of a message whose id other texts claim too.
CONTESTED = "X-Contested"
T = TypeVar("T")
NO_FIELDS: Mapping[str, str] = MappingProxyType({})
#: Field of a message: the number of addresses that are hidden in its text.
ADDRESSES_HIDDEN = "X-Addresses-Hidden"

_HEADER_END = re.compile(rb"\r?\n\r?\n")
#: Lines that could begin a message, with or without quote marks.
_FROM_LINE = re.compile(rb"^(>*+From )", re.MULTILINE)
#: A field value that needs no encoding.
_PLAIN = re.compile(r"[\x20-\x7e]{0,900}+")
_NOT_IN_IDS = re.compile(r"[\0-\x20\x7f<>]")
_NOT_IN_QUOTES = re.compile(r"[\0-\x1f\x7f<>]")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
#: Most characters of a file name.
MAX_NAME = 80

_UTF8 = Charset("utf-8")
_UTF8.header_encoding = QP
#: Messages that are read together; each may have 1 MB.
MESSAGES_AT_A_TIME = 20
#: Fields of a limited mailbox, in its last message and in the response header: the number of
#: matching messages ("at least N" if more may match), and "true" if some are left out.
TOTAL, TRUNCATED = "X-Export-Total", "X-Export-Truncated"
#: Seconds that the search for a further page may wait, because the first part is sent already.
PATIENCE = 60.0
#: wbits of gzip (https://docs.python.org/3/library/zlib.html#zlib.compressobj).
_GZIP = 31
ENDING = ".mbox.gz"


class Export(NamedTuple):
    """A mailbox: its file name, the pieces of its gzip file, its entity tag and header fields."""

    name: str
    pieces: Generator[bytes, None, None]
    tag: str = ""
    fields: Mapping[str, str] = NO_FIELDS


#: Reads the messages of one batch.
_Batch = Callable[[psycopg.Connection], list[ExportedMessage]]


@dataclass(frozen=True)
class Exports:
    """Makes mailboxes of published messages; `base_url` begins their links."""

    documents: Documents
    base_url: str

    def search(self, given: Mapping[str, str]) -> Export:
        """Return the hits of a search, on all its pages, up to MAX_EXPORTED."""
        with self.documents.service.audit.watch("export") as watched:
            parameters = drop_empty(given)
            watched.request = make_request(parameters)
            asked = replace(watched.request, group=Group.message, explain=False, limit=MAX_LIMIT)
            first = self.documents.find(asked)  # errors come before anything is sent
            watched.hits = len(first.hits)
        name = name_file("search", parameters.get("q", ""), ENDING)
        counted = first.facets or NO_FACETS
        total = f"at least {counted.total}" if counted.at_least else str(counted.total)
        is_cut = counted.total > MAX_EXPORTED
        fields = {TOTAL: total, TRUNCATED: str(is_cut).lower()}
        return Export(name, self._pack_search(asked, first, total), fields=fields)

    def thread(self, id: str) -> Export:
        """Return a whole conversation, the oldest message first."""
        thread_id = self.documents.find_place(id).thread_id
        ids = self.documents.service.read(list_thread, thread_id)
        batches = (partial(read_messages, wanted=some) for some in _batched(map(TextOf, ids)))
        return Export(name_file("thread", thread_id, ENDING), self._pack(self._publish(batches)))

    def archive(self, name: str, month: str = "") -> Export:
        """Return all messages of a list, or of one of its months, oldest month first.

        Each row of a month is a message, so the number equals that of the list's documents.
        """
        months = Archives(self.documents.service, self.documents.publication).count_months(
            name, month
        )
        versions = self.documents.service.read(find_versions, name, month or None)
        batches = self._read_months(ListMonth(name, one) for one in sorted(months))
        about = f"{name}-{month}" if month else name
        return Export(
            name_file("list", about, ENDING),
            self._pack(self._publish(batches)),
            tag_document({"versions": versions}, self._version),
        )

    @cached_property
    def _version(self) -> str:
        return f"{__version__} {self.documents.publication.addresses} {self.base_url}"

    def read(self, wanted: Sequence[TextOf]) -> list[Document]:
        """Return messages for publication."""
        return next(self._publish(iter([partial(read_messages, wanted=wanted)])))

    def _publish(self, batches: Iterator[_Batch]) -> Iterator[list[Document]]:
        for read in batches:
            messages = self.documents.service.read(read)
            found = [
                {**message.as_json(), "url": text_url(message.message_id, message.text)}
                for message in messages
            ]
            self.documents.publication.tell_namesakes(found)
            mentions = self.documents.find_mentions(message.body_text for message in messages)
            yield self.documents.publication.publish(found, mentions)

    def _read_months(self, months: Iterator[ListMonth]) -> Iterator[_Batch]:
        for month in months:
            keys = self.documents.service.read(list_month, month)
            for some in _batched(keys):
                yield partial(read_rows, month=month, keys=[*some])

    def _pack_search(
        self, asked: Request, first: Response, total: str
    ) -> Generator[bytes, None, None]:
        seen: set[str] = set()
        is_cut = False

        def find() -> Iterator[TextOf]:
            nonlocal is_cut
            page, response = asked, first
            while True:
                found = [hit for hit in response.hits if hit.message_id not in seen]
                for hit in found:
                    if len(seen) == MAX_EXPORTED:
                        is_cut = True
                        return
                    seen.add(hit.message_id)
                    yield TextOf(hit.message_id, hit.text)
                if response.next_row is None:
                    return
                page = replace(page, after_row=response.next_row, facets=False)
                response = self.documents.find(page, PATIENCE)

        batches = (partial(read_messages, wanted=some) for some in _batched(find()))
        return self._pack(
            self._publish(batches),
            lambda: {TOTAL: total, TRUNCATED: str(is_cut).lower()},
        )

    def _pack(
        self,
        batches: Iterator[list[Document]],
        end_fields: Callable[[], Mapping[str, str]] = dict,
    ) -> Generator[bytes, None, None]:
        packer = zlib.compressobj(wbits=_GZIP)
        count, last = 0, None
        for some in batches:
            texts: list[bytes] = []
            for message in some:
                texts += [self.write(last)] if last else []
                count, last = count + 1, message
            yield packer.compress(b"".join(texts))
        end = self.write(last, {COUNT: str(count), **end_fields()}) if last else b""
        yield packer.compress(end) + packer.flush()

    def write(self, message: Document, fields: Mapping[str, str] | None = None) -> bytes:
        """Return a message of a mailbox; its text reports hidden addresses."""
        added = {"Archived-At": f"<{self.base_url}{message['url']}>"}
        added |= {**mark_contested(message["text"], message["lists"]), **(fields or {})}
        if count := message.get("addresses_hidden", 0):
            hidden = Hidden(count, message["patch_altered"])
            message = {**message, "body_text": say_hidden(message["body_text"], hidden)}
            added[ADDRESSES_HIDDEN] = str(count)
        return write_message(message, added)


def _batched(items: Iterable[T]) -> Iterator[tuple[T, ...]]:
    rest = iter(items)
    while some := tuple(islice(rest, MESSAGES_AT_A_TIME)):
        yield some


def write_message(message: Mapping[str, Any], fields: Mapping[str, str]) -> bytes:
    """Return a message of an mbox: From_ line, header, quoted text, blank line.

    `message` has the keys of `ExportedMessage`, without addresses if they are hidden. `fields` are
    added to its header.
    """
    sent_at = dt.datetime.fromisoformat(message["sent_at"])
    header = "".join(f"{name}: {value}\n" for name, value in _fields(message, sent_at, fields))
    body = message["body_text"].replace("\r\n", "\n").replace("\r", "\n")
    text = body if body.endswith("\n") else f"{body}\n"
    return b"".join(
        (
            f"From mboxrd@z {sent_at:%a %b %e %H:%M:%S %Y}\n".encode(),
            header.encode(),
            b"\n",
            _FROM_LINE.sub(rb">\1", text.encode()),
            b"\n",
        )
    )


def mark_contested(text: int | None, lists: Sequence[str]) -> dict[str, str]:
    """Return the header field that marks a text of a contested id; {} for other messages."""
    if text is None:
        return {}
    which = "the text that arrived first" if text == 1 else f"text {text}, which came later"
    return {
        CONTESTED: f"several texts claim this Message-ID; this is {which}, in {', '.join(lists)}"
    }


def quote_raw(parsed: bytes, sent_at: dt.datetime, fields: Mapping[str, str] = NO_FIELDS) -> bytes:
    """Return the original bytes of a message as a message of an mbox, after added fields."""
    text = parsed if parsed.endswith(b"\n") else parsed + b"\n"
    from_line = f"From mboxrd@z {sent_at:%a %b %e %H:%M:%S %Y}\n".encode()
    header = "".join(f"{name}: {_encode(value, name)}\n" for name, value in fields.items())
    return b"".join((from_line, header.encode(), _FROM_LINE.sub(rb">\1", text), b"\n"))


def drop_ids(parsed: bytes, ids: Sequence[str]) -> bytes:
    """Remove references to some ids from the header of a message."""
    if not ids:
        return parsed
    end = _HEADER_END.search(parsed)
    header, body = (parsed[: end.start()], parsed[end.start() :]) if end else (parsed, b"")
    for id in ids:
        header = header.replace(id.encode(), b"")
    return header.replace(b"<>", b"") + body


def name_file(kind: str, about: str, ending: str) -> str:
    """Return a file name of letters, digits and dots: `thread-ID.mbox.gz`."""
    words = _NOT_IN_NAMES.sub("-", about)[:MAX_NAME].strip("-.")
    return f"{kind}-{words}{ending}" if words else f"{kind}{ending}"


def _fields(
    message: Mapping[str, Any], sent_at: dt.datetime, fields: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    address = message.get("from_email") or HIDDEN_ADDRESS
    yield "From", f"{_phrase(message['from_name'])} <{_bare_address(address)}>".lstrip()
    for name, key in (("To", "recipients"), ("Cc", "cc")):
        if addresses := message.get(key):
            yield name, ",\n ".join(_bare_address(one) for one in addresses)
    yield "Date", f"{sent_at:%a, %d %b %Y %H:%M:%S +0000}"
    yield "Subject", _encode(message["subject"], "Subject")
    yield "Message-ID", _bracket(message["message_id"])
    for name, key in (("In-Reply-To", "in_reply_to"), ("References", "references")):
        if ids := message[key]:
            yield name, "\n ".join(map(_bracket, ids))
    if message["by_subject"]:
        yield JOINED, "subject"
    yield "X-List", _encode(", ".join(message["lists"]), "X-List")
    for attachment in message["attachments"]:
        yield "X-Attachment", _encode(attachment["name"] or attachment["type"], "X-Attachment")
    yield from ((name, _encode(value, name)) for name, value in fields.items())
    yield "MIME-Version", "1.0"
    yield "Content-Type", "text/plain; charset=utf-8"
    yield "Content-Transfer-Encoding", "8bit"


def _phrase(name: str) -> str:
    """Return a display name, quoted (RFC 5322, 3.2.5) or as encoded words."""
    line = _encode(name, "From")
    if not line or line.startswith("=?"):
        return line
    return '"{}"'.format(line.replace("\\", "\\\\").replace('"', '\\"'))


def _encode(value: str, name: str) -> str:
    line = clean_line(" ".join(value.split()))
    if _PLAIN.fullmatch(line) and "=?" not in line:
        return line
    return Header(line, _UTF8, header_name=name).encode()


def _bracket(message_id: str) -> str:
    return f"<{_bare(message_id)}>"


def _bare(id: str) -> str:
    """Remove characters that would end an id or address (RFC 6532 allows letters)."""
    return _NOT_IN_IDS.sub("", id)


def _bare_address(address: str) -> str:
    """Do the same for an address; blanks stay in a quoted local part."""
    quoted, mark, rest = address.rpartition('"@')
    return _NOT_IN_QUOTES.sub("", quoted) + mark + _bare(rest)
