"""A page of candidates as hits: what is shown of a message, and which are shown as one.

What does not live here: finding and ranking (semantic.py, fulltext.py, fusion.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import psycopg

from mail_assets.mail.message.subjects import base_subject
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.search.candidate import Candidate, Copy
from mail_assets.search.fulltext import Term
from mail_assets.search.highlights import Highlighter, Marks, in_body, read_stems
from mail_assets.search.query import Question, Words
from mail_assets.search.response import ChunkHit, Hit, Span, Why
from mail_assets.tables.messages import utc

#: Candidates read beyond a page, for those that are folded into another.
MORE = 5
#: Chunks that are shown of a message.
SHOWN = 3
#: Share of words that two messages of one sender and subject have in common to be one hit.
SAME = 0.9


class Asked(NamedTuple):
    """What the words of a query were taken as."""

    questions: Sequence[Question]
    words: Words
    terms: Sequence[Term]


class Text(NamedTuple):
    """A chunk as it is stored."""

    key: str
    index: int  # type: ignore[assignment]  # hides tuple.index(), which nobody calls
    text: str
    spans: tuple[Span, ...]


def read_hits(connection: psycopg.Connection, page: Sequence[Candidate], asked: Asked) -> list[Hit]:
    """Return candidates as hits; a message that has gone meanwhile is left out."""
    copies = _copies(connection, page)
    texts = _texts(connection, page)
    every = [text.text for of_message in texts.values() for text in of_message]
    stems = read_stems(connection, asked.questions, every) if asked.questions else {}
    highlighter = Highlighter(stems, asked.words.identifiers, asked.terms)
    return [
        _hit(candidate, copies[candidate.message_id], texts.get(place, []), highlighter)
        for place, candidate in enumerate(page, 1)
        if candidate.copy in copies.get(candidate.message_id, {})
    ]


def fold(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits without the near-duplicates of an earlier one, which names them.

    A patch that was sent again, a question posted twice: one sender, one subject but for its
    marks, the same words in the chunk that speaks.
    """
    kept: list[Hit] = []
    for hit in hits:
        twin = next((i for i, known in enumerate(kept) if _same(known, hit)), None)
        if twin is None:
            kept.append(hit)
        else:
            kept[twin] = replace(kept[twin], copies=(*kept[twin].copies, hit.message_id))
    return kept


def _copies(
    connection: psycopg.Connection, page: Sequence[Candidate]
) -> dict[str, dict[Copy, tuple[Any, ...]]]:
    ids = [candidate.message_id for candidate in page]
    rows = connection.execute(statement("search", "messages"), {"message_ids": ids}).fetchall()
    copies: dict[str, dict[Copy, tuple[Any, ...]]] = {}
    for message_id, list_name, month, variant, *shown in rows:
        copies.setdefault(message_id, {})[Copy(ListMonth(list_name, month), variant)] = tuple(shown)
    return copies


def _texts(connection: psycopg.Connection, page: Sequence[Candidate]) -> dict[int, list[Text]]:
    """Return the chunks of each candidate's copy, by its place on the page from 1."""
    rows = connection.execute(
        statement("search", "texts"),
        {
            "message_ids": [one.message_id for one in page],
            "lists": [one.copy.month.list_name for one in page],
            "months": [one.copy.month.month for one in page],
            "variants": [one.copy.variant for one in page],
        },
    ).fetchall()
    texts: dict[int, list[Text]] = {}
    for place, key, index, text, spans in rows:
        pairs = tuple(zip(spans[::2], spans[1::2], strict=True))
        texts.setdefault(place, []).append(Text(key, index, text, pairs))
    return texts


def _hit(
    candidate: Candidate,
    copies: Mapping[Copy, tuple[Any, ...]],
    texts: Sequence[Text],
    highlighter: Highlighter,
) -> Hit:
    """Return a hit as its candidate's copy stands, with the names of all lists that carry it."""
    subject, from_name, from_email, sent_at, thread_id, attachments = copies[candidate.copy]
    chunks = _chunks(candidate, texts, highlighter)
    first = chunks[0] if chunks else None
    words = [text for text, marked in first.marked() if marked] if first else []
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
        chunks=tuple(chunks),
        why=Why(
            ranks=candidate.ranks,
            words=tuple(dict.fromkeys(words)),
            distance=min(candidate.chunks.values(), default=None),
            thread_score=candidate.thread_score,
        ),
        attachments=tuple(name for name in attachments if name),
    )


def _chunks(
    candidate: Candidate, texts: Sequence[Text], highlighter: Highlighter
) -> list[ChunkHit]:
    """Return the chunks that speak for a message, best first.

    A chunk speaks by the weight of the words in it and by its nearness, each as a share of the
    best chunk's; where neither says anything the first one stands for the message.
    """
    marks = {text.key: highlighter.marks(text.text) for text in texts}
    heaviest = max((mark.weight for mark in marks.values()), default=0.0) or 1.0
    nearest = max((1 - d for d in candidate.chunks.values()), default=0.0) or 1.0

    def says(text: Text) -> float:
        words = marks[text.key].weight / heaviest if "fulltext" in candidate.ranks else 0.0
        near = (1 - candidate.chunks[text.key]) / nearest if text.key in candidate.chunks else 0.0
        return words + near

    ranked = sorted(texts, key=lambda text: (-says(text), text.index))
    best = says(ranked[0]) if ranked else 0.0
    shown = [text for text in ranked[:SHOWN] if says(text) > 0] or ranked[:1]
    return [
        _chunk(text, marks[text.key], candidate, says(text) / best if best else 1.0)
        for text in shown
    ]


def _chunk(text: Text, marks: Marks, candidate: Candidate, share: float) -> ChunkHit:
    return ChunkHit(
        key=text.key,
        index=text.index,
        text=text.text,
        spans=text.spans,
        score=round(candidate.score - abs(candidate.score) * (1 - share), 6),
        distance=candidate.chunks.get(text.key),
        highlights=in_body(marks.spans, text.spans),
    )


def _same(one: Hit, other: Hit) -> bool:
    if one.from_email != other.from_email or not (one.chunks and other.chunks):
        return False
    mine, its = ({*hit.chunks[0].text.lower().split()} for hit in (one, other))
    if base_subject(one.subject).lower() != base_subject(other.subject).lower():
        return False
    return len(mine & its) >= SAME * len(mine | its)
