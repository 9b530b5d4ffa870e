"""Types of the documents that pages, JSON and tools show; fields.py describes their fields.

Code builds documents as these types, and openapi.py describes the API with them. If addresses are
hidden, documents and schemas lack the private keys (privacy.py). Each text then says how many
addresses it hides, and whether a patch in it no longer applies. The dataclasses of
search/response.py describe the hits of a search.
"""

from collections.abc import Sequence
from typing import Any, Literal, NotRequired

# pydantic reads no other TypedDict before Python 3.12
from typing_extensions import TypedDict

#: A document without a fixed type: a response with its page, or a feed.
Document = dict[str, Any]


class SearchPage(TypedDict):
    """The keys of a search document in addition to those of its response."""

    url: str
    previous: str | None
    next: str | None
    parameters: dict[str, str]
    indexed_to: str | None
    mbox_url: str
    mbox_truncated: bool
    atom_url: str


class Place(TypedDict):
    """A month of a list that has a copy of a message."""

    list: str
    month: str


class AttachedFile(TypedDict):
    """An attachment: name and type as the sender gave them, size in bytes, URL of the content.

    No URL: addresses are hidden, and the file is no plain text in which they can be found.
    """

    name: str
    type: str
    size: int
    url: str | None


class OtherText(TypedDict):
    """Another text that claims the Message-ID of a message, by its number, and its places."""

    text: int
    subject: str
    from_name: str
    from_email: str
    body_text: str
    addresses_hidden: NotRequired[int]
    patch_altered: NotRequired[bool]
    segments: list[tuple[int, int, str]]
    sent_at: str
    arrived_at: str
    arrival_source: str
    attachments: list[AttachedFile]
    places: list[Place]
    url: str


class Links(TypedDict):
    """The URLs of the messages before and after one."""

    previous: str | None
    next: str | None


class ListNeighbours(TypedDict):
    """The URLs of the messages before and after one in a list."""

    list: str
    previous: str | None
    next: str | None


class PatchStateDocument(TypedDict):
    """State of the patches of a mail, such as "v3 of 5, superseded by v5, which is open"."""

    message_id: str
    series_id: str
    kind: str
    label: str
    version: int
    newest: int
    state: str
    words: str
    commits: list[str]
    decided_at: str | None
    deciding_id: str
    series_url: str


class MessageDocument(TypedDict):
    """A message's text, by default the first to arrive; `previous` and `next` are in the thread."""

    message_id: str
    thread_id: str | None
    parent_id: str | None
    depth: int | None
    by_subject: bool
    subject: str
    from_name: str
    from_email: str
    recipients: list[str]
    cc: list[str]
    in_reply_to: list[str]
    flags: list[str]
    body_text: str
    addresses_hidden: NotRequired[int]
    patch_altered: NotRequired[bool]
    segments: list[tuple[int, int, str]]
    sent_at: str
    arrived_at: str
    arrival_source: str
    contested: bool
    text: int
    places: list[Place]
    attachments: list[AttachedFile]
    url: str
    other_texts: list[OtherText]
    previous: str | None
    next: str | None
    in_lists: list[ListNeighbours]
    mentions: list[str]
    patch: PatchStateDocument | None
    thread_url: str | None
    parent_url: str | None
    mbox_url: str


class PostAttachment(AttachedFile):
    """An attachment of a message of a thread: also its number from 1 and its content's hash."""

    position: int
    sha256: str
    is_patch: bool


class PostDocument(TypedDict):
    """A message of a thread, or a ghost: no archive has its message, so only its place is known."""

    position: int
    depth: int
    message_id: str
    is_ghost: bool
    contested: bool
    parent_id: str | None
    parent_message_id: str | None
    by_subject: bool
    places: list[Place]
    from_name: str
    from_email: str
    namesake: str
    sent_at: str | None
    subject: str
    subject_base: str
    body_text: str
    addresses_hidden: NotRequired[int]
    patch_altered: NotRequired[bool]
    characters: int
    segments: list[tuple[int, int, str]]
    flags: list[str]
    attachments: list[PostAttachment]
    url: str | None


class SentenceDocument(TypedDict):
    """A sentence of a summary, with the author of its message."""

    text: str
    part: str
    message_id: str
    from_name: str
    namesake: str
    start: int
    end: int
    also: list[str]
    url: str


