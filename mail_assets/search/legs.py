"""The two legs: each ranks messages and names the chunks that speak for them.

`semantic` asks the vector index, `fulltext` asks Postgres. What does not live here: how two
rankings become one (fusion.py), and what of a message is shown (searcher.py).
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import psycopg

from mail_assets.search.request import Request, RequestError, epoch
from mail_assets.search.response import ChunkHit
from mail_assets.store.statements import statement
from mail_assets.text.identifiers import query_identifiers
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import VectorIndex

#: Chunks and messages that a leg looks at: what one page of every vector bucket holds.
DEPTH = 100

#: Addresses that a sender filter may stand for; more says nothing about a person.
MAX_SENDERS = 100


@dataclass
class Candidate:
    """A message as one leg sees it, in the copy of one list's month."""

    message_id: str
    archive: tuple[str, str]  # list and month of the copy
    score: float
    chunks: list[ChunkHit] = field(default_factory=list)


def semantic(
    connection: psycopg.Connection,
    index: VectorIndex,
    vector: npt.NDArray[np.float32],
    request: Request,
    senders: Sequence[str] | None,
) -> list[Candidate]:
    """Return messages by their nearest chunk; the score is the cosine similarity."""
    matches = index.query(vector, DEPTH, vector_filter(request, senders))
    rows = connection.execute(statement("search", "chunks"), {"keys": [m.key for m in matches]})
    known = {row[0]: row[1:] for row in rows.fetchall()}
    found: dict[str, Candidate] = {}
    for match in matches:
        if match.key not in known:  # its chunk was replaced, and vectors follows in a moment
            continue
        list_, month, message_id, position, text, spans = known[match.key]
        archive = (list_, month)
        score = round(1.0 - match.distance, 6)
        candidate = found.setdefault(message_id, Candidate(message_id, archive, score))
        if candidate.archive == archive:
            candidate.chunks.append(ChunkHit(match.key, position, text, pairs(spans), score))
    return [*found.values()]


def fulltext(
    connection: psycopg.Connection,
    request: Request,
    senders: Sequence[str] | None,
    languages: Sequence[str],
) -> list[Candidate]:
    """Return messages by their words; a copy in a second list or month does not count twice.

    Each language of the lists asked has its own stems, so the query is put in each.
    """
    found: dict[str, tuple[int, Candidate]] = {}
    for language in languages:
        for message_id, list_, month, tier, score, *chunk in connection.execute(
            statement("search", "fulltext"), _parameters(request, senders, language)
        ).fetchall():
            candidate = Candidate(message_id, (list_, month), round(score, 6))
            if chunk[0] is not None:
                key, position, text, spans = chunk
                candidate.chunks.append(
                    ChunkHit(key, position, text, pairs(spans), candidate.score)
                )
            known = found.get(message_id)
            if known is None or (tier, -score) < (known[0], -known[1].score):
                found[message_id] = (tier, candidate)
    ranked = sorted(found.values(), key=lambda f: (f[0], -f[1].score, f[1].message_id))
    return [candidate for _, candidate in ranked]


def find_senders(connection: psycopg.Connection, sender: str) -> list[str] | None:
    """Return the addresses that a sender filter stands for, None where there is no filter.

    Raises:
        RequestError: it stands for more addresses than a filter holds.
    """
    if not sender:
        return None
    parameters = {"sender": sender, "most": MAX_SENDERS + 1}
    rows = connection.execute(statement("search", "senders"), parameters).fetchall()
    if len(rows) > MAX_SENDERS:
        raise RequestError(
            f"sender {sender!r} matches more than {MAX_SENDERS} addresses: give more of it"
        )
    return sorted(address for (address,) in rows)


def vector_filter(request: Request, senders: Sequence[str] | None) -> Filter | None:
    """Return the request's filters in the language of the vector index."""
    parts: list[Filter] = []
    if request.lists:
        parts.append({"list": {"$in": [*request.lists]}})
    if request.after:
        parts.append({"sent_at": {"$gte": epoch(request.after)}})
    if request.before:
        parts.append({"sent_at": {"$lt": epoch(request.before)}})
    if senders is not None:
        parts.append({"sender": {"$in": [*senders]}})
    if len(parts) > 1:
        return {"$and": parts}
    return parts[0] if parts else None


def pairs(spans: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return start, end, start, end, ... as pairs."""
    return tuple(zip(spans[::2], spans[1::2], strict=True))


def _parameters(
    request: Request, senders: Sequence[str] | None, language: str
) -> dict[str, object]:
    return {
        "query": request.query,
        "identifiers": query_identifiers(request.query),
        "language": language,
        "lists": [*request.lists] or None,
        "after": _moment(request.after),
        "before": _moment(request.before),
        "senders": None if senders is None else [*senders],
        "most": DEPTH,
    }


def _moment(day: dt.date | None) -> dt.datetime | None:
    return dt.datetime.fromtimestamp(epoch(day), dt.UTC) if day else None
