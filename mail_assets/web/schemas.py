"""What documents consist of: types that describe them to programs, and nothing else.

Where addresses are hidden, what publication.py leaves out of documents is left out here too.

[list_types] What the documents of lists and months consist of, as document_types.py says it of the others.

[api_schemas] The schemas of documents, for the description of the API: made from the types of documents.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from mail_assets.search.response import Response
from mail_assets.web.responses import Code


@dataclass(frozen=True)
class SearchPage:
    """What a search says of its page, beside its response.

    `url` asks for the same search again; `previous` and `next` lead to other pages; `parameters`
    are those that were given; `indexed_to` is the newest month that was indexed.
    """

    url: str
    previous: str | None
    next: str | None
    parameters: dict[str, str]
    indexed_to: str | None


@dataclass(frozen=True)
class Place:
    """A month of a list that has a copy of a message."""

    list: str
    month: str


@dataclass(frozen=True)
class AttachedFile:
    """An attachment: its name and type as the sender says, its size in bytes, where it is had."""

    name: str
    type: str
    size: int
    url: str


@dataclass(frozen=True)
class OtherText:
    """Another text under the Message-ID of a message, with the places that have it."""

    subject: str
    from_name: str
    body_text: str
    segments: list[tuple[int, int, str]]
    sent_at: str
    places: list[Place]


@dataclass(frozen=True)
class ListNeighbours:
    """The URLs of the messages before and after one in a list."""

    list: str
    previous: str | None
    next: str | None


@dataclass(frozen=True)
class MessageDocument:
    """A message. Segments are [start, end, kind] in characters of its text.

    `other_texts` stand under the same id, as programs that number wrongly leave them; `mentions`
    are ids of messages that the texts name; `previous` and `next` are its neighbours in
    the thread, `in_lists` those in each of its lists; `depth` counts the messages above it.
    """

    message_id: str
    thread_id: str | None
    parent_id: str | None
    depth: int | None
    subject: str
    from_name: str
    from_email: str
    recipients: list[str]
    cc: list[str]
    in_reply_to: list[str]
    flags: list[str]
    body_text: str
    segments: list[tuple[int, int, str]]
    sent_at: str
    places: list[Place]
    attachments: list[AttachedFile]
    url: str
    other_texts: list[OtherText]
    previous: str | None
    next: str | None
    in_lists: list[ListNeighbours]
    mentions: list[str]


@dataclass(frozen=True)
class PostAttachment(AttachedFile):
    """An attachment of a message of a thread: its number from 1, what its content is."""

    position: int
    sha256: str
    is_patch: bool


@dataclass(frozen=True)
class PostDocument:
    """A message of a thread; of a ghost, which no archive has, only the place is known.

    `characters` is the length of the whole text, of which `body_text` may have the beginning only.
    """

    position: int
    depth: int
    message_id: str
    is_ghost: bool
    parent_id: str | None
    parent_message_id: str | None
    places: list[Place]
    from_name: str
    from_email: str
    sent_at: str | None
    subject: str
    subject_base: str
    body_text: str
    characters: int
    segments: list[tuple[int, int, str]]
    attachments: list[PostAttachment]
    url: str | None


@dataclass(frozen=True)
class SentenceDocument:
    """A sentence of a summary: `part` is question, discussion or outcome.

    The characters `start` to `end` of a message's text carry it; messages of `also` do too.
    """

    text: str
    part: str
    message_id: str
    start: int
    end: int
    also: list[str]
    url: str


@dataclass(frozen=True)
class SummaryDocument:
    """The summary of a thread when it had so many messages.

    `verbatim`: the sentences are those of the messages; else a model (`maker`) wrote them.
    """

    thread_id: str
    maker: str
    verbatim: bool
    messages: int
    first_sent_at: str
    last_sent_at: str
    participants: list[str]
    patches: list[str]
    sentences: list[SentenceDocument]


@dataclass(frozen=True)
class ThreadDocument:
    """A page of a conversation, in the order of its tree; `pages` are the URLs of all.

    `positions` counts the messages of the whole with its ghosts, `people` their senders; `mentions`
    are ids of messages that the texts of the page name.
    """

    thread_id: str
    subject: str
    lists: list[str]
    positions: int
    messages: int
    people: int
    first_sent_at: str | None
    last_sent_at: str | None
    summary: SummaryDocument | None
    posts: list[PostDocument]
    url: str
    pages: list[str]
    previous: str | None
    next: str | None
    mentions: list[str]


@dataclass(frozen=True)
class CitationDocument:
    """A message that an answer cites by a number; spans are characters of its text."""

    number: int
    message_id: str
    lists: list[str]
    month: str
    subject: str
    from_name: str
    from_email: str
    sent_at: str
    spans: list[tuple[int, int]]
    url: str


@dataclass(frozen=True)
class AnswerDocument:
    """An answer: `sufficient` where the mail answers the question, `complete` where it is whole."""

    question: str
    maker: str
    text: str
    sufficient: bool
    complete: bool
    fault: str
    citations: list[CitationDocument]
    dropped: int
    took_ms: float


@dataclass(frozen=True)
class ErrorDetail:
    """What is wrong: a code for programs, a message for people, values that would do."""

    code: Code
    message: str
    allowed: list[str]


@dataclass(frozen=True)
class ErrorDocument:
    """The one shape of errors."""

    error: ErrorDetail


@dataclass(frozen=True)
class ListDocument:
    """A mailing list: how many messages it has, in all and by month."""

    name: str
    messages: int
    months: dict[str, int]
    url: str


@dataclass(frozen=True)
class MonthPost:
    """A message of a month, with its thread and its depth there."""

    message_id: str
    subject: str
    from_name: str
    from_email: str
    sent_at: str
    url: str
    thread_id: str
    depth: int


@dataclass(frozen=True)
class MonthDocument:
    """A page of a month of a list, thread by thread, from the place `first` on.

    `previous` and `next` lead to other pages of it; `earlier` and `later` are the nearest months.
    """

    list: str
    month: str
    messages: int
    first: int
    posts: Sequence[MonthPost]
    url: str
    previous: str | None
    next: str | None
    earlier: str | None
    later: str | None


@dataclass(frozen=True)
class ListsDocument:
    """All lists; `indexed_to` is the newest month of any."""

    lists: list[ListDocument]
    indexed_to: str | None
    url: str


Schema = dict[str, Any]

#: Where the description has the schema of a document.
REFERENCE = "#/components/schemas/{model}"


def describe_documents(private: Collection[str]) -> Schema:
    """Return the schemas of all documents by name."""
    schemas: Schema = {}
    for type_ in (
        Response, SearchPage, MessageDocument, ThreadDocument, ListsDocument, MonthDocument,
        AnswerDocument, ErrorDocument,
    ):  # fmt: skip
        schema = TypeAdapter(type_).json_schema(ref_template=REFERENCE, mode="serialization")
        schemas |= schema.pop("$defs", {}) | {type_.__name__: schema}
    for schema in schemas.values():
        _leave_out(schema, private)
    for name in ("Hit", "NewerCopy"):
        _add(schemas[name], {"url": {"type": "string"}})
    sentence = {"$ref": REFERENCE.format(model="SentenceDocument")}
    # with group=thread only
    schemas["Hit"]["properties"]["summary"] = {"type": "array", "items": sentence}
    response, page = schemas.pop("Response"), schemas.pop("SearchPage")
    schemas["SimilarDocument"] = response
    schemas["SearchDocument"] = {
        **response,
        "properties": response["properties"] | page["properties"],
        "required": [*response["required"], *page["required"]],
    }
    return schemas


def _leave_out(schema: Schema, private: Collection[str]) -> None:
    for name in private:
        schema.get("properties", {}).pop(name, None)
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name not in private]


def _add(schema: Schema, properties: Mapping[str, Schema]) -> None:
    schema["properties"] |= properties
    schema["required"] += [*properties]
