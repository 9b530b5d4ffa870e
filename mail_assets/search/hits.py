"""Candidates as hits: the message, the lists that carry it, the chunks that match best."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import psycopg

from mail_assets.month import known_month
from mail_assets.postgres.statements import statement
from mail_assets.search.candidates import Candidate, MessageCopy
from mail_assets.search.chunk_hits import StoredChunk, select_chunks
from mail_assets.search.highlights import Highlighter, StemReader
from mail_assets.search.query import Query
from mail_assets.search.response import FoundBy, Hit, HitExplanation
from mail_assets.search.terms import Term
from mail_assets.tables.messages import utc

#: The columns of a message that are shown, by copy.
Copies = Mapping[MessageCopy, tuple[Any, ...]]
_Rows: TypeAlias = psycopg.Cursor[tuple[Any, ...]]


class HitReader:
    """Reads candidates as hits over one connection, in one round trip to PostgreSQL.

    Words that it has not seen before take another: it asks for their stems.
    """

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._stems = StemReader(connection)

    def read(
        self, candidates: Sequence[Candidate], query: Query | None, terms: Sequence[Term]
    ) -> list[Hit]:
        """Return candidates as hits, the words of the query highlighted.

        A message that was deleted meanwhile is left out.
        """
        with self._connection.pipeline():
            copies_asked = self._ask("page_copies", candidates)
            chunks_asked = self._ask("page_chunks", candidates)
        copies = _by_message(copies_asked.fetchall())
        chunks = _by_place(chunks_asked.fetchall())
        texts = [chunk.text for of_message in chunks.values() for chunk in of_message]
        texts += [subject for of_one in copies.values() for subject, *_ in of_one.values()]
        highlighter = self._stems.build_highlighter(query, terms, texts)
        return [
            _hit(
                candidate,
                copies[candidate.message_id],
                chunks.get(place, []),
                highlighter,
                _find_reason(candidate, query),
            )
            for place, candidate in enumerate(candidates, 1)
            if candidate.copy in copies.get(candidate.message_id, {})
        ]

    def _ask(self, name: str, candidates: Sequence[Candidate]) -> _Rows:
        return self._connection.execute(
            statement("search", name),
            {
                "message_ids": [one.message_id for one in candidates],
                "lists": [one.copy.month.list_name for one in candidates],
                "months": [one.copy.month.month for one in candidates],
                "variants": [one.copy.variant for one in candidates],
            },
        )


def _by_message(rows: Iterable[tuple[Any, ...]]) -> dict[str, dict[MessageCopy, tuple[Any, ...]]]:
    """Return every copy of the messages, by Message-ID."""
    copies: dict[str, dict[MessageCopy, tuple[Any, ...]]] = {}
    for message_id, list_name, month, variant, *columns in rows:
        copy = MessageCopy(known_month(list_name, month), variant)
        copies.setdefault(message_id, {})[copy] = tuple(columns)
    return copies


def _by_place(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[StoredChunk]]:
    """Return the chunks of each candidate's copy, by the place of the candidate from 1."""
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
    found_by: FoundBy,
) -> Hit:
    """Return a hit as the candidate's copy is stored, with the names of all lists that carry it."""
    subject, from_name, from_email, sent_at, thread_id, attachments = copies[candidate.copy]
    shown = select_chunks(candidate, chunks, highlighter)
    titled = highlighter.find(subject).spans
    words = [subject[start:end] for start, end in titled]
    words += [text for chunk in shown for text, marked in chunk.pieces() if marked]
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
            ranks={**candidate.ranks},
            words=tuple(_each_once(words)),
            distance=min(candidate.chunks.values(), default=None),
            thread_score=candidate.thread_score,
            found_by=found_by,
        ),
        attachments=tuple(name for name in attachments if name),
        subject_highlights=tuple(titled),
    )


def _find_reason(candidate: Candidate, query: Query | None) -> FoundBy:
    if candidate.ranks:
        return "legs"
    if query is None:
        return "id"
    return "thread" if query.ranks else "date"


def _each_once(words: Iterable[str]) -> Iterable[str]:
    """Return words as each is written first, in any case."""
    first: dict[str, str] = {}
    for word in words:
        first.setdefault(word.lower(), word)
    return first.values()
