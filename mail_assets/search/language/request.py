"""A search request: query, mode, page and filters, checked when it is made.

syntax.py reads the fields in the query, such as `from:tom`.
"""

import datetime as dt
import math
from dataclasses import dataclass
from enum import StrEnum

from mail_assets.errors import NotFoundError, WrongInputError, name_nearest
from mail_assets.mail.message.ids import MAX_ID
from mail_assets.month import is_month


class Mode(StrEnum):
    """The way messages are found; members are named as their values: Dagster uses the names."""

    hybrid = "hybrid"
    semantic = "semantic"
    fulltext = "fulltext"


class Group(StrEnum):
    """The rows of a page: conversations with their best messages, or messages by themselves."""

    conversation = "conversation"
    message = "message"


class Sort(StrEnum):
    """The order of hits: the best first, or the newest or oldest messages that have every word."""

    relevance = "relevance"
    date = "date"
    oldest = "oldest"


#: The values as plain strings, which every serializer knows.
MODES = tuple(mode.value for mode in Mode)
GROUPS = tuple(group.value for group in Group)
SORTS = tuple(sort.value for sort in Sort)
#: Another word for an order.
NEWEST = "newest"
#: The modes that ask the vector index.
VECTOR_MODES = (Mode.semantic.value, Mode.hybrid.value)
#: `patch`: a diff in the text or attached; `reply` answers a message, `first` does not. `applied`
#: and `open` are states of a patch.
KINDS = ("patch", "reply", "first", "attachment", "applied", "open")
#: `latest`: the version of a patch that was applied, else its newest one.
VERSIONS = ("latest",)
#: Digits of the shortest id of a commit that may be written, and of a whole one (SHA-256).
MIN_SHA, MAX_SHA = 7, 64
MAX_LIMIT, MAX_OFFSET = 100, 500
#: Characters that are searched for: a question or an identifier; the model reads 256 tokens.
MAX_QUERY = 2_000
#: Characters of a query with all its fields and signs: a permalink holds every field.
MAX_TYPED = 100_000
#: Lists of a request, and characters of a name.
MAX_CHOICES, MAX_NAME = 50, 200
#: Messages that a request leaves out: those of a long thread.
MAX_WITHOUT = 2_000
#: Characters of a wrong value that its error repeats.
QUOTED = 40


class RequestError(WrongInputError):
    """A request that cannot be answered: names the fault and the allowed values."""


class MissingMessageError(NotFoundError, RequestError):
    """A request about a message that is not stored, or has no text."""


class EmptyPeriodError(RequestError):
    """A request for a period that ends before it begins."""


@dataclass(frozen=True)
class After:
    """The row after which a page begins, so that mail that arrives meanwhile moves no page.

    `rows` come before the page. `message_id` is that of the best, newest or oldest message of the
    last one, `sent_at` its time in lists by date: from there on they are read. With `is_end` the
    page ends with that row: a list by date is read backwards from it.
    """

    rows: int
    message_id: str
    sent_at: dt.datetime | None = None
    is_end: bool = False


