"""A search request: query, mode, page and filters, checked when it is made.

Filters written in the query, such as `from:tom`, are read by syntax.py.
"""

import datetime as dt
import math
import re
from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """How messages are found. Members are named as their values: Dagster configures by name."""

    hybrid = "hybrid"
    semantic = "semantic"
    fulltext = "fulltext"


class Group(StrEnum):
    """What one hit represents: a message, or a thread by its best message."""

    message = "message"
    thread = "thread"


#: The values as plain strings, which every serializer knows.
MODES = tuple(mode.value for mode in Mode)
GROUPS = tuple(group.value for group in Group)
#: The modes that ask the vector index.
VECTOR_MODES = (Mode.semantic.value, Mode.hybrid.value)
#: `patch`: a diff in the text or attached; `reply` answers a message, `first` does not.
KINDS = ("patch", "reply", "first")
MAX_LIMIT, MAX_OFFSET = 100, 500
#: A query is a question or an identifier; the model reads 256 tokens at most.
MAX_QUERY = 2_000
#: Characters of a wrong value that its error repeats.
QUOTED = 40

_DAY = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?", re.ASCII)
_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])", re.ASCII)


class RequestError(ValueError):
    """A request that cannot be answered: the message says what is wrong and what is allowed."""


@dataclass(frozen=True)
class Request:
    """A search in the archive.

    The query may contain filters itself (syntax.py) and, for full text, quotes, `or` and `-word`
    (query.py); it may be empty if there is a filter, which then finds the newest messages.
    `mode` is a value of Mode, `group` one of Group.

    `lists` empty means all lists; `months` are those of the archives, "YYYY-MM". `after`
    (inclusive) and `before` (exclusive) are days in UTC. `sender` is an address, or a part of a
    name or address; `receiver`, `subject` and `attachment` (a file's name) are parts too.
    `thread` is the id of any message of a thread; `without` are ids of messages that are searched
    as if they were not there. `min_score` is in the scale of the mode:
    cosine similarity in semantic, the share of the best possible score in the others.

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
    months: tuple[str, ...] = ()
    receiver: str = ""
    subject: str = ""
    thread: str = ""
    kinds: tuple[str, ...] = ()
    has_attachment: bool = False
    attachment: str = ""
    group: str = Group.message
    explain: bool = False
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("query", "sender", "receiver", "subject", "thread", "attachment"):
            _check_text(name, getattr(self, name))
        for message_id in self.without:
            _check_text("id", message_id)
        if not self.query.strip() and not self.has_filters:
            raise RequestError("the query is empty")
        _one_of("mode", self.mode, MODES)
        _one_of("group", self.group, GROUPS)
        for kind in self.kinds:
            _one_of("kind", kind, KINDS)
        _within("limit", self.limit, 1, MAX_LIMIT)
        _within("offset", self.offset, 0, MAX_OFFSET)
        if self.min_score is not None and not math.isfinite(self.min_score):
            raise RequestError(f"minimum score {self.min_score}: must be a number")
        for month in self.months:
            if not _MONTH.fullmatch(month):
                raise RequestError(f"month {quote(month)}: write YYYY-MM")
        if self.after and self.before and self.after >= self.before:
            raise RequestError(f"nothing is after {self.after} and before {self.before}")

    @property
    def has_filters(self) -> bool:
        """Whether any field filters."""
        given = (self.lists, self.months, self.after, self.before, self.sender, self.receiver)
        more = (self.subject, self.thread, self.kinds, self.has_attachment, self.attachment)
        return any((*given, *more))


def parse_day(text: str) -> dt.date:
    """Read "2024", "2024-05" or "2024-05-17" as its first day.

    Raises:
        RequestError: it is none of these.
    """
    match = _DAY.fullmatch(text.strip())
    try:
        if not match:
            raise ValueError
        return dt.date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError:
        raise RequestError(f"{quote(text)} is no day: write YYYY, YYYY-MM or YYYY-MM-DD") from None


def strip_brackets(message_id: str) -> str:
    """Return a Message-ID without angle brackets and spaces around it."""
    return message_id.strip().removeprefix("<").removesuffix(">")


def quote(text: str) -> str:
    """Return a text for an error message: unprintable characters escaped, cut at 40."""
    return repr(text if len(text) <= QUOTED else f"{text[:QUOTED]}...")


def _check_text(name: str, text: str) -> None:
    if len(text) > MAX_QUERY:
        raise RequestError(f"the {name} has {len(text)} characters, at most {MAX_QUERY}")
    if "\0" in text:
        raise RequestError(f"the {name} holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes that are no UTF-8 arrive as lone surrogates
        raise RequestError(f"the {name} {quote(text)} is no valid Unicode") from None


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise RequestError(f"{name} {quote(value)}: allowed are {', '.join(allowed)}")


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise RequestError(f"{name} {value}: allowed are {low} to {high}")
