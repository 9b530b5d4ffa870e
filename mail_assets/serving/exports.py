"""Mailboxes of searches and threads: read and written piece by piece, for as long as one listens.

Between two pieces nothing is held, neither a connection nor a thread: a client may be slow.
"""

import zlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import NamedTuple

from mail_assets.reading.exports import list_thread, read_messages
from mail_assets.search.language.request import MAX_LIMIT, MAX_OFFSET
from mail_assets.search.language.syntax import parse_request
from mail_assets.serving.documents import Document, Documents
from mail_assets.serving.mailbox import COUNT, name_file, write_message
from mail_assets.serving.parameters import make_request, read_parameters
from mail_assets.serving.urls import page_url

#: Messages that are read at once, of up to 1 MB each.
MESSAGES_AT_A_TIME = 20
#: Messages of a thread's export; that of a search has all that its pages have.
MAX_MESSAGES = 10_000

#: Seconds that a further page waits for its search: what is sent already cannot be taken back.
PATIENCE = 60.0

#: wbits of gzip (https://docs.python.org/3/library/zlib.html#zlib.compressobj).
_GZIP = 31
ENDING = ".mbox.gz"


class Export(NamedTuple):
    """A mailbox and the name of its file; the pieces are those of the gzip file."""

    name: str
    pieces: Generator[bytes, None, None]


@dataclass(frozen=True)
class Exports:
    """Makes mailboxes of documents, as they may be published; `base_url` leads to their pages."""

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
            first = next(pages)  # what is wrong is told before anything is sent
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
        return Export(name_file("thread", thread_id, ENDING), self._pack(iter(ids)))

    def read(self, ids: Sequence[str]) -> list[Document]:
        """Return messages as they may be published."""
        messages = self.documents.service.read(read_messages, ids)
        texts = "\n".join(message.body_text for message in messages)
        document = {
            "messages": [
                {**message.as_json(), "url": page_url("message", message.message_id)}
                for message in messages
            ]
        }
        published: list[Document] = self.documents.publish(document, texts)["messages"]
        return published

    def _find_pages(self, parameters: Mapping[str, str]) -> Iterator[list[str]]:
        """Yield the ids of the hits of page after page, each once."""
        asked = replace(make_request(parameters), facets=False, explain=False, limit=MAX_LIMIT)
        seen: set[str] = set()
        step = parse_request(asked).request.limit  # a query may have one of its own
        for offset in range(asked.offset, MAX_OFFSET + 1, step):
            patience = 0.0 if offset == asked.offset else PATIENCE
            response = self.documents.find(replace(asked, offset=offset), patience)
            found = [hit.message_id for hit in response.hits if hit.message_id not in seen]
            yield found
            seen.update(found)
            if response.short or not found:
                return

    def _pack(self, ids: Iterator[str]) -> Generator[bytes, None, None]:
        """Yield a gzip file of messages, some at a time; the last says how many they are."""
        packer = zlib.compressobj(wbits=_GZIP)
        count, last = 0, None
        while some := [*islice(ids, MESSAGES_AT_A_TIME)]:
            texts: list[bytes] = []
            for message in self.read(some):
                texts += [self.write(last)] if last else []
                count, last = count + 1, message
            yield packer.compress(b"".join(texts))
        end = self.write(last, {COUNT: str(count)}) if last else b""
        yield packer.compress(end) + packer.flush()

    def write(self, message: Document, fields: Mapping[str, str] | None = None) -> bytes:
        """Return a message of a mailbox."""
        url = f"{self.base_url}{message['url']}"
        return write_message(message, {"Archived-At": f"<{url}>", **(fields or {})})
