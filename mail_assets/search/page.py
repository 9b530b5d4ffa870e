"""A page of messages: reads ranked matches as hits, and folds near-duplicates."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import psycopg
from psycopg.types.json import Json

from mail_assets.mail.message.subjects import base_subject
from mail_assets.mail.message.text_addresses import CONTEXT
from mail_assets.month import known_month, utc
from mail_assets.postgres.statements import Pending, planned_once, statement
from mail_assets.reading.patch_states import PatchState, ask_states
from mail_assets.search.direct_hits import ChangedNames, ask_reasons
from mail_assets.search.highlights import Highlighter, StoredChunk, WordReader, select_chunks
from mail_assets.search.language.request import Request
from mail_assets.search.matches import Candidate, FoundVersion, MessageCopy, find_versions
from mail_assets.search.query import Query
from mail_assets.search.response import (
    SHORTEST,
    Conversation,
    FoundBy,
    Hit,
    HitExplanation,
    NewerCopy,
)
from mail_assets.search.retrieval import FOLDED, SPARE_CANDIDATES, RankedMatches

#: Two messages are one hit if their best chunks have at least this share of words in common.
MIN_OVERLAP = 0.9
#: Most people of a conversation that are named.
MAX_NAMES = 4


class Page(NamedTuple):
    """The hits of a page, and their conversations; `is_short`: fewer rows than asked for.

    `last` is the best message of the last row; `has_more`: there are rows after it.
    """

    hits: tuple[Hit, ...]
    conversations: tuple[Conversation, ...] = ()
    is_short: bool = False
    last: Candidate | None = None
    has_more: bool = False


#: Returns the rows between two places; fewer, or none, where they end.
TakeRows: TypeAlias = Callable[[int, int], Sequence[Sequence[Candidate]]]


def read_page(reader: "HitReader", request: Request, found: RankedMatches) -> Page:
    """Return the requested page of messages.

    The hits and their order depend on the query alone, so pages of any size follow each other
    without repeats. Candidates are read in growing blocks until folding leaves enough hits.
    """
    scored = [[one] for one in select_scored(request, found.candidates)]
    take: TakeRows = found.dated.take if found.dated else lambda start, end: scored[start:end]

    def read_from(offset: int) -> tuple[Page, Sequence[str]]:
        return _read_messages(reader, request, found, take, offset)

    return read_after(request, found, read_from)


def read_after(
    request: Request,
    found: RankedMatches,
    read_from: Callable[[int], tuple[Page, Sequence[str]]],
) -> Page:
    """Return the page after the row `after_row` of a request, or after `offset` rows.

    `read_from` returns a page and the best message of each row up to its end. If the ranking has
    changed since the page before, the row is searched for.
    """
    offset = 0 if found.seeks else request.rows_before
    page, ids = read_from(offset)
    if request.after_row and not found.seeks and request.after_row.message_id in ids:
        place = ids.index(request.after_row.message_id) + 1
        if place != offset:
            return read_from(place)[0]
    return page


def _read_messages(
    reader: "HitReader", request: Request, found: RankedMatches, take: TakeRows, offset: int
) -> tuple[Page, Sequence[str]]:
    last = offset + request.limit
    folder = Folder(is_full=found.seeks)
    ids: list[str] = []
    candidates: dict[str, Candidate] = {}
    start = skipped = 0
    while len(ids) <= last:
        size = find_block_size(folder, len(ids), offset, last)
        block = [row[0] for row in take(start, start + size)]
        if not block:
            break
        start += len(block)
        if folder.is_full and len(ids) < offset:
            ids += [one.message_id for one in block]
            skipped += len(block)
            continue
        candidates |= {one.message_id: one for one in block}
        known = len(folder.hits)
        for one in reader.read(block, found, with_patches=True):
            folder.add(one.build())
        ids += [hit.message_id for hit in folder.hits[known:]]
    hits = tuple(folder.hits[max(0, offset - skipped) : last - skipped])
    page = Page(
        hits,
        is_short=len(hits) < request.limit,
        last=candidates[hits[-1].message_id] if hits else None,
        has_more=len(ids) > last,
    )
    return page, ids


def find_block_size(folder: "Folder", read: int, offset: int, last: int) -> int:
    """Return how many rows to read next, if `read` rows are known and rows up to `last` are wanted.

    Rows before the page that can no longer be folded are skipped at once.
    """
    if folder.is_full:
        return offset - read if read < offset else last + 1 - read
    return max(min(last, FOLDED) + SPARE_CANDIDATES - read, SPARE_CANDIDATES, read)


def select_scored(request: Request, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates that reach the minimum score of a request."""
    least = request.min_score
    return [one for one in candidates if least is None or one.score >= least]


