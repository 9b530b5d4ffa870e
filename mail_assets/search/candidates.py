"""A message that a leg found, in one of its copies, with the evidence for it."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import psycopg

from mail_assets.month import ListMonth, known_month
from mail_assets.search.filters import MessageFilter


class MessageCopy(NamedTuple):
    """One row of messages beside its id: a message can be in several lists and months."""

    month: ListMonth
    variant: int


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Candidate(NamedTuple):
    """A message as one leg sees it, or as fusion does.

    `chunks` maps the keys that the vector index returned to their cosine distances, nearest first;
    `ranks` are the ranks in the legs, from 1; `thread_score` is the part of the score that comes
    from the best messages of its thread; `begins` says that it is the first of its thread,
    `is_brief` that it says little of its own.
    """

    message_id: str
    copy: MessageCopy
    thread_id: str | None
    score: float
    chunks: Mapping[str, float] = _NOTHING
    ranks: Mapping[str, int] = _NOTHING
    thread_score: float = 0.0
    begins: bool = False
    is_brief: bool = False

    @property
    def thread_key(self) -> str:
        """The thread; a message that is in none is a thread of its own."""
        return self.thread_id or self.message_id


def read_candidates(
    connection: psycopg.Connection, filters: MessageFilter, name: str, **parameters: object
) -> list[Candidate]:
    """Return the messages of a statement of sql/search.sql, each in its first copy, score 0."""
    return first_copies(read_copies(connection, filters, name, **parameters))


def read_copies(
    connection: psycopg.Connection, filters: MessageFilter, name: str, **parameters: object
) -> list[Candidate]:
    """Return the copies of messages of a statement of sql/search.sql, score 0."""
    rows = connection.execute(
        filters.statement(name), {**filters.parameters, **parameters}
    ).fetchall()
    return [
        Candidate(message_id, MessageCopy(known_month(list_name, month), variant), thread_id, 0.0)
        for message_id, list_name, month, variant, thread_id in rows
    ]


def first_copies(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return each message once, in the copy that comes first."""
    first: dict[str, Candidate] = {}
    for one in candidates:
        first.setdefault(one.message_id, one)
    return [*first.values()]


def append_unknown(ranked: Sequence[Candidate], more: Iterable[Candidate]) -> list[Candidate]:
    """Return a ranking, and behind it what it lacks of another one, with no better score."""
    known = {one.message_id for one in ranked}
    lowest = ranked[-1].score if ranked else 1.0
    unknown = (one for one in more if one.message_id not in known)
    return [*ranked, *(one._replace(score=min(one.score, lowest)) for one in unknown)]
