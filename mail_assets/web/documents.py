"""Documents that pages, JSON and tools show: searches, messages and threads.

A document is made from results of search/ and reading/. privacy.py hides addresses in it before it
leaves this module. browse.py makes the documents of lists and months.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from mail_assets.mail.message.ids import normalize_id
from mail_assets.mail.message.text_addresses import CONTEXT, MASK, list_addresses
from mail_assets.month import utc
from mail_assets.postgres.database import check_rows
from mail_assets.reading.browsing import (
    Neighbours,
    find_known_ids,
    find_near_ids,
    find_newest_month,
    read_around,
    read_list_neighbours,
    read_neighbours,
    show_message,
)
from mail_assets.reading.conversations import (
    Extent,
    Place,
    Post,
    find_page_starts,
    find_place,
    measure_thread,
    read_posts,
)
from mail_assets.reading.patch_states import ask_states
from mail_assets.search.language.request import (
    MAX_OFFSET,
    MAX_QUERY,
    After,
    Request,
    check_text,
)
from mail_assets.search.language.syntax import ParsedRequest, parse_request
from mail_assets.search.response import SHORTEST, Response
from mail_assets.summaries.summary import Statement
from mail_assets.tables.lists import was_message_shown
from mail_assets.tables.mbox_archives import find_vanished
from mail_assets.tables.removals import find_placeholder
from mail_assets.tables.thread_summaries import ThreadSummary, describe_record, read_summaries
from mail_assets.web.document_types import (
    AttachedFile,
    DecisionDocument,
    Document,
    Links,
    MessageDocument,
    OtherText,
    PatchStateDocument,
    PostDocument,
    SearchPage,
    SentenceDocument,
    SummaryDocument,
    ThreadDocument,
)
from mail_assets.web.document_types import (
    Place as ListPlace,
)
from mail_assets.web.privacy import Publication
from mail_assets.web.requests import (
    Wanted,
    attachment_url,
    drop_empty,
    find_address,
    format_url,
    make_request,
    page_url,
    series_url,
    text_url,
)
from mail_assets.web.responses import ServingError
from mail_assets.web.searchers import SearchService

#: Most ids in the texts of a page that are looked up, to become links.
MAX_IDS = 500
#: Similar ids that the error about an unknown id names.
NEAR = 5
#: Hits of a page of similar messages.
SIMILAR = 10
#: Most positions of a thread on one page, and most characters of each text. The message's own page
#: has the whole text.
POSTS, POST_CHARACTERS = 50, 20_000
#: Most messages in the mailbox of a search; every 100 of them need a search.
MAX_EXPORTED = 10_000
#: Most other texts shown with a message, because anybody can send more under its id.
MAX_OTHERS = 10
#: The text of an id that arrived first.
FIRST = Wanted()


@dataclass(frozen=True)
class Documents:
    """Makes documents for a surface ("api", "page", "mcp", ...), whose name the audit counts."""

    service: SearchService
    publication: Publication
    surface: str = "api"

    def search(self, given: Mapping[str, str], *, facets: bool = True) -> Document:
        """Return the conversations or hits of a search, with the keys of a `SearchPage`."""
        with self.service.audit.watch(self.surface) as watched:
            parameters = drop_empty(given)
            request = replace(make_request(parameters), facets=facets)
            watched.request = request
            response = self.find(request)
            watched.hits = len(response.hits)
        document = self._describe_response(response)
        parsed = parse_request(request)
        whole = find_address(parsed, offset=0)
        after = response.next_row
        page: SearchPage = {
            "parameters": parameters,
            "indexed_to": self.service.read(find_newest_month),
            "url": find_address(parsed),
            "previous": _find_previous(parsed, response.previous_row),
            "next": find_address(parsed, after_row=after, offset=0) if after else None,
            "mbox_url": format_url(whole, "mbox.gz"),
            "mbox_truncated": bool(response.facets and response.facets.total > MAX_EXPORTED),
            "atom_url": format_url(whole, "atom"),
        }
        published = self.publication.publish({**document, **page})
        for one in published["conversations"]:
            if one["first"]:  # the characters beyond were read to find addresses that a cut divides
                one["first"]["text"] = one["first"]["text"][:SHORTEST]
        return published

    def find(self, request: Request, patience: float = 0.0) -> Response:
        """Answer a request within its limits; `patience` is as in `SearchService.search`."""
        return self.service.search(self.publication.restrict(request), patience)

    def similar(self, id: str) -> Document:
        """Return the messages nearest in meaning to one."""
        with self.service.audit.watch(self.surface) as watched:
            watched.mode = "similar"
            message_id = self.read_copies(id)[0]["message_id"]
            response = self.service.find_similar(message_id, SIMILAR)
            watched.hits = len(response.hits)
        return self.publication.publish(self._describe_response(response))

    def message(self, id: str, wanted: Wanted = FIRST) -> MessageDocument:
        """Return a message: its text, its place in the archive and in its thread."""
        with self.service.reading():
            return self._read_message(id, wanted)

    def _read_message(self, id: str, wanted: Wanted) -> MessageDocument:
        first, *_ = copies = self.read_copies(id, wanted)
        message_id, text = first["message_id"], first["text"]
        own = [one for one in copies if one["text"] == text]
        places = dict.fromkeys((one["list"], one["month"]) for one in own)
        others = _describe_others(copies, self.publication)
        mentions = self.find_mentions(one["body_text"] for one in (first, *others))
        links = _link(self.service.read(read_neighbours, message_id))
        in_lists = self.service.read(read_list_neighbours, message_id)
        document: MessageDocument = {
            "message_id": message_id,
            "thread_id": first["thread_id"],
            "parent_id": first["parent_id"],
            "depth": first["depth"],
            "by_subject": bool(first["by_subject"]),
            "subject": first["subject"],
            "from_name": first["from_name"],
            "from_email": first["from_email"],
            "recipients": first["recipients"],
            "cc": first["cc"],
            "in_reply_to": first["in_reply_to"],
            "flags": first["flags"],
            "body_text": first["body_text"],
            "segments": first["segments"],
            "sent_at": utc(first["sent_at"]),
            "arrived_at": utc(first["arrived_at"]),
            "arrival_source": first["arrival_source"],
            "contested": text is not None,
            "text": text or 1,
            "places": [{"list": name, "month": month} for name, month in places],
            "attachments": _describe_attachments(first, self.publication),
            "url": text_url(message_id, text),
            "other_texts": others,
            "previous": links["previous"],
            "next": links["next"],
            "in_lists": [{"list": name, **_link(one)} for name, one in in_lists.items()],
            "mentions": mentions,
            "patch": self._read_patch(message_id, text),
            "thread_url": page_url("thread", message_id) if first["thread_id"] else None,
            "parent_url": page_url("message", first["parent_id"]) if first["parent_id"] else None,
            "mbox_url": format_url(text_url(message_id, text), "mbox"),
        }
        return self.publication.publish(document, mentions)

    def thread(self, id: str, first: int | None = None) -> ThreadDocument:
        """Return a page of a message's conversation; `first`: from the post at this position."""
        return self.read_thread(id, first)[0]

    def read_thread(
        self, id: str, first: int | None = None
    ) -> tuple[ThreadDocument, tuple[str, ...]]:
        """Return the page as `thread` does, and all ids that its texts name, known or not."""
        with self.service.reading():
            return self._read_thread(id, first)

    def _read_thread(self, id: str, first: int | None) -> tuple[ThreadDocument, tuple[str, ...]]:
        place = self.find_place(id)
        read, thread_id = self.service.read, place.thread_id
        size = read(measure_thread, thread_id)
        starts = read(find_page_starts, thread_id, POSTS) or [thread_id]
        page = min(place.position // POSTS, len(starts) - 1)
        start = page * POSTS if first is None else first
        posts = read(read_posts, thread_id, Extent(start, POSTS, POST_CHARACTERS + CONTEXT))
        named = _find_named(post.body_text for post in posts)
        mentions = sorted(read(find_known_ids, named))
        urls = [page_url("thread", one) for one in starts]
        document: ThreadDocument = {
            "thread_id": thread_id,
            "lists": [*size.lists],
            "messages": size.messages,
            "patch_states": read_patch_states(self.service, [one.message_id for one in posts]),
            "posts": [_describe_post(post, self.publication) for post in posts],
            "positions": size.positions,
            "people": size.people,
            "first_sent_at": utc(size.first_sent_at) if size.first_sent_at else None,
            "last_sent_at": utc(size.last_sent_at) if size.last_sent_at else None,
            "subject": size.subject,
            "summary": self.read_summary(thread_id),
            "url": urls[page],
            "pages": urls,
            "previous": urls[page - 1] if page else None,
            "next": urls[page + 1] if page + 1 < len(urls) else None,
            "mentions": mentions,
            "mbox_url": format_url(urls[0], "mbox.gz"),
            "atom_url": format_url(urls[0], "atom"),
        }
        self.publication.tell_namesakes(document["posts"])
        published = self.publication.publish(document, mentions)
        _cut_texts(published["posts"], POST_CHARACTERS)
        return published, named

    def find_mentions(self, texts: Iterable[str]) -> list[str]:
        """Return the ids of messages that texts name, sorted."""
        return sorted(self.service.read(find_known_ids, _find_named(texts)))

    def read_copies(self, id: str, wanted: Wanted = FIRST) -> list[dict[str, Any]]:
        """Return the rows of a message, one for each list, month and content, grouped by text.

        The wanted text comes first; by default that is the one that arrived first.
        """
        check_text("id", id, MAX_QUERY)  # a longer id is stored as its hash
        message_id = normalize_id(id)
        if copies := self.service.read(show_message, message_id):
            return _put_first(copies, wanted)
        if self._find_placeholder(message_id):
            raise ServingError(410, "forgotten", "this message was forgotten on request")
        if vanished := self.service.read(find_vanished, message_id):
            places = ", ".join(str(one.month) for one in vanished)
            raise ServingError(410, "removed_upstream", f"the archive has removed it: {places}")
        self._refuse_closed(message_id)
        near = self.service.read(find_near_ids, message_id, NEAR) if message_id else []
        raise ServingError(404, "not_found", f"no message has the id {id}", allowed=near)

    def find_place(self, id: str) -> Place:
        """Return the thread of an id, and its position there."""
        check_text("id", id, MAX_QUERY)
        wanted = normalize_id(id)
        place = self.service.read(find_place, wanted)
        if place is None:  # the thread of a forgotten message has only its placeholder
            placeholder = self._find_placeholder(wanted)
            place = self.service.read(find_place, placeholder) if placeholder else None
        if place is None:
            self._refuse_closed(wanted)
            near = self.service.read(find_near_ids, id, NEAR) if id else []
            raise ServingError(404, "not_found", f"no thread has the id {id}", allowed=near)
        return place

    def _read_patch(self, message_id: str, text: int | None) -> PatchStateDocument | None:
        # other texts under the id are no patches of the series
        found = read_patch_states(self.service, [message_id]) if text in (None, 1) else []
        return found[0] if found else None

    def read_summary(self, thread_id: str) -> SummaryDocument | None:
        """Return the summary of a thread, None without one."""
        found = self.service.read(read_summaries, [thread_id]).get(thread_id)
        return describe_summary(found, self.publication) if found else None

    def _refuse_closed(self, message_id: str) -> None:
        if self.service.read(was_message_shown, message_id):
            raise ServingError(410, "closed", "this message is no longer published here")

    def check_ready(self) -> None:
        """Raise an error if the database does not answer, or hides all rows."""
        self.service.read(check_rows)

    def hide_cut_addresses(self, hits: Iterable[Document]) -> None:
        """Hide the addresses that the borders of the hits' chunks cut."""
        chunks = [chunk for hit in hits for chunk in hit["chunks"] if chunk["spans"]]
        if not chunks or not self.publication.hides:
            return
        around = self.service.read(read_around, {chunk["key"] for chunk in chunks}, CONTEXT)
        for chunk in chunks:
            parts = _publish_spans(chunk, around.get(chunk["key"], ()), self.publication)
            chunk["text"] = "".join(parts)

    def _describe_response(self, response: Response) -> Document:
        document = response.as_json()
        for hit in document["hits"]:
            for one in filter(None, (hit, hit["newer_copy"])):
                one["url"] = text_url(one["message_id"], one.get("text"))
        urls = {hit["message_id"]: hit["url"] for hit in document["hits"]}
        for one in document["conversations"]:
            one["url"] = urls[one["best"][0]]
            if first := one["first"]:
                first["url"] = page_url("message", first["message_id"])
                one["url"] = page_url("thread", first["message_id"])
        if near := response.near:
            page = "thread" if near.thread_id else "message"
            document["near"]["url"] = page_url(page, near.message_id)
        self.hide_cut_addresses(document["hits"])
        firsts = (one["first"] for one in document["conversations"] if one["first"])
        self.publication.tell_namesakes([*document["hits"], *firsts])
        return document

    def _find_placeholder(self, message_id: str) -> str | None:
        return self.service.read(find_placeholder, self.service.options.forget_key, message_id)


def read_patch_states(service: SearchService, ids: Sequence[str]) -> list[PatchStateDocument]:
    """Return the patch states of the messages that have patches."""
    found = service.read(lambda connection: ask_states(connection, ids).read())
    return [
        {**vars(one), "commits": [*one.commits], "series_url": series_url(one.message_id)}  # type: ignore[typeddict-item]
        for one in found.values()
    ]


def _find_previous(parsed: ParsedRequest, before: After | None) -> str | None:
    if before is None:
        return None
    if before.rows <= MAX_OFFSET:
        return find_address(parsed, offset=before.rows)
    return find_address(parsed, after_row=before, offset=0)


def _find_named(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts that look like ids, sorted, at most MAX_IDS."""
    found = {address.text for text in texts for address in list_addresses(text)}
    return tuple(sorted(found)[:MAX_IDS])


def _put_first(copies: list[dict[str, Any]], wanted: Wanted) -> list[dict[str, Any]]:
    name, number = wanted
    asked = [one for one in copies if name in ("", one["list"]) and number in (0, one["text"] or 1)]
    if not asked:
        texts = sorted({one["text"] or 1 for one in copies})
        lists = sorted({one["list"] for one in copies})
        named = f"texts 1 to {texts[-1]}" if len(texts) > 1 else "one text"
        message = f"this id has {named}, in {', '.join(lists)}; there is no other"
        raise ServingError(404, "unknown_text", message, allowed=[*lists, *map(str, texts)])
    text = asked[0]["text"]
    return sorted(copies, key=lambda one: (one["text"] != text, name not in ("", one["list"])))


def _link(neighbours: Neighbours) -> Links:
    previous, after = neighbours
    return {
        "previous": page_url("message", previous) if previous else None,
        "next": page_url("message", after) if after else None,
    }


def _describe_post(post: Post, publication: Publication) -> PostDocument:
    return {
        **vars(post),  # type: ignore[typeddict-item]
        "namesake": "",
        "places": [{"list": one.list_name, "month": one.month} for one in post.places],
        "sent_at": utc(post.sent_at) if post.sent_at else None,
        "segments": [*post.segments],
        "flags": [*post.flags],
        "attachments": [
            {
                **asdict(part),
                "url": attachment_url(post.message_id, part.position)
                if publication.offers(part.name, part.type, part.size)
                else None,
            }
            for part in post.attachments
        ],
        "url": None if post.is_ghost else page_url("message", post.message_id),
    }


def _describe_attachments(row: Mapping[str, Any], publication: Publication) -> list[AttachedFile]:
    return [
        {
            "name": part["name"],
            "type": part["type"],
            "size": part["size"],
            "url": attachment_url(row["message_id"], number, row["text"])
            if publication.offers(part["name"], part["type"], part["size"])
            else None,
        }
        for number, part in enumerate(row["attachments"], 1)
    ]


def _describe_others(
    copies: Sequence[Mapping[str, Any]], publication: Publication
) -> list[OtherText]:
    others: dict[int, OtherText] = {}
    for copy in copies:
        text = copy["text"]
        if text == copies[0]["text"] or (text not in others and len(others) == MAX_OTHERS):
            continue
        new: OtherText = {
            "text": text,
            "subject": copy["subject"],
            "from_name": copy["from_name"],
            "from_email": copy["from_email"],
            "body_text": copy["body_text"],
            "segments": copy["segments"],
            "sent_at": utc(copy["sent_at"]),
            "arrived_at": utc(copy["arrived_at"]),
            "arrival_source": copy["arrival_source"],
            "attachments": _describe_attachments(copy, publication),
            "places": [],
            "url": text_url(copy["message_id"], text),
        }
        places = others.setdefault(text, new)["places"]
        place: ListPlace = {"list": copy["list"], "month": copy["month"]}
        if place not in places:
            places.append(place)
    return [*others.values()]


def describe_summary(summary: ThreadSummary, publication: Publication) -> SummaryDocument:
    """Return a summary for publication; addresses are hidden as in the whole messages."""
    sentences: list[SentenceDocument] = []
    every = zip(summary.sentences, summary.around, summary.authors, strict=True)
    for sentence, around, (name, email) in every:
        shown = publication.publish_sentence(sentence["text"], around)
        url = page_url("message", sentence["message_id"])
        author = {"from_name": publication.publish(name), "namesake": publication.mark(email)}
        sentences.append({**sentence, **author, "text": shown, "url": url})  # type: ignore[typeddict-item]
    names = ("thread_id", "maker", "verbatim", "messages", "participants", "patches")
    return {
        **{name: getattr(summary, name) for name in names},  # type: ignore[typeddict-item]
        "first_sent_at": utc(summary.first_sent_at),
        "last_sent_at": utc(summary.last_sent_at),
        "sentences": sentences,
        "decision": _describe_decision(summary, publication),
    }


def _describe_decision(summary: ThreadSummary, publication: Publication) -> DecisionDocument | None:
    def show(one: Statement) -> str:
        return publication.publish_sentence(one.text, summary.read_context(one))

    record = describe_record(summary.read_record(), show)
    if record is None:
        return None
    said = [record["decided"], record["superseded_by"], *record["earlier"], *record["alternatives"]]
    for one in said:
        if one is not None:
            one["url"] = page_url("message", one["message_id"])
            one["namesake"] = publication.mark(one.pop("from_email"))
    return cast(DecisionDocument, record)


def _publish_spans(
    chunk: Document, around: Sequence[str], publication: Publication
) -> Iterator[str]:
    """Yield the text of each span; mask all of it if its message was replaced meanwhile."""
    at = 0
    for place, (start, end) in enumerate(chunk["spans"]):
        text = chunk["text"][at : at + end - start]
        at += end - start
        whole = around[place] if place < len(around) else ""
        first = min(start, CONTEXT)
        last = first + len(text)
        is_there = whole[first:last] == text
        yield publication.publish_part(whole, first, last) if is_there else MASK * len(text)


def _cut_texts(posts: Iterable[PostDocument], most: int) -> None:
    """Cut texts of posts to `most` characters, after a whole line if there is one.

    The texts have up to CONTEXT characters more; addresses are already hidden.
    """
    for post in posts:
        text = post["body_text"]
        if len(text) > most:
            end = text.rfind("\n", 0, most) + 1 or most
            post["body_text"] = text[:end]
            post["segments"] = [
                (start, min(stop, end), kind)
                for start, stop, kind in post["segments"]
                if start < end
            ]
