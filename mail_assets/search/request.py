"""What can be asked: a query, a mode, a limit, filters. Wrong input stops here."""

import datetime as dt
import re
from dataclasses import dataclass

MODES = ("hybrid", "semantic", "fulltext")
MAX_LIMIT = 100
#: A query is a question or an identifier; the model reads 256 tokens at most.
MAX_QUERY = 2_000

_DAY = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?", re.ASCII)


class RequestError(ValueError):
    """A request that cannot be answered: says what is wrong and what is allowed."""


@dataclass(frozen=True)
class Request:
    """A question to the archive.

    `lists` empty means all lists. `after` (inclusive) and `before` (exclusive) are days in
    UTC. `sender` is an address, or a part of a name or address. Quotes, `or` and `-word` in
    the query are read by the full-text leg (words.py); the semantic leg takes them as text.
    """

    query: str
    mode: str = "hybrid"
    limit: int = 10
    lists: tuple[str, ...] = ()
    after: dt.date | None = None
    before: dt.date | None = None
    sender: str = ""
    query_id: str = ""

    def __post_init__(self) -> None:
        for name, text in (("query", self.query), ("sender", self.sender)):
            if "\0" in text:
                raise RequestError(f"the {name} holds a NUL character")
            if not _is_unicode(text):
                raise RequestError(f"the {name} {text[:40]!r} is no valid Unicode")
        if not self.query.strip():
            raise RequestError("the query is empty")
        if len(self.query) > MAX_QUERY:
            raise RequestError(f"the query has {len(self.query)} characters, at most {MAX_QUERY}")
        if self.mode not in MODES:
            raise RequestError(f"mode {self.mode!r}: allowed are {', '.join(MODES)}")
        if not 1 <= self.limit <= MAX_LIMIT:
            raise RequestError(f"limit {self.limit}: allowed are 1 to {MAX_LIMIT}")
        if self.after and self.before and self.after >= self.before:
            raise RequestError(f"nothing is after {self.after} and before {self.before}")


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
        raise RequestError(f"{text!r} is no day: write YYYY, YYYY-MM or YYYY-MM-DD") from None


def _is_unicode(text: str) -> bool:
    """Say whether a text can be sent; bytes that are no UTF-8 arrive as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
