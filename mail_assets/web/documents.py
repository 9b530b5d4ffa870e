"""What each page says, as plain values: the data of `.json`, and what templates are filled with.

Each document is made of what search/ and tables/ return, and has passed the one door
(publication.py) when it leaves this module.

[hit_documents] The hits of a search as plain values, with URLs of their pages and passages that may be seen.

[summaries] The summaries of threads as documents: of one thread whole, of a hit how it begins and ends.

[other_texts] The other texts of a message: what stands under the same Message-ID and says something else.

Some programs give an id twice, and some archives have two versions of a message. Each text is
found by search, so each can be read. Copies of one text differ in what their lists added to it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from mail_assets.mail.message.ids import normalize_id
from mail_assets.postgres.remote import check_rows
from mail_assets.reading.browsing import (
    Neighbours,
    count_months,
    find_known_ids,
    find_near_ids,
    find_newest_month,
    read_list_neighbours,
    read_neighbours,
)
from mail_assets.reading.conversations import (
    Conversation,
    Extent,
    Place,
    find_page_starts,
    find_place,
    measure_thread,
    read_posts,
)
from mail_assets.search.language.request import MAX_OFFSET, MAX_QUERY, Group, Request, check_text
from mail_assets.search.language.syntax import parse_request
from mail_assets.search.response import Response
from mail_assets.tables.mbox_archives import find_vanished
from mail_assets.tables.messages import show_message, utc
from mail_assets.tables.removals import find_placeholder
from mail_assets.tables.thread_summaries import read_summaries
from mail_assets.web.addresses import CONTEXT, find_addresses
from mail_assets.web.privacy import Publication, cut_texts, hide_cut_addresses
from mail_assets.web.requests import (
    attachment_url,
    find_address,
    list_url,
    make_request,
    page_url,
    read_parameters,
)
from mail_assets.web.responses import ServingError
from mail_assets.web.searchers import SearchService


def describe_hits(
    response: Response, service: SearchService, publication: Publication
) -> dict[str, Any]:
    """Return a response as the data of a page; it has still to pass the publication's door."""
    document = response.as_json()
    for hit in document["hits"]:
        for one in filter(None, (hit, hit["newer_copy"])):
            one["url"] = page_url("message", one["message_id"])
    hide_cut_addresses(document["hits"], service, publication)
    return document


Document = dict[str, Any]


def read_summary_documents(
    threads: Collection[str], service: SearchService, publication: Publication
) -> dict[str, Document]:
    """Return the summaries of threads by their ids, with the pages of their messages.

    The texts may be seen: each was hidden with what stands around it, and then cut.
    """
    documents: dict[str, Document] = {}
    for thread_id, summary in service.read(read_summaries, threads).items():
        documents[thread_id] = document = summary.as_json()
        for sentence, (before, behind) in zip(document["sentences"], summary.around, strict=True):
            text, start = sentence["text"], len(before)
            whole = before + text + behind
            sentence["text"] = publication.publish_part(whole, start, start + len(text))
            sentence["url"] = page_url("message", sentence["message_id"])
    return documents


def add_summaries(
    hits: Sequence[Document], service: SearchService, publication: Publication
) -> None:
    """Give hits, each for its whole thread, the first and the last sentence of its summary."""
    threads = {hit["thread_id"] for hit in hits if hit["thread_id"]}
    summaries = read_summary_documents(threads, service, publication)
    for hit in hits:
        summary = summaries.get(hit["thread_id"])
        sentences = summary["sentences"] if summary else []
        hit["summary"] = sentences if len(sentences) < 2 else [sentences[0], sentences[-1]]


#: Other texts that a message is shown with: anybody can send more under an id.
MAX_OTHERS = 10
#: What a list adds.
_ADDED = "footer"


def describe_others(copies: Sequence[Mapping[str, Any]]) -> list[Document]:
    """Return the other texts of a message, which is the first of its copies, with their places."""
    others: dict[str, Document] = {}
    first = _find_own(copies[0])
    for copy in copies[1:]:
        own = _find_own(copy)
        if own != first and (own in others or len(others) < MAX_OTHERS):
            place = {"list": copy["list"], "month": copy["month"]}
            others.setdefault(own, _describe(copy))["places"].append(place)
    return [*others.values()]


def choose_text(document: Document, number: int) -> Document:
    """Return a message with one of its texts, by its number from 1; the last for any beyond."""
    others = document["other_texts"][: number - 1]
    return document | (others[-1] if others else {})