class Folder:
    """Hits, best first; near-duplicates are folded into an earlier hit and listed in its `copies`.

    Near-duplicates have the same sender, the same subject except for marks (Re:, [PATCH v2]), and
    nearly the same words in the chunk that matches best. The earlier hit stays, so that pages of
    any size have the same hits. It names the newest copy too, which is the one to review. A text
    that contests an id is never folded, and nothing is folded into it.
    """

    def __init__(self, *, is_full: bool = False) -> None:
        self.hits: list[Hit] = []
        self._added = FOLDED if is_full else 0
        self._alike: dict[tuple[str, str], list[int]] = {}
        #: Words of the hits that others were compared with, computed on demand.
        self._words: dict[int, set[str]] = {}

    @property
    def is_full(self) -> bool:
        """True if no further hit is folded."""
        return self._added >= FOLDED

    def add(self, hit: Hit) -> None:
        """Add a hit, or fold it into an earlier one that it nearly repeats."""
        place = self.find(hit)
        if place is None:
            self.append(hit)
        else:
            self.fold(place, hit)

    def may_repeat(self, message: "StoredMessage") -> bool:
        """Return whether an earlier hit has the sender and the subject of a message."""
        return _name_author_and_subject(message) in self._alike

    def find(self, hit: Hit) -> int | None:
        """Return the place of the earlier hit that this one nearly repeats, or None."""
        if hit.contested or self.is_full:
            return None
        alike = self._alike.get(_name_author_and_subject(hit))
        if not alike:
            return None
        words = _words(hit)
        for place in alike:
            if place not in self._words:
                self._words[place] = _words(self.hits[place])
            if overlap(words, self._words[place]):
                return place
        return None

    def is_alike(self, hit: Hit, place: int) -> bool:
        """Return whether a hit nearly repeats the one at a place."""
        other = self.hits[place]
        same = _name_author_and_subject(hit) == _name_author_and_subject(other)
        contested = hit.contested or other.contested
        return same and not contested and overlap(_words(hit), _words(other))

    def append(self, hit: Hit) -> int:
        """Add a hit of its own, and return its place."""
        self._added += 1
        if not hit.contested:
            self._alike.setdefault(_name_author_and_subject(hit), []).append(len(self.hits))
        self.hits.append(hit)
        return len(self.hits) - 1

    def fold(self, place: int, hit: Hit) -> None:
        """Fold a hit into the one at a place."""
        self._added += 1
        kept = self.hits[place]
        newest = kept.newer_copy
        if hit.sent_at > (newest or kept).sent_at:
            newest = NewerCopy(hit.message_id, hit.subject, hit.sent_at)
        copies = (*kept.copies, hit.message_id)
        versions = (*kept.other_versions, *hit.other_versions)
        self.hits[place] = replace(kept, copies=copies, newer_copy=newest, other_versions=versions)


def _name_author_and_subject(message: "Hit | StoredMessage") -> tuple[str, str]:
    return message.from_email, base_subject(message.subject).lower()


def _words(hit: Hit) -> set[str]:
    return {*hit.chunks[0].text.lower().split()} if hit.chunks else set()


def overlap(words: set[str], others: set[str]) -> bool:
    """Return whether two texts have nearly the same words; False for an empty text."""
    fewer, more = sorted((len(words), len(others)))
    if not fewer or fewer < MIN_OVERLAP * more:
        return False
    both = len(words & others)
    return both >= MIN_OVERLAP * (fewer + more - both)


#: The columns of a message to show, by copy.
_Copies = dict[MessageCopy, tuple[Any, ...]]


class ShownRows(NamedTuple):
    """Columns of threads by id, and the hits of a page with the states of their patches."""

    threads: dict[str, tuple[Any, ...]]
    hits: tuple[Hit, ...]


