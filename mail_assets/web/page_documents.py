"""Documents of pages: the documents of JSON, with additions that only pages show.

Pages add the place of each hit in its thread and, for a message, its answers and the outline of its
thread.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.segments import new_text_spans, quote_mail_below
from mail_assets.mail.message.text_addresses import CONTEXT
from mail_assets.month import utc
from mail_assets.reading.conversations import (
    Node,
    Ordinal,
    read_ordinals,
    read_outline,
)
from mail_assets.reading.patch_pages import has_commits
from mail_assets.search.response import cut_beginning
from mail_assets.web.browse import Front
from mail_assets.web.document_types import Document
from mail_assets.web.documents import FIRST, Documents
from mail_assets.web.requests import Wanted, page_url

#: Messages of the thread that a message's page lists before and after it.
AROUND = (15, 30)
#: Most direct answers that a page shows below a message.
ANSWERS = 20
#: Most characters of an answer that are read, and of its new text that are shown.
READ, SHOWN = 4_000, 320


@dataclass(frozen=True)
class PageDocuments:
    """Makes the documents of pages."""

    documents: Documents
    front: Front

    def search(self, given: Mapping[str, str]) -> Document:
        """Return a search, and the place of each hit in its thread."""
        document = self.documents.search(given)
        return {**document, "ordinals": self._find_ordinals(document["hits"])}

    def similar(self, id: str) -> Document:
        """Return the messages nearest to one, and their places in their threads."""
        document = self.documents.similar(id)
        return {**document, "ordinals": self._find_ordinals(document["hits"])}

    def message(self, id: str, wanted: Wanted = FIRST) -> Document:
        """Return a message, its answers, and its thread."""
        with self.documents.service.reading():
            return self._read_message(id, wanted)

    def _read_message(self, id: str, wanted: Wanted) -> Document:
        message = self.documents.message(id, wanted)
        document: Document = {
            **message,
            "answers": [],
            "answers_in_all": 0,
            "outline": [],
            "ordinal": None,
            "thread": "",
        }
        # only the first text of an id is in the thread
        if message["thread_id"] is None or message["text"] != 1:
            return document
        message_id = message["message_id"]
        nodes = self.documents.service.read(read_outline, message_id, AROUND, READ)
        own = next((one for one in nodes if one.message_id == message_id), None)
        if own is None:
            return document
        first = next(one for one in nodes if not one.is_ghost)
        answers = [one for one in nodes if one.answers]
        shown: Document = self.documents.publication.publish(
            {
                "answers": [*map(_describe_answer, answers[:ANSWERS])],
                "answers_in_all": len(answers),
                "outline": [_describe_node(one) for one in nodes if _is_near(one, own)],
                "thread": first.subject_base or "",
            }
        )
        for one in shown["answers"]:
            one["text"] = _cut_answer(one)
        return {**document, **shown, "ordinal": Ordinal(own.number, own.messages)}

    def list(self, name: str) -> Document:
        """Return the months of a list, and its newest threads."""
        with self.documents.service.reading():
            document = self.front.archives.months(name)
            known = self.documents.service.read(has_commits, name)
            return {**document, "newest": self.front.newest([name]), "has_commits": known}

    def _find_ordinals(self, hits: Iterable[Document]) -> dict[str, Ordinal]:
        ids = [hit["message_id"] for hit in hits if hit["thread_id"] and hit["text"] == 1]
        return self.documents.service.read(read_ordinals, ids) if ids else {}


def _is_near(node: Node, own: Node) -> bool:
    before, after = AROUND
    return own.position - before <= node.position <= own.position + after


def _describe_node(node: Node) -> dict[str, Any]:
    return {
        "message_id": node.message_id,
        "is_ghost": node.is_ghost,
        "depth": node.depth,
        "from_name": node.from_name or "",
        "from_email": node.from_email or "",
        "sent_at": utc(node.sent_at) if node.sent_at else None,
        "subject_base": node.subject_base or "",
        "url": None if node.is_ghost else page_url("message", node.message_id),
    }


def _describe_answer(node: Node) -> dict[str, Any]:
    segments = [Segment(*one) for one in node.segments or ()]
    return {
        **_describe_node(node),
        "by_subject": node.by_subject,
        "body_text": node.body_text or "",
        "segments": segments,
    }


def _cut_answer(answer: Mapping[str, Any]) -> str:
    """Return the beginning of an answer's new text, within the part whose addresses are hidden."""
    body = answer["body_text"]
    segments = [Segment(*one) for one in answer["segments"]]
    parts = quote_mail_below(body, segments or [Segment(0, len(body), "text")])
    whole = len(body) if len(body) < READ else READ - CONTEXT
    text = "".join(body[start : min(end, whole)] for start, end in new_text_spans(body, parts))
    return cut_beginning(text, SHOWN, keep_lines=True)
