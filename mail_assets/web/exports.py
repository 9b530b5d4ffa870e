"""Mailboxes of searches and threads, as gzip files in the format mboxrd (RFC 4155).

A mailbox is read and written in pieces. Between two pieces it holds neither a connection nor a
thread, so clients may be slow.

A message is written from the stored rows, not from the original bytes: hidden addresses are not in
it, and no text in it can begin another message or field.
https://doc.dovecot.org/configuration_manual/mail_location/mbox/ describes the dialects.
"""

import datetime as dt
import re
import zlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from email.charset import QP, Charset
from email.header import Header
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, NamedTuple

from mail_assets.reading.exports import TextOf, list_thread, read_messages
from mail_assets.search.language.request import MAX_LIMIT, MAX_OFFSET, Group
from mail_assets.search.language.syntax import parse_request
from mail_assets.text.untrusted import clean_line
from mail_assets.web.document_types import Document
from mail_assets.web.documents import Documents
from mail_assets.web.privacy import Hidden, say_hidden
from mail_assets.web.requests import make_request, read_parameters, text_url

#: The sender of a message if addresses are hidden (RFC 2606, 2: this domain never exists).
HIDDEN_ADDRESS = "hidden@addresses.invalid"
#: The field of the last message with the number of messages; without it the mailbox is cut short.
COUNT = "X-Export-Messages"

#: The field of a message that only its subject joins to its thread.
JOINED = "X-Joined-By"
#: The field of a message whose id other texts claim too.
CONTESTED = "X-Contested"
NO_FIELDS: Mapping[str, str] = MappingProxyType({})
#: The field of a message with the number of addresses that are hidden in its text.
ADDRESSES_HIDDEN = "X-Addresses-Hidden"

_HEADER_END = re.compile(rb"\r?\n\r?\n")
#: Lines that could begin a message, with or without quotes.
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
#: Messages that are read at a time, of up to 1 MB each.
MESSAGES_AT_A_TIME = 20
#: Most messages of a thread's mailbox; that of a search has the hits of all its pages.
MAX_MESSAGES = 10_000
#: Seconds that the search of a further page waits: the sent part cannot be taken back.
PATIENCE = 60.0
#: wbits of gzip (https://docs.python.org/3/library/zlib.html#zlib.compressobj).
_GZIP = 31
ENDING = ".mbox.gz"


class Export(NamedTuple):
    """A mailbox: its file name, and the pieces of its gzip file."""

    name: str
    pieces: Generator[bytes, None, None]


