"""A page of hits: ranked matches are read, near-duplicates folded, few shown of any thread."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import psycopg

from mail_assets.mail.message.subjects import base_subject
from mail_assets.month import known_month
from mail_assets.postgres.statements import statement
from mail_assets.search.highlights import Highlighter, StoredChunk, WordReader, select_chunks
from mail_assets.search.language.request import Group, Request
from mail_assets.search.matches import Candidate, MessageCopy
from mail_assets.search.query import Query, WeighedTerm
from mail_assets.search.response import FoundBy, Hit, HitExplanation, NewerCopy
from mail_assets.search.retrieval import SPARE_CANDIDATES, RankedMatches
from mail_assets.tables.messages import utc

#: Hits of one thread, by what a request groups by; a group that is not here has no limit.
MAX_OF_THREAD = {Group.few: 3, Group.thread: 1}
#: A further message of a thread needs this share of the first one's own score. One with less is
#: there for its thread, which has its place on the page already.
OWN_SHARE = 0.25
#: Share of words that the best chunks of two messages have in common to be one hit.
MIN_OVERLAP = 0.9
#: Hits that are folded into others. Later ones are hits of their own, so that a page of a corpus
#: full of near-duplicates costs little more than another.
FOLDED = 100


class Page(NamedTuple):
    """The hits of a page; `is_short`: fewer than the request asks for."""

    hits: tuple[Hit, ...]
    is_short: bool


def read_page(reader: "HitReader", request: Request, found: RankedMatches) -> Page:
    """Return the page that a request asks for.

    Which candidates are hits, and their order, depends on the query alone: pages of any size
    follow one another. Candidates are read in growing blocks until folding leaves enough hits.
    """
    candidates = select_scored(request, found.candidates)
    ranked, rest = select_of_threads(candidates, _limit(request, found), found.first)
    last = request.offset + request.limit
    folder = Folder()
    start, end = 0, last + SPARE_CANDIDATES
    while start < len(ranked) and len(folder.hits) < last:
        folder.add(reader.read(ranked[start:end], found.query, found.terms))
        start, end = end, 2 * end
    hits = tuple(name_rest(folder, rest, last)[request.offset :])
    return Page(hits, len(hits) < request.limit)


def select_scored(request: Request, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates that have the minimum score of a request."""
    least = request.min_score
    return [one for one in candidates if least is None or one.score >= least]


def select_of_threads(
    ranked: Sequence[Candidate], most: int | None, first: int | None = None
) -> tuple[list[Candidate], dict[str, list[str]]]:
    """Return up to `most` candidates of each thread, and the ids of the rest by thread.

    A further message of a thread that has little score of its own is of the rest. Nothing is left
    out where all of the `first` are of one thread: there is nothing to make room for. Those are the
    same for pages of any size, while deeper candidates may be of another thread.
    """
    if most is None or len({one.thread_key for one in ranked[:first]}) == 1 < most:
        return [*ranked], {}
    taken: Counter[str] = Counter()
    best: dict[str, Candidate] = {}
    selected: list[Candidate] = []
    rest: dict[str, list[str]] = {}
    for one in ranked:
        claims = _claims_much(one, best.setdefault(one.thread_key, one))
        if claims and taken[one.thread_key] < most:
            taken[one.thread_key] += 1
            selected.append(one)
        else:
            rest.setdefault(one.thread_key, []).append(one.message_id)
    return selected, rest


def _claims_much(one: Candidate, first: Candidate) -> bool:
    own, most = one.score - one.thread_score, first.score - first.thread_score
    return one is first or not one.thread_score or own >= OWN_SHARE * most


def _limit(request: Request, found: RankedMatches) -> int | None:
    """Return how many hits a thread has at most, None for all: a list by date leaves none out."""
    group = Group(request.group)
    if group == Group.few and not (found.query and found.query.ranks):
        return None
    return MAX_OF_THREAD.get(group)


class Folder:
    """Hits, best first, without near-duplicates of an earlier one, which names them in `copies`.

    Near-duplicates have the same sender, the same subject but for its marks (Re:, [PATCH v2]), and
    the same words in the chunk that matches best. The earlier one stays, though a maintainer
    reviews the newest: the newest depends on how many are read, and pages of any size have the same
    hits. So the hit names the newest as well. `threads` maps each thread that was added to the
    place of the hit that its first message is, or is folded into.
    """

    def __init__(self) -> None:
        self.hits: list[Hit] = []
        self.threads: dict[str, int] = {}
        self._added = 0
        self._alike: dict[tuple[str, str], list[tuple[int, set[str]]]] = {}

    def add(self, hits: Iterable[Hit]) -> None:
        """Add hits that follow those which were added before."""
        for hit in hits:
            self._added += 1
            if hit.contested:  # it speaks for no other message, and none for it
                self.threads.setdefault(hit.thread_id or hit.message_id, len(self.hits))
                self.hits.append(hit)
                continue
            words = {*hit.chunks[0].text.lower().split()} if hit.chunks else set()
            key = (hit.from_email, base_subject(hit.subject).lower())
            alike = self._alike.setdefault(key, [])
            place = next((at for at, known in alike if _overlap(words, known)), None)
            if place is None or self._added > FOLDED:
                place = len(self.hits)
                alike.append((place, words))
                self.hits.append(hit)
            else:
                self.hits[place] = _fold(self.hits[place], hit)
            self.threads.setdefault(hit.thread_id or hit.message_id, place)