class StatementDocument(TypedDict):
    """A sentence of a message that states a decision or names an alternative."""

    text: str
    outcome: str
    who: str
    namesake: str
    said_at: str
    standing: str
    sha: str | None
    message_id: str
    start: int
    end: int
    url: str


class DecidedCommitDocument(TypedDict):
    """A commit that messages of the thread became."""

    sha: str
    repository: str
    subject: str
    committer: str
    committed_at: str
    reverted_by: str | None


class DecisionDocument(TypedDict):
    """The record of what a thread decided: each field is a statement, a commit, or empty."""

    decided: StatementDocument | None
    superseded_by: StatementDocument | None
    earlier: list[StatementDocument]
    alternatives: list[StatementDocument]
    commits: list[DecidedCommitDocument]


class SummaryDocument(TypedDict):
    """The summary of a thread, made when it had `messages` messages."""

    thread_id: str
    maker: str
    verbatim: bool
    messages: int
    first_sent_at: str
    last_sent_at: str
    participants: list[str]
    patches: list[str]
    sentences: list[SentenceDocument]
    decision: DecisionDocument | None


class ThreadDocument(TypedDict):
    """A page of a conversation, in the order of its tree."""

    thread_id: str
    subject: str
    lists: list[str]
    positions: int
    messages: int
    people: int
    first_sent_at: str | None
    last_sent_at: str | None
    summary: SummaryDocument | None
    patch_states: list[PatchStateDocument]
    posts: list[PostDocument]
    url: str
    pages: list[str]
    previous: str | None
    next: str | None
    mentions: list[str]
    mbox_url: str
    atom_url: str


class ListDocument(TypedDict):
    """A mailing list: the number of its messages, in all and by month."""

    name: str
    messages: int
    months: dict[str, int]
    url: str
    mbox_url: str
    atom_url: str


class MonthLinks(TypedDict):
    """A month of a list: the number of its messages, and all that leads to them."""

    month: str
    messages: int
    url: str
    mbox_url: str
    atom_url: str


class ListMonthsDocument(ListDocument):
    """A mailing list with links to its months, the oldest first."""

    archives: list[MonthLinks]


class MonthPost(TypedDict):
    """A message of a month, with its thread and its depth there."""

    message_id: str
    subject: str
    from_name: str
    from_email: str
    sent_at: str
    contested: bool
    url: str
    thread_id: str | None
    depth: int
    by_subject: bool
    namesake: str


class MonthDocument(TypedDict):
    """A page of a month of a list, thread by thread, from the message number `first` on."""

    list: str
    month: str
    messages: int
    first: int
    posts: Sequence[MonthPost]  # to mypy, `list` is the key above
    patch_states: Sequence[PatchStateDocument]
    url: str
    previous: str | None
    next: str | None
    earlier: str | None
    later: str | None
    earlier_url: str | None
    later_url: str | None
    archive_url: str
    mbox_url: str
    atom_url: str


class ListsDocument(TypedDict):
    """All lists; `indexed_to` is the newest month of any."""

    lists: list[ListDocument]
    indexed_to: str | None
    url: str


class CitationDocument(TypedDict):
    """A message that an answer cites by a number; spans are characters of its text.

    `text` is the passage, empty where a chat model cites a longer excerpt.
    """

    number: int
    message_id: str
    lists: list[str]
    month: str
    subject: str
    from_name: str
    from_email: str
    namesake: str
    sent_at: str
    spans: list[tuple[int, int]]
    text: str
    contested: bool
    url: str


class AnswerDocument(TypedDict):
    """An answer: passages of the mail, best first, or a chat model's text with citations."""

    question: str
    maker: str
    text: str
    answers: bool | None
    reading: str
    complete: bool
    fault: str
    citations: list[CitationDocument]
    dropped: int
    took_ms: float


#: Error codes for programs; docs/serving.md explains each.
Code = Literal[
    "bad_request",
    "not_published",
    "cross_site",
    "not_found",
    "ambiguous",
    "unknown_list",
    "unknown_month",
    "unknown_text",
    "wrong_host",
    "method_not_allowed",
    "timeout",
    "forgotten",
    "closed",
    "removed_upstream",
    "too_large",
    "unsupported_media_type",
    "too_many_requests",
    "internal",
    "overloaded",
    "unavailable",
]


class ErrorDetail(TypedDict):
    """A code for programs, a message for people, and values that would be right."""

    code: Code
    message: str
    allowed: list[str]


class ErrorDocument(TypedDict):
    """The body of every error."""

    error: ErrorDetail