@dataclass(frozen=True)
class Exports:
    """Makes mailboxes of messages as they may be published; `base_url` begins their links."""

    documents: Documents
    base_url: str

    def search(self, given: Mapping[str, str]) -> Export:
        """Return the hits of a search, on all its pages.

        Raises:
            RequestError, ServingError: a parameter is wrong, or too many searches run.
        """
        with self.documents.service.audit.watch("export") as watched:
            parameters = read_parameters(given)
            watched.request = make_request(parameters)
            pages = self._find_pages(parameters)
            first = next(pages)  # errors come before anything is sent
            watched.hits = len(first)
        ids = chain(first, chain.from_iterable(pages))
        return Export(name_file("search", parameters.get("q", ""), ENDING), self._pack(ids))

    def thread(self, id: str) -> Export:
        """Return a whole conversation, the oldest message first.

        Raises:
            ServingError: no thread has the id.
        """
        thread_id = self.documents.find_place(id).thread_id
        ids = self.documents.service.read(list_thread, thread_id, MAX_MESSAGES)
        return Export(name_file("thread", thread_id, ENDING), self._pack(map(TextOf, ids)))

    def read(self, wanted: Sequence[TextOf]) -> list[Document]:
        """Return messages as they may be published."""
        messages = self.documents.service.read(read_messages, wanted)
        found = [
            {**message.as_json(), "url": text_url(message.message_id, message.text)}
            for message in messages
        ]
        mentions = self.documents.find_mentions(message.body_text for message in messages)
        return self.documents.publication.publish(found, mentions)

    def _find_pages(self, parameters: Mapping[str, str]) -> Iterator[list[TextOf]]:
        asked = replace(
            make_request(parameters),
            group=Group.message,
            facets=False,
            explain=False,
            limit=MAX_LIMIT,
        )
        seen: set[str] = set()
        step = parse_request(asked).request.limit  # a query may have one of its own
        for offset in range(asked.offset, MAX_OFFSET + 1, step):
            patience = 0.0 if offset == asked.offset else PATIENCE
            response = self.documents.find(replace(asked, offset=offset), patience)
            found = [hit for hit in response.hits if hit.message_id not in seen]
            yield [TextOf(hit.message_id, hit.text) for hit in found]
            seen.update(hit.message_id for hit in found)
            if response.short or not found:
                return

    def _pack(self, wanted: Iterator[TextOf]) -> Generator[bytes, None, None]:
        """Yield the pieces of a gzip file; its last message has the number of messages."""
        packer = zlib.compressobj(wbits=_GZIP)
        count, last = 0, None
        while some := [*islice(wanted, MESSAGES_AT_A_TIME)]:
            texts: list[bytes] = []
            for message in self.read(some):
                texts += [self.write(last)] if last else []
                count, last = count + 1, message
            yield packer.compress(b"".join(texts))
        end = self.write(last, {COUNT: str(count)}) if last else b""
        yield packer.compress(end) + packer.flush()

    def write(self, message: Document, fields: Mapping[str, str] | None = None) -> bytes:
        """Return a message of a mailbox; its text says what is hidden in it."""
        added = {"Archived-At": f"<{self.base_url}{message['url']}>"}
        added |= {**mark_contested(message["text"], message["lists"]), **(fields or {})}
        if count := message.get("addresses_hidden", 0):
            hidden = Hidden(count, message["patch_altered"])
            message = {**message, "body_text": say_hidden(message["body_text"], hidden)}
            added[ADDRESSES_HIDDEN] = str(count)
        return write_message(message, added)


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
    """Return the header field that marks a text of a contested id; nothing of other messages."""
    if text is None:
        return {}
    which = "the text that arrived first" if text == 1 else f"text {text}, which came later"
    return {
        CONTESTED: f"several texts claim this Message-ID; this is {which}, in {', '.join(lists)}"
    }


def quote_raw(parsed: bytes, sent_at: dt.datetime, fields: Mapping[str, str] = NO_FIELDS) -> bytes:
    """Return the original bytes of a message as a message of an mbox, below some more fields."""
    text = parsed if parsed.endswith(b"\n") else parsed + b"\n"
    from_line = f"From mboxrd@z {sent_at:%a %b %e %H:%M:%S %Y}\n".encode()
    header = "".join(f"{name}: {_encode(value, name)}\n" for name, value in fields.items())
    return b"".join((from_line, header.encode(), _FROM_LINE.sub(rb">\1", text), b"\n"))


def drop_ids(parsed: bytes, ids: Sequence[str]) -> bytes:
    """Return the bytes of a message whose header refers to none of some ids."""
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
    """Return a value in ASCII, on one line or folded (RFC 2047)."""
    line = clean_line(" ".join(value.split()))
    if _PLAIN.fullmatch(line) and "=?" not in line:
        return line
    return Header(line, _UTF8, header_name=name).encode()


def _bracket(message_id: str) -> str:
    return f"<{_bare(message_id)}>"


def _bare(id: str) -> str:
    """Return an id or address without characters that would end it (RFC 6532 allows letters)."""
    return _NOT_IN_IDS.sub("", id)


def _bare_address(address: str) -> str:
    """Return an address likewise; blanks stay in a quoted local part."""
    quoted, mark, rest = address.rpartition('"@')
    return _NOT_IN_QUOTES.sub("", quoted) + mark + _bare(rest)
