"""What the documents of lists and months consist of, as document_types.py says it of the others."""

from collections.abc import Sequence
from dataclasses import dataclass


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
