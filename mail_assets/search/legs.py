"""The two legs: each ranks messages and names the chunks that speak for them.

`semantic` asks the vector index, `fulltext` asks Postgres. What does not live here: how two
rankings become one (fusion.py), and what of a message is shown (searcher.py).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import psycopg

from mail_assets.search.filters import Limits, sql_parameters, vector_filter
from mail_assets.search.response import ChunkHit
from mail_assets.search.words import Question
from mail_assets.store.statements import statement
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Match

#: Chunks and messages that a leg looks at: what one page of every vector bucket holds. The
#: same for every limit, so that a longer page begins as a shorter one.
DEPTH = 100

#: Finds the vectors nearest to a text: (text, how many, filter) -> nearest first.
Nearest = Callable[[str, int, Filter | None], list[Match]]


class Copy(NamedTuple):
    """One row of messages beside its id: a message can stand in several lists and months."""

    list: str
    month: str
    variant: int


@dataclass(frozen=True)
class Candidate:
    """A message as one leg sees it, in one of its copies.

    `words` is the part of the score that full text gave, for the chunk that holds the words.
    """

    message_id: str
    copy: Copy
    score: float
    words: float = 0.0
    chunks: list[ChunkHit] = field(default_factory=list)


def semantic(
    connection: psycopg.Connection, nearest: Nearest, query: str, limits: Limits
) -> list[Candidate]:
    """Return messages by their nearest chunk; the score is the cosine similarity.

    A vector whose chunk was replaced, or whose message changed and no longer passes the
    filters, is left out: the bucket follows in a moment.
    """
    matches = nearest(query, DEPTH, vector_filter(limits))
    parameters = {"keys": [m.key for m in matches], **sql_parameters(limits, limits.lists)}
    rows = connection.execute(statement("search", "chunks"), parameters).fetchall()
    known = {row[0]: row[1:] for row in rows}
    found: dict[str, Candidate] = {}
    for match in matches:
        if match.key not in known:
            continue
        message_id, list_, month, variant, index, text, spans = known[match.key]
        copy = Copy(list_, month, variant)
        score = round(1.0 - match.distance, 6)
        candidate = found.setdefault(message_id, Candidate(message_id, copy, score))
        if candidate.copy == copy:
            candidate.chunks.append(ChunkHit(match.key, index, text, pairs(spans), score))
    return [*found.values()]


def fulltext(
    connection: psycopg.Connection, questions: Iterable[Question], limits: Limits
) -> list[Candidate]:
    """Return messages by their words, without chunks: `speaking` finds those of a page.

    Messages with all words, or with an identifier, come first and score 1 to 2; where they are
    too few, messages with some of the words follow and score 0 to 1.
    """
    found: dict[str, Candidate] = {}
    for question in questions:
        for candidate in _ranked(connection, question, limits):
            known = found.get(candidate.message_id)
            if known is None or candidate.score > known.score:
                found[candidate.message_id] = candidate
    return sorted(found.values(), key=lambda c: (-c.score, c.message_id))[:DEPTH]


def _ranked(connection: psycopg.Connection, question: Question, limits: Limits) -> list[Candidate]:
    parameters = {**sql_parameters(limits, question.lists), "most": DEPTH}
    candidates: list[Candidate] = []
    for tsquery, bonus in ((question.narrow, 1.0), (question.wide, 0.0)):
        if len(candidates) == DEPTH:
            break
        rows = connection.execute(
            statement("search", "fulltext"), {**parameters, "question": tsquery}
        ).fetchall()
        for message_id, list_, month, variant, rank in rows:
            score = round(bonus + rank, 6)
            copy = Copy(list_, month, variant)
            candidates.append(Candidate(message_id, copy, score, words=score))
    return candidates


def speaking(
    connection: psycopg.Connection,
    page: Sequence[Candidate],
    questions: Iterable[Question],
    identifiers: list[str],
) -> list[Candidate]:
    """Return a page of candidates, those that full text found with the chunk of the words."""
    by_list = {name: question for question in questions for name in question.lists}
    worded = [candidate for candidate in page if candidate.words]
    rows = connection.execute(
        statement("search", "speaking"),
        {
            "message_ids": [c.message_id for c in worded],
            "lists": [c.copy.list for c in worded],
            "months": [c.copy.month for c in worded],
            "variants": [c.copy.variant for c in worded],
            "languages": [by_list[c.copy.list].language for c in worded],
            "questions": [by_list[c.copy.list].wide for c in worded],
            "identifiers": identifiers,
        },
    ).fetchall()
    best: dict[str, ChunkHit] = {}
    for place, key, index, text, spans in rows:
        candidate = worded[place - 1]
        best[candidate.message_id] = ChunkHit(key, index, text, pairs(spans), candidate.words)
    return [_with_chunk(candidate, best.get(candidate.message_id)) for candidate in page]


def _with_chunk(candidate: Candidate, chunk: ChunkHit | None) -> Candidate:
    """Add a chunk, or its score to that of the same chunk; the best stands first."""
    if chunk is None:
        return candidate
    chunks = {known.key: known for known in candidate.chunks}
    before = chunks[chunk.key].score if chunk.key in chunks else 0.0
    chunks[chunk.key] = replace(chunk, score=round(before + chunk.score, 6))
    return replace(candidate, chunks=sorted(chunks.values(), key=lambda c: (-c.score, c.index)))


def pairs(spans: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return start, end, start, end, ... as pairs."""
    return tuple(zip(spans[::2], spans[1::2], strict=True))