class HitReader:
    """Reads candidates as hits in one round trip; new words take another, for their stems."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._stems = WordReader(connection)

    def read(
        self, candidates: Sequence[Candidate], found: RankedMatches, *, with_patches: bool = False
    ) -> list["StoredMessage"]:
        """Return the stored messages of candidates, without those deleted meanwhile.

        `with_patches` also reads the states of their patches, which doubles the time.
        """
        query, terms = found.query, found.terms
        wanted = found.looked_up.changed if found.looked_up else ChangedNames()
        ids = [one.message_id for one in candidates]
        with self._connection.pipeline(), planned_once(self._connection):
            asked_copies = self._ask("page_copies", candidates)
            asked_chunks = self._ask("page_chunks", candidates)
            asked_reasons = ask_reasons(self._connection, wanted, ids)
            asked_patches = self._ask_states(ids if with_patches else [], found)
        copies = _group_copies(asked_copies.fetchall())
        chunks = _group_chunks(asked_chunks.fetchall())
        patches, reasons = asked_patches.read(), asked_reasons.read()
        texts = [chunk.text for of_message in chunks.values() for chunk in of_message]
        texts += [subject for of_one in copies.values() for _, subject, *_ in of_one.values()]
        highlighter = self._stems.build_highlighter(query, terms, texts)
        return [
            StoredMessage(
                candidate,
                copies[candidate.message_id],
                chunks.get(place, []),
                highlighter,
                _find_reason(candidate, query),
                patches.get(candidate.message_id),
                tuple(reasons.get(candidate.message_id, ())),
            )
            for place, candidate in enumerate(candidates, 1)
            if candidate.copy in copies.get(candidate.message_id, {})
        ]

    def find_versions(self, message_ids: Sequence[str]) -> dict[str, FoundVersion]:
        """Return the messages that have another version of their patch among `message_ids`."""
        return find_versions(self._connection, message_ids) if message_ids else {}

    def read_threads(
        self,
        threads: Sequence[str],
        lists: Sequence[str],
        hits: Sequence[Hit],
        found: RankedMatches,
    ) -> ShownRows:
        """Return what a page shows of threads in the searched lists and of hits."""
        parameters = {
            "threads": [*threads],
            "lists": [*lists],
            "names": MAX_NAMES,
            "characters": SHORTEST + CONTEXT,  # an address must not be cut before it is hidden
        }
        with self._connection.pipeline(), planned_once(self._connection):
            asked = self._connection.execute(statement("search", "page_threads"), parameters)
            states = self._ask_states([one.message_id for one in hits if one.text == 1], found)
        described = {thread_id: tuple(columns) for thread_id, *columns in asked.fetchall()}
        patches = states.read()
        return ShownRows(
            described,
            tuple(
                replace(one, patch=patches.get(one.message_id)) if one.text == 1 else one
                for one in hits
            ),
        )

    def _ask_states(
        self, ids: Sequence[str], found: RankedMatches
    ) -> Pending[dict[str, PatchState]]:
        has_patches = found.looked_up is None or found.looked_up.has_patches
        if not ids or not has_patches:
            return Pending.known({})
        return ask_states(self._connection, ids)

    def _ask(self, name: str, candidates: Sequence[Candidate]) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._connection.execute(
            statement("search", name),
            {
                "message_ids": Json([one.message_id for one in candidates]),
                "lists": Json([one.copy.month.list_name for one in candidates]),
                "months": Json([one.copy.month.month for one in candidates]),
                "variants": Json([one.copy.variant for one in candidates]),
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


class StoredMessage(NamedTuple):
    """A candidate with its stored columns. `build` is separate because highlighting is slow.

    `commits` are lines of text that name commits as reasons for the hit.
    """

    candidate: Candidate
    copies: _Copies
    chunks: Sequence[StoredChunk]
    highlighter: Highlighter
    found_by: FoundBy
    patch: PatchState | None
    commits: tuple[str, ...]

    @property
    def subject(self) -> str:
        """The subject of the copy that was found."""
        return str(self.copies[self.candidate.copy][1])

    @property
    def from_email(self) -> str:
        """The address of its sender."""
        return str(self.copies[self.candidate.copy][3])

    def build(self) -> Hit:
        """Return the hit from the copy that was found, with all lists that have its text.

        The words of the query are highlighted.
        """
        candidate = self.candidate
        text, subject, from_name, from_email, sent_at, thread_id, attachments = self.copies[
            candidate.copy
        ]
        shown = select_chunks(candidate, self.chunks, self.highlighter)
        titled = self.highlighter.find(subject).spans
        words = [subject[start:end] for start, end in titled]
        words += [text for chunk in shown for text, marked in chunk.pieces() if marked]
        first: dict[str, str] = {}
        for word in words:
            first.setdefault(word.lower(), word)
        lists = {copy.month.list_name for copy, one in self.copies.items() if one[0] == text}
        return Hit(
            message_id=candidate.message_id,
            lists=tuple(sorted(lists)),
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
                words=tuple(first.values()),
                distance=min(candidate.chunks.values(), default=None),
                thread_score=candidate.thread_score,
                found_by=self.found_by,
                commits=self.commits if text in (None, 1) else (),
            ),
            attachments=tuple(name for name in attachments if name),
            subject_highlights=tuple(titled),
            patch=self.patch if text in (None, 1) else None,
            other_versions=candidate.versions,
            best_version=candidate.best_version,
            contested=text is not None,
            text=text or 1,
        )


def _find_reason(candidate: Candidate, query: Query | None) -> FoundBy:
    if candidate.ranks:
        return "legs"
    if query is None:
        return "id"
    return "thread" if query.ranks else "date"