def _describe(copy: Mapping[str, Any]) -> Document:
    names = ("subject", "from_name", "body_text", "segments")
    return {name: copy[name] for name in names} | {"sent_at": utc(copy["sent_at"]), "places": []}


def _find_own(copy: Mapping[str, Any]) -> str:
    """Return what the sender wrote, without blanks that programs change."""
    text = copy["body_text"]
    if not copy["segments"]:
        return " ".join(text.split())
    own = (text[start:end] for start, end, kind in copy["segments"] if kind != _ADDED)
    return " ".join("".join(own).split())


#: What a message's document takes over from its row.
_COLUMNS = (
    "message_id", "thread_id", "parent_id", "depth", "subject", "from_name", "from_email",
    "recipients", "cc", "in_reply_to", "flags", "body_text", "segments",
)  # fmt: skip
#: Ids in a text that are looked up, to be links.
MAX_IDS = 500
#: Ids that an unknown one may have been meant as.
NEAR = 5
#: Similar messages of a page.
SIMILAR = 10
#: Positions of a thread that a page has, and characters of each text: a page is bounded, whatever
#: the thread and its messages have. What is left out is on the message's own page.
POSTS, POST_CHARACTERS = 50, 20_000


@dataclass(frozen=True)
class Documents:
    """Makes the documents of pages from what a service finds; `surface` is who asks for them."""

    service: SearchService
    publication: Publication
    surface: str = "api"

    def search(self, given: Mapping[str, str], *, facets: bool = True) -> Document:
        """Return the hits of a search, with the URLs of its pages and, if wanted, what matches.

        Raises:
            RequestError, ServingError: a parameter is wrong, or too many searches run.
        """
        with self.service.audit.watch(self.surface) as watched:
            parameters = read_parameters(given)
            request = replace(make_request(parameters), facets=facets)
            watched.request = request
            response = self.find(request)
            watched.hits = len(response.hits)
        document = describe_hits(response, self.service, self.publication)
        parsed = parse_request(request)
        asked = parsed.request  # the query has options too
        if asked.group == Group.thread:
            add_summaries(document["hits"], self.service, self.publication)
        before, behind = max(0, asked.offset - asked.limit), asked.offset + asked.limit
        is_last = response.short or behind > MAX_OFFSET
        document["parameters"] = parameters
        document["indexed_to"] = self.service.read(find_newest_month)
        document["url"] = find_address(parsed)
        document["previous"] = find_address(parsed, offset=before) if asked.offset else None
        document["next"] = None if is_last else find_address(parsed, offset=behind)
        return self.publish(document)

    def find(self, request: Request, patience: float = 0.0) -> Response:
        """Answer a request as far as it may be asked; `patience` is as in `SearchService.search`.

        Raises:
            RequestError, ServingError: it may not, or too many searches run.
        """
        return self.service.search(self.publication.restrict(request), patience)

    def similar(self, id: str) -> Document:
        """Return the messages nearest in meaning to one.

        Raises:
            RequestError, ServingError: there is no such message, or too many searches run.
        """
        with self.service.audit.watch(self.surface) as watched:
            watched.mode = "similar"
            message_id = self.read_copies(id)[0]["message_id"]
            response = self.service.find_similar(message_id, SIMILAR)
            watched.hits = len(response.hits)
        return self.publish(describe_hits(response, self.service, self.publication))

    def message(self, id: str) -> Document:
        """Return a message: its text, its place in the archive and in its thread.

        Raises:
            ServingError: there is none of that id, or it was forgotten.
        """
        first, *_ = copies = self.read_copies(id)
        message_id = first["message_id"]
        document: Document = {name: first[name] for name in _COLUMNS}
        document |= {
            "sent_at": utc(first["sent_at"]),
            "places": [{"list": one["list"], "month": one["month"]} for one in copies],
            "attachments": [
                {name: part[name] for name in ("name", "type", "size")}
                | {"url": attachment_url(message_id, number)}
                for number, part in enumerate(first["attachments"], 1)
            ],
            "url": page_url("message", message_id),
            "other_texts": describe_others(copies),
        }
        document |= _link(self.service.read(read_neighbours, message_id))
        in_lists = self.service.read(read_list_neighbours, message_id)
        document["in_lists"] = [{"list": name} | _link(one) for name, one in in_lists.items()]
        texts = [one["body_text"] for one in (first, *document["other_texts"])]
        return self.publish(document, "\n".join(texts))

    def publish(self, document: Document, text: str | None = None) -> Document:
        """Return what may be seen; the ids of messages in `text` stay readable, as "mentions"."""
        mentions: set[str] = set()
        if text is not None:
            found = {address.text for address in find_addresses(text)}
            mentions = self.service.read(find_known_ids, sorted(found)[:MAX_IDS])
            document["mentions"] = sorted(mentions)
        published: Document = self.publication.publish(document, mentions)
        return published

    def read_copies(self, id: str) -> list[Document]:
        """Return the rows of a message, one for each list, month and content.

        Raises:
            RequestError, ServingError: it cannot be one, there is none, or it was forgotten.
        """
        check_text("id", id, MAX_QUERY)  # one that is longer than what is stored has a hash
        message_id = normalize_id(id)
        if copies := self.service.read(show_message, message_id):
            return copies
        if self._find_placeholder(message_id):
            raise ServingError(410, "forgotten", "this message was forgotten on request")
        if vanished := self.service.read(find_vanished, message_id):
            places = ", ".join(str(one.month) for one in vanished)
            raise ServingError(410, "removed_upstream", f"the archive has removed it: {places}")
        near = self.service.read(find_near_ids, message_id, NEAR) if message_id else []
        raise ServingError(404, "not_found", f"no message has the id {id}", allowed=near)

    def thread(self, id: str, first: int | None = None) -> Document:
        """Return a page of a conversation: the one that has the message of an id.

        `first` is the position of the first post, where others than those of a page are wanted.

        Raises:
            ServingError: no thread has the id.
        """
        place = self.find_place(id)
        read, thread_id = self.service.read, place.thread_id
        size = read(measure_thread, thread_id)
        starts = read(find_page_starts, thread_id, POSTS) or [thread_id]
        page = min(place.position // POSTS, len(starts) - 1)
        start = page * POSTS if first is None else first
        posts = read(read_posts, thread_id, Extent(start, POSTS, POST_CHARACTERS + CONTEXT))
        document = Conversation(thread_id, posts).as_json() | size.as_json()
        summaries = read_summary_documents([thread_id], self.service, self.publication)
        document["summary"] = summaries.get(thread_id)
        urls = [page_url("thread", one) for one in starts]
        document |= {
            "url": urls[page],
            "pages": urls,
            "previous": urls[page - 1] if page else None,
            "next": urls[page + 1] if page + 1 < len(urls) else None,
        }
        for post in document["posts"]:
            message_id = post["message_id"]
            post["url"] = None if post["is_ghost"] else page_url("message", message_id)
            for part in post["attachments"]:
                part["url"] = attachment_url(message_id, part["position"])
        published = self.publish(document, "\n".join(post.body_text for post in posts))
        cut_texts(published["posts"], POST_CHARACTERS)
        return published

    def lists(self) -> Document:
        """Return the lists with their months, and how many messages each has."""
        months = self.service.read(count_months)
        lists = []
        for name, some in groupby(sorted(months), key=lambda month: month.list_name):
            counts = {one.month: months[one] for one in some}
            about = {"name": name, "messages": sum(counts.values()), "months": counts}
            lists.append(about | {"url": list_url(name)})
        newest = max((month.month for month in months), default=None)
        return self.publish({"lists": lists, "indexed_to": newest, "url": "/lists"})

    def check_ready(self) -> None:
        """Raise what is wrong where the database does not answer, or hides all rows."""
        self.service.read(check_rows)

    def find_place(self, id: str) -> Place:
        """Return the thread that any id of it leads to, and the position there.

        Raises:
            RequestError, ServingError: it cannot be one, or no thread has it.
        """
        check_text("id", id, MAX_QUERY)
        wanted = normalize_id(id)
        place = self.service.read(find_place, wanted)
        if place is None:  # a forgotten message's place is known by its placeholder
            hidden = self._find_placeholder(wanted)
            place = self.service.read(find_place, hidden) if hidden else None
        if place is None:
            near = self.service.read(find_near_ids, id, NEAR) if id else []
            raise ServingError(404, "not_found", f"no thread has the id {id}", allowed=near)
        return place

    def _find_placeholder(self, message_id: str) -> str | None:
        return self.service.read(find_placeholder, self.service.options.forget_key, message_id)


def _link(neighbours: Neighbours) -> Document:
    """Return the URLs of the messages before and after one."""
    ids = neighbours._asdict().items()
    return {name: page_url("message", id) if id else None for name, id in ids}
