"""A page of conversations: a row for each thread, with its first message and its best ones.

A row stands where the best message of its thread does. Which messages a row shows depends on the
query alone, so that pages of any size follow one another: where the indexes were asked again for a
later page, messages that only the deeper answer has are shown in rows of their own threads, and
only counted in earlier rows. A row of a list by date has all that match (by_date.py).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mail_assets.mail.message.subjects import base_subject
from mail_assets.search.language.request import Request
from mail_assets.search.matches import Candidate
from mail_assets.search.page import (
    Folder,
    HitReader,
    Page,
    find_block_size,
    read_after,
    select_scored,
)
from mail_assets.search.response import Conversation, FirstMessage, Hit
from mail_assets.search.retrieval import RankedMatches
from mail_assets.tables.messages import utc

#: Hits of a row.
SHOWN = 2


@dataclass
class Row:
    """The messages of a thread, best first.

    The first of `best` are shown. `late` were found when the indexes were asked deeper than for the
    row itself. `brought` are those that no index found: they came with the thread.
    """

    pool: int = 0
    best: list[Candidate] = field(default_factory=list)
    late: list[Candidate] = field(default_factory=list)
    brought: list[Candidate] = field(default_factory=list)


def group_rows(
    candidates: Iterable[Candidate], pools: Sequence[int] = (), *, by_legs: bool = True
) -> list[Row]:
    """Return the rows of ranked candidates, best first.

    `pools` are the numbers of candidates after each time that the indexes were asked. `by_legs`:
    a candidate without a rank in a leg was brought by its thread.
    """
    rows: dict[tuple[str | None, str], Row] = {}
    pool = 0
    for place, one in enumerate(candidates):
        while pool < len(pools) and place >= pools[pool]:
            pool += 1
        # a text that contests an id is in no thread, though the thread may be named by that id
        key = (one.thread_id, "" if one.thread_id else one.message_id)
        row = rows.setdefault(key, Row(pool))
        if by_legs and not one.ranks and row.best:
            row.brought.append(one)
        else:
            (row.best if row.pool == pool else row.late).append(one)
    return [*rows.values()]


@dataclass
class _Placed:
    """A row with the places of its hits, and the rows that are folded into it."""

    row: Row
    places: list[int]
    folded: list[Row] = field(default_factory=list)

    @property
    def thread_id(self) -> str | None:
        """The thread, None for a message that is in none."""
        return self.row.best[0].thread_id


def read_conversations(
    reader: HitReader, request: Request, found: RankedMatches, lists: Sequence[str]
) -> Page:
    """Return the page of conversations that a request asks for, of the lists that are searched."""
    take = _list_rows(request, found)

    def read_from(offset: int) -> tuple[Page, Sequence[str]]:
        arranged = _arrange(reader, request, found, take, offset)
        return _build_page(reader, request, found, arranged, offset, lists)

    return read_after(request, found, read_from)


#: Returns rows from a place to another, in their order: fewer, or none, where they end.
_TakeRows: TypeAlias = Callable[[int, int], Sequence[Row]]


def _list_rows(request: Request, found: RankedMatches) -> _TakeRows:
    if dated := found.dated:
        return lambda start, end: [Row(best=row) for row in dated.take(start, end)]
    by_legs = found.query is not None and found.query.ranks
    rows = group_rows(select_scored(request, found.candidates), found.pools, by_legs=by_legs)
    return lambda start, end: rows[start:end]


def _arrange(
    reader: HitReader, request: Request, found: RankedMatches, take: _TakeRows, offset: int
) -> "_Arrangement":
    """Return the rows up to one after the page."""
    arranged = _Arrangement(is_full=found.seeks)
    last = offset + request.limit
    start = 0
    while len(arranged.rows) <= last:
        size = find_block_size(arranged.folder, len(arranged.rows), offset, last)
        block = take(start, start + size)
        if not block:
            break
        start += len(block)
        if arranged.folder.is_full and len(arranged.rows) < offset:
            arranged.rows += [_Placed(row, []) for row in block]
            continue
        best = [c for row in block for c in row.best[:SHOWN]]
        hits = {hit.message_id: hit for hit in reader.read(best, found.query, found.terms)}
        for row in block:
            ids = (c.message_id for c in row.best[:SHOWN])
            arranged.add(row, [hits[one] for one in ids if one in hits])
    return arranged


def _build_page(
    reader: HitReader,
    request: Request,
    found: RankedMatches,
    arranged: "_Arrangement",
    offset: int,
    lists: Sequence[str],
) -> tuple[Page, Sequence[str]]:
    """Return a page of rows, and the best message of each row."""
    last = offset + request.limit
    page = arranged.rows[offset:last]
    waiting = [c for one in page for c in arranged.list_spare(one)]
    for hit in reader.read(waiting, found.query, found.terms) if waiting else ():
        arranged.fill(page, hit)
    threads = [one.thread_id for one in page if one.thread_id]
    described = reader.read_threads(threads, lists) if threads else {}
    conversations = [_describe(one, arranged, described) for one in page]
    built = Page(
        tuple(arranged.folder.hits[at] for one in page for at in one.places),
        tuple(conversations),
        is_short=len(page) < request.limit,
        last=page[-1].row.best[0] if page else None,
        has_more=len(arranged.rows) > last,
    )
    return built, [one.row.best[0].message_id for one in arranged.rows]


class _Arrangement:
    """Rows in their order, without those that would only repeat what earlier ones show."""

    def __init__(self, *, is_full: bool = False) -> None:
        self.rows: list[_Placed] = []
        self.folder = Folder(is_full=is_full)
        self._row_at: dict[int, _Placed] = {}

    def add(self, row: Row, hits: Sequence[Hit]) -> None:
        """Add a row with its hits, of which one may nearly repeat the other."""
        known = [self.folder.find(hit) for hit in hits]
        repeated = [place for place in known if place is not None]
        if not hits:  # its messages were deleted meanwhile
            return
        if len(repeated) == len(hits):
            for place, hit in zip(repeated, hits, strict=True):
                self.folder.fold(place, hit)
            self._row_at[repeated[0]].folded.append(row)
            return
        placed = _Placed(row, [])
        self.rows.append(placed)
        for hit in hits:
            self._show(placed, hit)

    def list_spare(self, placed: _Placed) -> Iterator[Candidate]:
        """Yield the next messages of a row that has room for them."""
        shown = sum(1 + len(self.folder.hits[at].copies) for at in placed.places)
        if len(placed.places) < SHOWN <= shown:
            yield from placed.row.best[SHOWN : 2 * SHOWN]

    def fill(self, page: Iterable[_Placed], hit: Hit) -> None:
        """Show one more message of its thread, if its row still has room."""
        for placed in page:
            if any(c.message_id == hit.message_id for c in placed.row.best[SHOWN : 2 * SHOWN]):
                self._show(placed, hit)

    def _show(self, placed: _Placed, hit: Hit) -> None:
        own = next((at for at in placed.places if self.folder.is_alike(hit, at)), None)
        if own is not None:
            self.folder.fold(own, hit)
        elif len(placed.places) < SHOWN:
            place = self.folder.append(hit)
            placed.places.append(place)
            self._row_at[place] = placed


def _describe(
    placed: _Placed, arranged: _Arrangement, described: dict[str, tuple[Any, ...]]
) -> Conversation:
    hits = [arranged.folder.hits[at] for at in placed.places]
    shown = {one for hit in hits for one in (hit.message_id, *hit.copies)}
    rows = [placed.row, *placed.folded]
    found = [c for c in (*placed.row.best, *placed.row.late) if c.message_id not in shown]
    found += [c for row in placed.folded for c in (*row.best[SHOWN:], *row.late)]
    brought = [c for row in rows for c in row.brought]
    best, others = hits[0], tuple(c.message_id for c in (*found, *brought))
    more, ids = len(found), tuple(hit.message_id for hit in hits)
    about = described.get(placed.thread_id or "")
    if about is None:
        return Conversation(
            thread_id=None,
            subject=base_subject(best.subject),
            lists=best.lists,
            first_sent_at=best.sent_at,
            last_sent_at=best.sent_at,
            messages=1,
            people=1,
            names=(best.from_name,) if best.from_name else (),
            first=None,
            best=ids,
            more=more,
            others=others,
        )
    messages, people, first_sent_at, last_sent_at, lists, names, subject, *first = about
    message_id, from_name, from_email, sent_at, text, contested = first
    return Conversation(
        thread_id=best.thread_id,
        subject=subject,
        lists=tuple(lists),
        first_sent_at=utc(first_sent_at),
        last_sent_at=utc(last_sent_at),
        messages=messages,
        people=people,
        names=tuple(names),
        first=FirstMessage(message_id, from_name, from_email, utc(sent_at), text or "", contested),
        best=ids,
        more=more,
        others=others,
    )
