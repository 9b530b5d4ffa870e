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
    """The legs that a search uses. Names equal values, because Dagster shows the names."""

    hybrid = "hybrid"
    semantic = "semantic"
    fulltext = "fulltext"


class Group(StrEnum):
    """The rows of a page: conversations with their best messages, or single messages."""

    conversation = "conversation"
    message = "message"


class Sort(StrEnum):
    """The order of hits: best first; or newest or oldest first, with every word required."""

    relevance = "relevance"
    date = "date"
    oldest = "oldest"


#: The values as plain strings, which every serializer accepts.
MODES = tuple(mode.value for mode in Mode)
GROUPS = tuple(group.value for group in Group)
SORTS = tuple(sort.value for sort in Sort)
#: A synonym of Sort.date.
NEWEST = "newest"
#: The modes that ask the vector index.
VECTOR_MODES = (Mode.semantic.value, Mode.hybrid.value)
#: `patch`: has a diff in its text or attached. `reply`: answers a message. `first`: does not.
#: `applied`, `open`: states of a patch.
KINDS = ("patch", "reply", "first", "attachment", "applied", "open")
#: `latest`: the version of a patch that was applied, else its newest one.
VERSIONS = ("latest",)
#: Digits of a commit id: the fewest that a query may have, and all (SHA-256).
MIN_SHA, MAX_SHA = 7, 64
MAX_LIMIT, MAX_OFFSET = 100, 500
#: Most characters of the text that ranks; the model reads 256 tokens.
MAX_QUERY = 2_000
#: Most characters of a whole query with fields and signs; a permalink has every field.
MAX_TYPED = 100_000
#: Most lists of a request, and most characters of a list's name.
MAX_CHOICES, MAX_NAME = 50, 200
#: Most messages that a request can leave out: those of a long thread.
MAX_WITHOUT = 2_000
#: Most characters of a wrong value that an error message repeats.
QUOTED = 40


class RequestError(WrongInputError):
    """A wrong request; the message names the fault and the allowed values."""


class MissingMessageError(NotFoundError, RequestError):
    """A request about a message that is not stored, or has no text."""


class EmptyPeriodError(RequestError):
    """A request for a period that ends before it begins."""


@dataclass(frozen=True)
class After:
    """The row after which a page begins. New mail then does not shift the pages.

    `rows` is the number of rows before the page. `message_id` is the best, newest or oldest message
    of the last of them; in lists by date, `sent_at` is its time, and reading starts there. With
    `is_end` the page ends with that row, and a list by date is read backwards from it.
    """

    rows: int
    message_id: str
    sent_at: dt.datetime | None = None
    is_end: bool = False


@dataclass(frozen=True)
class Request:
    """A search in the archive.

    `query` is in the language of syntax.py. `lists`, `after`, `before` and `sender` are the options
    of the surfaces; they are combined with the query by AND. With one of them the query may be
    empty and lists the newest messages. All other fields are in the query only.

    `mode` is a value of Mode, `group` of Group, `sort` of Sort or NEWEST, which becomes Sort.date.
    `limit` and `offset` count rows of a page. If the query sets mode, group, sort, limit, offset or
    min_score, the query's values apply.

    - `lists`: empty means all lists.
    - `after` (inclusive), `before` (exclusive): days in UTC.
    - `sender`: an address, or a part of a name or address.
    - `without`: ids of messages to leave out.
    - `near`: id of the message or thread at hand. The subject of its thread is added to the
      question, and the thread is left out.
    - `after_row`: begins the page after a row of an earlier page; `offset` is then ignored.
    - `facets`: also count the matches by list, year, author and kind.
    - `names_only`: compare senders and receivers by name, and subjects and files without the
      addresses in them, so that nobody can confirm a guessed address.
    - `min_score`: cosine similarity in semantic mode, otherwise the share of the best possible
      score. Lists by date have no scores and ignore it.

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
    """Remove angle brackets and spaces around a Message-ID."""
    while (bare := message_id.strip().removeprefix("<").removesuffix(">")) != message_id:
        message_id = bare
    return bare


def quote(text: str) -> str:
    """Quote a text for an error message: escape unprintable characters, cut at QUOTED."""
    return repr(text if len(text) <= QUOTED else f"{text[:QUOTED]}...")


def check_month(month: str) -> None:
    """Check that a month is written as YYYY-MM."""
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
    """Check the length of a text, and that PostgreSQL can store it.

    Raises:
        RequestError: it is too long, has a NUL character, or is not valid Unicode.
    """
    if len(text) > most:
        raise RequestError(f"the {name} has {len(text)} characters, at most {most}")
    if "\0" in text:
        raise RequestError(f"the {name} contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes that are not UTF-8 arrive as lone surrogates
        raise RequestError(f"the {name} {quote(text)} is not valid Unicode") from None


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise RequestError(f"{name} {value}: allowed are {low} to {high}")
