"""Results of the tools: text of limited size, links, freshness, and what the result lacks."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Annotated, Literal, TypeVar

import psycopg
from pydantic import BaseModel, Field

from mail_assets.indexes.live import find_live_vectors, find_live_words
from mail_assets.indexes.names import manifest_name
from mail_assets.reading.browsing import Freshness, read_freshness
from mail_assets.search.open import SearchSettings
from mail_assets.web.documents import Documents
from mail_assets.web.mcp_text import CHARACTERS_OF_TOKEN, Described, read_id
from mail_assets.web.responses import ServingError

D = TypeVar("D")

#: Seconds for which the freshness of lists is cached.
FRESH_SECONDS = 30.0
#: Approximate characters of a link in a result.
LINK = 120
#: Most lists that a result names with their newest mail; list_lists has all.
MAX_FRESH = 8

Id = Annotated[str, Field(min_length=1, max_length=2_000, description="a Message-ID")]
Tokens = Annotated[int, Field(ge=200, le=8_000, description="about the longest result")]


class Link(BaseModel):
    """A link to the page of what a result shows."""

    kind: Literal["message", "thread", "list"]
    id: str
    url: str


class NotIndexed(BaseModel):
    """Mail of a list that a search does not find yet, or not at all."""

    list: str
    messages_by_words: int
    passages_by_meaning: int
    unreadable: int


class Result(BaseModel):
    """A result: its text, its links, and what it cannot say.

    `more` are arguments that give the rest. `newest` has the day of the newest mail by list.
    """

    text: str
    links: list[Link]
    more: dict[str, int] | None
    newest: dict[str, str | None]
    not_indexed: list[NotIndexed]


class ResultMaker:
    """Completes results with the freshness of the published lists, cached for FRESH_SECONDS."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._lock = threading.Lock()
        self._read: tuple[float, list[Freshness]] | None = None

    def freshness(self) -> list[Freshness]:
        """Return the freshness of each list."""
        with self._lock:
            if self._read is None or time.monotonic() - self._read[0] > FRESH_SECONDS:
                service = self._documents.service
                options = service.options
                found = service.read(_read_freshness, options.search, options.lists)
                self._read = time.monotonic(), found
            return self._read[1]

    def _read_fresh(self, list_name: str) -> list[Freshness]:
        return [one for one in self.freshness() if list_name in ("", one.list_name)]

    def room(self, tokens: int, list_name: str = "") -> int:
        """Return the tokens that remain after the line on freshness and a link."""
        taken = len(_say_fresh(self._read_fresh(list_name))) + LINK
        return max(tokens // 2, tokens - taken // CHARACTERS_OF_TOKEN)

    def finish(self, made: Described, list_name: str = "", *, says_fresh: bool = True) -> Result:
        """Return a result with the freshness of the searched list, or of all lists."""
        lists = self._read_fresh(list_name)
        blocks = [made.text, *([_say_fresh(lists)] if says_fresh else []), made.rest]
        return Result(
            text="\n\n".join(block for block in blocks if block),
            links=[Link(kind=kind, id=id, url=url) for kind, id, url in made.links],
            more=made.more,
            newest={
                one.list_name: f"{one.newest:%Y-%m-%d}" if one.newest else None for one in lists
            },
            not_indexed=[
                NotIndexed(
                    list=one.list_name,
                    messages_by_words=one.words,
                    passages_by_meaning=one.vectors,
                    unreadable=one.unreadable,
                )
                for one in lists
                if one.words or one.vectors or one.unreadable
            ],
        )


def _read_freshness(
    connection: psycopg.Connection, search: SearchSettings, lists: Iterable[str]
) -> list[Freshness]:
    live = find_live_vectors(connection, search.vectors, search.encoder, search.precision)
    vectors = manifest_name(search.vectors, live)
    words = manifest_name(search.words, find_live_words(connection, search.words))
    return read_freshness(connection, lists, vectors, words)


def _say_fresh(lists: Iterable[Freshness]) -> str:
    known = sorted(
        (one for one in lists if one.newest), key=lambda one: (str(one.newest), one.list_name)
    )[::-1]
    days = [f"{one.list_name} {one.newest:%Y-%m-%d}" for one in known[:MAX_FRESH]]
    if more := known[MAX_FRESH:]:
        days.append(f"{len(more)} more lists, see list_lists")
    missing = [
        f"{sum(counts)} {what}"
        for what, counts in (
            ("messages by words", [one.words for one in known]),
            ("passages by meaning", [one.vectors for one in known]),
            ("messages that could not be read", [one.unreadable for one in known]),
        )
        if any(counts)
    ]
    found = f"not found yet: {', '.join(missing)}" if missing else "all stored mail is indexed"
    return f"newest mail: {', '.join(days) or 'none'}; {found}"


def find_by_id(make: Callable[[str], D], message_id: str) -> D:
    """Return the document of an id, written either as tools or as mail writes ids."""
    id = read_id(message_id)
    try:
        return make(id)
    except ServingError as error:
        if error.code != "not_found" or id == message_id:
            raise
    return make(message_id)