@dataclass(frozen=True)
class Request:
    """A search in the archive.

    The query is in the language of syntax.py. Its fields are combined with AND with `lists`,
    `after`, `before` and `sender`, which surfaces have as options; all other fields are in the
    query alone. It may be empty if there is one of these four, which then finds the newest
    messages. `mode` is a value of Mode, `group` one of Group, `sort` one of Sort, or NEWEST, which
    becomes Sort.date. The query may set these, limit, offset and min_score too, and then its values
    count. `limit` and `offset` count the rows of a page.

    `lists` empty means all lists. `after` (inclusive) and `before` (exclusive) are days in UTC.
    `sender` is an address, or a part of a name or address. Messages with the ids in `without` are
    left out.
    `near` is the id of the message or thread that somebody reads: the subject of its thread joins
    the question, and the thread is left out. `after_row` begins the page after a row of an earlier
    page, however deep; `offset` then says nothing.
    `facets` asks how many messages match, by list, year, author and kind. With `names_only` senders
    and receivers are compared by their names, and subjects and files without the addresses in them,
    so that nobody can confirm a guessed address. `min_score` is in the scale of the mode: cosine
    similarity in semantic, the share of the best possible score in the others. Messages that are
    listed by date have no score, and are not cut.

    Raises:
        RequestError: a field is wrong.
    """

    query: str
    mode: str = Mode.hybrid
    limit: int = 10
    lists: tuple[str, ...] = ()
    after: dt.date | None = None
    before: dt.date | None = None
    sender: str = ""
    query_id: str = ""
    offset: int = 0
    min_score: float | None = None
    group: str = Group.conversation
    explain: bool = False
    sort: str = Sort.relevance
    facets: bool = False
    without: tuple[str, ...] = ()
    names_only: bool = False
    near: str = ""
    after_row: After | None = None

    def __post_init__(self) -> None:
        check_text("query", self.query, MAX_TYPED)
        for name in ("sender", "near"):
            check_text(name, getattr(self, name), MAX_QUERY)
        _within("number of lists", len(self.lists), 0, MAX_CHOICES)
        for name in self.lists:
            check_text("list", name, MAX_NAME)
        _within("number of messages to leave out", len(self.without), 0, MAX_WITHOUT)
        for message_id in self.without:
            check_text("id", message_id, MAX_ID)
        if not self.query.strip() and not self.has_filters:
            raise RequestError("the query is empty")
        one_of("mode", self.mode, MODES)
        one_of("group", self.group, GROUPS)
        if self.sort == NEWEST:
            object.__setattr__(self, "sort", Sort.date.value)
        one_of("sort", self.sort, (*SORTS, NEWEST))
        _within("limit", self.limit, 1, MAX_LIMIT)
        _within("offset", self.offset, 0, MAX_OFFSET)
        if self.min_score is not None and not math.isfinite(self.min_score):
            raise RequestError(f"minimum score {self.min_score}: must be a number")
        if self.after and self.before and self.after >= self.before:
            raise EmptyPeriodError(f"nothing is after {self.after} and before {self.before}")

    @property
    def rows_before(self) -> int:
        """The number of rows before the page."""
        return self.after_row.rows if self.after_row else self.offset

    @property
    def has_filters(self) -> bool:
        """True if any attribute, such as `sender`, filters."""
        return any((self.lists, self.after, self.before, self.sender))


def strip_brackets(message_id: str) -> str:
    """Return a Message-ID without any angle brackets and spaces around it."""
    while (bare := message_id.strip().removeprefix("<").removesuffix(">")) != message_id:
        message_id = bare
    return bare


def quote(text: str) -> str:
    """Return a text for an error message: unprintable characters escaped, cut at 40."""
    return repr(text if len(text) <= QUOTED else f"{text[:QUOTED]}...")


def check_month(month: str) -> None:
    """Check a month of an archive."""
    if not is_month(month):
        raise RequestError(f"month {quote(month)}: write YYYY-MM, from 1970-01 to 2099-12")


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Check that a value is allowed."""
    if value not in allowed:
        hint = name_nearest(value, allowed)
        named = ", ".join(filter(None, allowed))
        said = f"{name} {quote(value)}: allowed are {named}; {hint}"
        raise RequestError(said.rstrip("; "))


def check_text(name: str, text: str, most: int) -> None:
    """Check the length of a text, and that PostgreSQL takes it.

    Raises:
        RequestError: it is too long, or PostgreSQL does not take it.
    """
    if len(text) > most:
        raise RequestError(f"the {name} has {len(text)} characters, at most {most}")
    if "\0" in text:
        raise RequestError(f"the {name} holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes that are no UTF-8 arrive as lone surrogates
        raise RequestError(f"the {name} {quote(text)} is no valid Unicode") from None


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise RequestError(f"{name} {value}: allowed are {low} to {high}")
