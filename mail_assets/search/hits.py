"""Candidates as hits: the message, the lists that carry it, the chunks that match best."""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.search.candidates import Candidate, MessageCopy
from mail_assets.search.chunk_hits import StoredChunk, select_chunks
from mail_assets.search.highlights import Highlighter, build_highlighter
from mail_assets.search.query import Query
from mail_assets.search.response import Hit, HitExplanation
from mail_assets.search.terms import Term
from mail_assets.tables.messages import utc

#: The columns of a message that are shown, by copy.
Copies = Mapping[MessageCopy, tuple[Any, ...]]


def read_hits(
    connection: psycopg.Connection,
    candidates: Sequence[Candidate],
    query: Query | None,
    terms: Sequence[Term],
) -> list[Hit]:
    """Return candidates as hits, the words of the query highlighted.

    A message that was deleted meanwhile is left out.
    """
    copies = _read_copies(connection, candidates)
    chunks = _read_chunks(connection, candidates)
    texts = [chunk.text for of_message in chunks.values() for chunk in of_message]
    highlighter = build_highlighter(connection, query, terms, texts)
    return [
        _hit(candidate, copies[candidate.message_id], chunks.get(place, []), highlighter)
        for place, candidate in enumerate(candidates, 1)
        if candidate.copy in copies.get(candidate.message_id, {})
    ]


def _read_copies(
    connection: psycopg.Connection, candidates: Sequence[Candidate]
) -> dict[str, dict[MessageCopy, tuple[Any, ...]]]:
    """Return every copy of the messages, by Message-ID."""
    ids = [candidate.message_id for candidate in candidates]
    rows = connection.execute(statement("search", "page_copies"), {"message_ids": ids}).fetchall()
    copies: dict[str, dict[MessageCopy, tuple[Any, ...]]] = {}
    for message_id, list_name, month, variant, *columns in rows:
        copy = MessageCopy(ListMonth(list_name, month), variant)
        copies.setdefault(message_id, {})[copy] = tuple(columns)
    return copies


def _read_chunks(
    connection: psycopg.Connection, candidates: Sequence[Candidate]
) -> dict[int, list[StoredChunk]]:
    """Return the chunks of each candidate's copy, by the place of the candidate from 1."""
    rows = connection.execute(
        statement("search", "page_chunks"),
        {
            "message_ids": [one.message_id for one in candidates],
            "lists": [one.copy.month.list_name for one in candidates],
            "months": [one.copy.month.month for one in candidates],
            "variants": [one.copy.variant for one in candidates],
        },
    ).fetchall()
    chunks: dict[int, list[StoredChunk]] = {}
    for place, key, index, text, spans in rows:
        pairs = tuple(zip(spans[::2], spans[1::2], strict=True))
        chunks.setdefault(place, []).append(StoredChunk(key, index, text, pairs))
    return chunks


def _hit(
    candidate: Candidate,
    copies: Copies,
    chunks: Sequence[StoredChunk],
    highlighter: Highlighter,
) -> Hit:
    """Return a hit as the candidate's copy is stored, with the names of all lists that carry it."""
    subject, from_name, from_email, sent_at, thread_id, attachments = copies[candidate.copy]
    shown = select_chunks(candidate, chunks, highlighter)
    words = [text for text, marked in shown[0].pieces() if marked] if shown else []
    return Hit(
        message_id=candidate.message_id,
        lists=tuple(sorted({copy.month.list_name for copy in copies})),
        month=candidate.copy.month.month,
        subject=subject,
        from_name=from_name,
        from_email=from_email,
        sent_at=utc(sent_at),
        score=candidate.score,
        thread_id=thread_id,
        chunks=tuple(shown),
        why=HitExplanation(
            ranks=candidate.ranks,
            words=tuple(dict.fromkeys(words)),
            distance=min(candidate.chunks.values(), default=None),
            thread_score=candidate.thread_score,
        ),
        attachments=tuple(name for name in attachments if name),
    )
