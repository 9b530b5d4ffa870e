"""Candidates as hits: the message, the lists that carry it, the chunks that match best.

[snippets] Snippets: the part of a chunk that has most of the query, also as Markdown.

[chunk_hits] The chunks of a message that are shown: those that match the query best, with highlights.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import psycopg

from mail_assets.month import known_month
from mail_assets.postgres.statements import statement
from mail_assets.search.candidates import Candidate, MessageCopy
from mail_assets.search.highlights import Highlighter, Highlights, StemReader, to_body_spans
from mail_assets.search.query import Query, WeighedTerm
from mail_assets.search.response import ChunkHit, FoundBy, Hit, HitExplanation, Span
from mail_assets.tables.messages import utc

#: What may have a meaning in Markdown; a backslash takes it away (CommonMark 0.31, 2.4).
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
#: Characters of a word that are left out where a snippet would begin within it; text of some
#: languages has no blanks.
MAX_CUT = 20
#: Characters of the shortest snippet that is shown of a chunk: a longer one has what this has.
SHORTEST = 240
_BLANK = re.compile(r"\s+")


def find_start(text: str, focus: int, size: int) -> int:
    """Return where a snippet of a text begins: a third of it before its focus, at a word."""
    start = max(0, focus - size // 3)
    blank = _BLANK.search(text, start - 1, min(focus, start + MAX_CUT)) if start else None
    return blank.end() if blank else start


def cut_snippet(chunk: ChunkHit, size: int) -> Iterator[tuple[str, bool]]:
    """Yield about `size` characters of a chunk, starting shortly before its focus.

    In pieces, each with whether it is highlighted; white space becomes single spaces, and "..."
    marks where the chunk continues.
    """
    start = find_start(chunk.text, chunk.focus, size)
    if start:
        yield "...", False
    at = 0
    for text, marked in chunk.pieces():
        part = text[max(0, start - at) : max(0, start + size - at)]
        if part:
            yield re.sub(r"\s+", " ", part), marked
        at += len(text)
    if at > start + size:
        yield "...", False


def mark_spans(text: str, spans: Iterable[Span]) -> Iterator[tuple[str, bool]]:
    """Yield a text in pieces, each with whether it is one of some ascending spans."""
    at = 0
    for start, end in spans:
        yield text[at:start], False
        yield text[start:end], True
        at = end
    yield text[at:], False


def render_snippet_markdown(chunk: ChunkHit, size: int) -> str:
    """Return a snippet as one line of Markdown, its highlights bold."""
    pieces = ((escape_markdown(text), marked) for text, marked in cut_snippet(chunk, size))
    return "".join(f"**{text}**" if marked else text for text, marked in pieces).strip()


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows unchanged: mail must not insert images or links."""
    return _PUNCTUATION.sub(r"\\\g<0>", re.sub(r"\s+", " ", text))


#: Chunks that are shown of a message.
MAX_CHUNKS = 3


class StoredChunk(NamedTuple):
    """A chunk as it is stored; `spans` are the places of its text in the body."""

    key: str
    index: int  # type: ignore[assignment]  # hides tuple.index(), which nobody calls
    text: str
    spans: tuple[Span, ...]


def select_chunks(
    candidate: Candidate, chunks: Sequence[StoredChunk], highlighter: Highlighter
) -> list[ChunkHit]:
    """Return the chunks of a message that match best, best first.

    If none matches, because the message was found by its thread alone, the first one is shown.
    """
    # A long message has dozens of chunks: without a part in their rank, words are for those shown.
    by_words = "fulltext" in candidate.ranks
    highlights = {chunk.key: highlighter.find(chunk.text) for chunk in chunks if by_words}
    evidence = _evidence(candidate, chunks, highlights)
    ranked = sorted(chunks, key=lambda chunk: (-evidence[chunk.key], chunk.index))
    best = evidence[ranked[0].key] if ranked else 0.0
    shown = [chunk for chunk in ranked[:MAX_CHUNKS] if evidence[chunk.key] > 0] or ranked[:1]
    highlights |= {c.key: highlighter.find(c.text) for c in shown if c.key not in highlights}
    return [
        ChunkHit(
            key=chunk.key,
            index=chunk.index,
            text=chunk.text,
            spans=chunk.spans,
            score=_share(candidate.score, evidence[chunk.key] / best if best else 1.0),
            distance=candidate.chunks.get(chunk.key),
            highlights=to_body_spans(highlights[chunk.key].spans, chunk.spans),
            focus=_find_focus(chunk.text, highlights[chunk.key], highlighter),
        )
        for chunk in shown
    ]


def _find_focus(text: str, found: Highlights, highlighter: Highlighter) -> int:
    """Return where the highlight stands whose snippet has most of the query, 0 where none is.

    That is the weight of its different lexemes, then their number: by meaning none has a weight.
    """
    best, focus = (-1.0, 0), 0
    for at, _ in found.spans:
        start = find_start(text, at, SHORTEST)
        first = bisect_left(found.spans, (start, 0))
        last = bisect_left(found.spans, (start + SHORTEST, 0))
        lexemes = set[str]().union(*found.lexemes[first:last])
        said = highlighter.weigh(lexemes), len(lexemes)
        if said > best:
            best, focus = said, at
    return focus


def _evidence(
    candidate: Candidate, chunks: Sequence[StoredChunk], highlights: Mapping[str, Highlights]
) -> dict[str, float]:
    """Return how well each chunk matches, by its key: 0 to 2.

    The sum of the weight of its words, where full text found the message, and its similarity, each
    as a share of the best chunk's. `highlights` are those of all chunks, or of none.
    """
    heaviest = max((one.weight for one in highlights.values()), default=0.0) or 1.0
    nearest = max((1 - distance for distance in candidate.chunks.values()), default=0.0) or 1.0
    evidence = {}
    for key in (chunk.key for chunk in chunks):
        words = highlights[key].weight / heaviest if highlights else 0.0
        near = (1 - candidate.chunks[key]) / nearest if key in candidate.chunks else 0.0
        evidence[key] = words + near
    return evidence


def _share(score: float, share: float) -> float:
    """Return the score of a chunk whose evidence is a share of the best one's."""
    return round(score - abs(score) * (1 - share), 6)


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
        self, candidates: Sequence[Candidate], query: Query | None, terms: Sequence[WeighedTerm]
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