def _fold(kept: Hit, hit: Hit) -> Hit:
    newest = kept.newer_copy
    if hit.sent_at > (newest or kept).sent_at:
        newest = NewerCopy(hit.message_id, hit.subject, hit.sent_at)
    return replace(kept, copies=(*kept.copies, hit.message_id), newer_copy=newest)


def _overlap(words: set[str], others: set[str]) -> bool:
    """Return whether two texts have nearly the same words; an empty text is like no other."""
    fewer, more = sorted((len(words), len(others)))
    if not fewer or fewer < MIN_OVERLAP * more:
        return False
    both = len(words & others)
    return both >= MIN_OVERLAP * (fewer + more - both)


def name_rest(folder: Folder, rest: Mapping[str, Sequence[str]], last: int) -> list[Hit]:
    """Return the hits up to the last of a page, each with the rest of the threads that it names."""
    named: dict[int, list[str]] = {}
    for thread, place in folder.threads.items():
        named.setdefault(place, []).extend(rest.get(thread, ()))
    return [
        replace(hit, in_thread=tuple(named[place])) if named.get(place) else hit
        for place, hit in enumerate(folder.hits[:last])
    ]


#: The columns of a message that are shown, by copy.
_Copies = dict[MessageCopy, tuple[Any, ...]]


class HitReader:
    """Reads candidates as hits over one connection, in one round trip to PostgreSQL.

    Words that it has not seen before take another, for their stems.
    """

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._stems = WordReader(connection)

    def read(
        self, candidates: Sequence[Candidate], query: Query | None, terms: Sequence[WeighedTerm]
    ) -> list[Hit]:
        """Return candidates as hits, the words of the query highlighted.

        A message that was deleted meanwhile is left out.
        """
        with self._connection.pipeline():
            asked_copies = self._ask("page_copies", candidates)
            asked_chunks = self._ask("page_chunks", candidates)
        copies = _group_copies(asked_copies.fetchall())
        chunks = _group_chunks(asked_chunks.fetchall())
        texts = [chunk.text for of_message in chunks.values() for chunk in of_message]
        texts += [subject for of_one in copies.values() for _, subject, *_ in of_one.values()]
        highlighter = self._stems.build_highlighter(query, terms, texts)
        return [
            _build_hit(
                candidate,
                copies[candidate.message_id],
                chunks.get(place, []),
                highlighter,
                _find_reason(candidate, query),
            )
            for place, candidate in enumerate(candidates, 1)
            if candidate.copy in copies.get(candidate.message_id, {})
        ]

    def _ask(self, name: str, candidates: Sequence[Candidate]) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._connection.execute(
            statement("search", name),
            {
                "message_ids": [one.message_id for one in candidates],
                "lists": [one.copy.month.list_name for one in candidates],
                "months": [one.copy.month.month for one in candidates],
                "variants": [one.copy.variant for one in candidates],
            },
        )


def _group_copies(rows: Iterable[tuple[Any, ...]]) -> dict[str, _Copies]:
    copies: dict[str, _Copies] = {}
    for message_id, list_name, month, variant, *columns in rows:
        copy = MessageCopy(known_month(list_name, month), variant)
        copies.setdefault(message_id, {})[copy] = tuple(columns)
    return copies


def _group_chunks(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[StoredChunk]]:
    chunks: dict[int, list[StoredChunk]] = {}
    for place, key, index, text, spans in rows:
        pairs = tuple(zip(spans[::2], spans[1::2], strict=True))
        chunks.setdefault(place, []).append(StoredChunk(key, index, text, pairs))
    return chunks


def _build_hit(
    candidate: Candidate,
    copies: _Copies,
    chunks: Sequence[StoredChunk],
    highlighter: Highlighter,
    found_by: FoundBy,
) -> Hit:
    """Return a hit as the candidate's copy is stored, with all lists that carry its text."""
    text, subject, from_name, from_email, sent_at, thread_id, attachments = copies[candidate.copy]
    shown = select_chunks(candidate, chunks, highlighter)
    titled = highlighter.find(subject).spans
    words = [subject[start:end] for start, end in titled]
    words += [text for chunk in shown for text, marked in chunk.pieces() if marked]
    return Hit(
        message_id=candidate.message_id,
        lists=tuple(
            sorted({copy.month.list_name for copy, one in copies.items() if one[0] == text})
        ),
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
            words=_drop_repeated(words),
            distance=min(candidate.chunks.values(), default=None),
            thread_score=candidate.thread_score,
            found_by=found_by,
        ),
        attachments=tuple(name for name in attachments if name),
        subject_highlights=tuple(titled),
        contested=text is not None,
        text=text or 1,
    )


def _find_reason(candidate: Candidate, query: Query | None) -> FoundBy:
    if candidate.ranks:
        return "legs"
    if query is None:
        return "id"
    return "thread" if query.ranks else "date"


def _drop_repeated(words: Iterable[str]) -> tuple[str, ...]:
    first: dict[str, str] = {}
    for word in words:
        first.setdefault(word.lower(), word)
    return tuple(first.values())
