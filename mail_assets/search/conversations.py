"""A page of conversations: a row for each thread, with its first message and its best ones.

The best message of a thread places its row. The messages of a row depend on the query alone, so
pages of any size follow each other without repeats. For a later page the indexes may be asked for
more: these messages are shown in rows of new threads, and only counted in earlier rows. A row of a
list by date has all matches of its thread (by_date.py).

Versions of one patch in different threads are one hit. It shows the version that represents them
(matches.py), at the place of the best of them. A thread without another hit has no row.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from mail_assets.mail.message.subjects import base_subject, read_patch_label
from mail_assets.month import utc
from mail_assets.search.language.request import Request
from mail_assets.search.matches import Candidate, FoundVersion
from mail_assets.search.page import (
    Folder,
    HitReader,
    Page,
    ShownRows,
    find_block_size,
    read_after,
    select_scored,
)
from mail_assets.search.response import Conversation, FirstMessage, Hit
from mail_assets.search.retrieval import RankedMatches

#: Most hits that a row shows.
SHOWN = 2


@dataclass
class Row:
    """The messages of a thread, best first.

    The first of `best` are shown. `late` were found by a later, deeper request than the one that
    found the row. `brought` were found by no index: they came with the thread.
    """

    pool: int = 0
    best: list[Candidate] = field(default_factory=list)
    late: list[Candidate] = field(default_factory=list)
    brought: list[Candidate] = field(default_factory=list)


def group_rows(
    candidates: Sequence[Candidate],
    pools: Sequence[int] = (),
    versions: Mapping[str, FoundVersion] = MappingProxyType({}),
    *,
    by_legs: bool = True,
) -> list[Row]:
    """Return the rows of ranked candidates, best first.

    `pools` has the number of candidates after each request to the indexes. `versions` has the
    candidates that are versions of one patch, by id. `by_legs`: a candidate without a rank in a leg
    was brought by its thread.
    """
    rows: dict[_Key, Row] = {}
    folded_rows: dict[_Key, Row] = {}
    numbered = [*zip(_number_pools(len(candidates), pools), candidates, strict=True)]
    patches = _gather_versions(numbered, versions, by_legs=by_legs)
    shown: set[str] = set()
    for pool, one in numbered:
        key, patch = _key(one), patches.get(one.message_id)
        if patch and pool == patch.pool and patch.standing.message_id not in shown:
            standing = patch.stand_in(one)
            shown.add(standing.message_id)
            rows.setdefault(_key(standing), Row(pool)).best.append(standing)
        if one.message_id in shown:
            continue
        if patch and patch.folds(one):
            folded_rows.setdefault(key, rows[_key(patch.standing)])
            if pool > patch.pool:
                rows[_key(patch.standing)].late.append(one)
            continue
        is_brought = by_legs and not one.ranks
        if is_brought and key not in rows and key in folded_rows:
            folded_rows[key].brought.append(one)
            continue
        row = rows.setdefault(key, Row(pool))
        if is_brought and row.best:
            row.brought.append(one)
        else:
            (row.best if row.pool == pool else row.late).append(one)
    return [*rows.values()]


#: Identity of a row: a thread, or a message in no thread.
_Key: TypeAlias = tuple[str | None, str]


def _key(one: Candidate) -> _Key:
    # a text that contests an id is in no thread, even if a thread has this id
    return one.thread_id, "" if one.thread_id else one.message_id


def _number_pools(candidates: int, pools: Sequence[int]) -> Iterator[int]:
    pool = 0
    for place in range(candidates):
        while pool < len(pools) and place >= pools[pool]:
            pool += 1
        yield pool


@dataclass
class _Patch:
    """The versions of a patch that were found, those of one pool, and their representative."""

    pool: int
    standing: Candidate
    found: list[Candidate] = field(default_factory=list)

    def folds(self, one: Candidate) -> bool:
        """Return whether a version in another thread represents this one."""
        return _key(one) != _key(self.standing)

    def stand_in(self, best: Candidate) -> Candidate:
        """Return the representative, with the score of the best version."""
        folded = tuple(one.message_id for one in self.found if self.folds(one))
        better = best.message_id if self.folds(best) else None
        return self.standing._replace(score=best.score, versions=folded, best_version=better)


def _gather_versions(
    numbered: Iterable[tuple[int, Candidate]],
    versions: Mapping[str, FoundVersion],
    *,
    by_legs: bool,
) -> dict[str, _Patch]:
    """Return the patch of each candidate that a row shows as a version.

    The representative comes from the first pool that has a version. Messages that a row of an
    earlier pool only counts are ignored.
    """
    patches: dict[tuple[str, int], _Patch] = {}
    pool_of_row: dict[_Key, int] = {}
    found: dict[str, _Patch] = {}
    for pool, one in numbered:
        is_shown = pool_of_row.setdefault(_key(one), pool) == pool
        version = versions.get(one.message_id)
        if version is None or one.text is not None or (by_legs and not one.ranks) or not is_shown:
            continue
        patch = found[one.message_id] = patches.setdefault(version.patch, _Patch(pool, one))
        if patch.pool == pool:
            patch.found.append(one)
            if version > versions[patch.standing.message_id]:
                patch.standing = one
    return found


@dataclass
class _Placed:
    """A row, the places of its hits, and folded rows; `repeated` messages nearly repeat a hit."""

    row: Row
    places: list[int]
    folded: list[Row] = field(default_factory=list)
    repeated: int = 0

    @property
    def thread_id(self) -> str | None:
        return self.row.best[0].thread_id


def read_conversations(
    reader: HitReader, request: Request, found: RankedMatches, lists: Sequence[str]
) -> Page:
    """Return the requested page of conversations; `lists` are the lists that are searched."""
    take = _list_rows(reader, request, found)

    def read_from(offset: int) -> tuple[Page, Sequence[str]]:
        arranged = _arrange(reader, request, found, take, offset)
        return _build_page(reader, request, found, arranged, offset, lists)

    return read_after(request, found, read_from)


#: Returns the rows between two places; fewer, or none, where they end.
_TakeRows: TypeAlias = Callable[[int, int], Sequence[Row]]


def _list_rows(reader: HitReader, request: Request, found: RankedMatches) -> _TakeRows:
    if dated := found.dated:
        return lambda start, end: [Row(best=row) for row in dated.take(start, end)]
    by_legs = found.query is not None and found.query.ranks
    candidates = select_scored(request, found.candidates)
    versions: dict[str, FoundVersion] = {}
    if found.looked_up and found.looked_up.has_patches:
        versions = reader.find_versions([one.message_id for one in candidates])
    if candidates and (named := candidates[0]).ranks.get("subject") == 1 and _names(request):
        versions |= {
            one: version._replace(is_named=one == named.message_id)
            for one, version in versions.items()
        }
    rows = group_rows(candidates, found.pools, versions, by_legs=by_legs)
    return lambda start, end: rows[start:end]


def _names(request: Request) -> bool:
    """Return whether the query names a version of a patch, such as [PATCH v2]."""
    label = read_patch_label(request.query)
    return label is not None and label.version is not None


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
        read = {one.candidate.message_id: one for one in reader.read(best, found)}
        for row in block:
            ids = (c.message_id for c in row.best[:SHOWN])
            stored = [read[one] for one in ids if one in read]
            if len(arranged.rows) > last and not any(map(arranged.folder.may_repeat, stored)):
                arranged.rows += [_Placed(row, [])] if stored else []  # after the page
            else:
                arranged.add(row, [one.build() for one in stored])
    return arranged


def _build_page(
    reader: HitReader,
    request: Request,
    found: RankedMatches,
    arranged: "_Arrangement",
    offset: int,
    lists: Sequence[str],
) -> tuple[Page, Sequence[str]]:
    last = offset + request.limit
    page = arranged.rows[offset:last]
    waiting = [c for one in page for c in arranged.list_spare(one)]
    for one in reader.read(waiting, found) if waiting else ():
        arranged.fill(page, one.build())
    threads = [one.thread_id for one in page if one.thread_id]
    hits = [arranged.folder.hits[at] for one in page for at in one.places]
    shown = reader.read_threads(threads, lists, hits, found) if page else ShownRows({}, ())
    built = Page(
        shown.hits,
        tuple(_describe(one, arranged, shown.threads) for one in page),
        is_short=len(page) < request.limit,
        last=page[-1].row.best[0] if page else None,
        has_more=len(arranged.rows) > last,
    )
    return built, [one.row.best[0].message_id for one in arranged.rows]


class _Arrangement:
    """Rows in order, without those that only repeat what earlier rows show."""

    def __init__(self, *, is_full: bool = False) -> None:
        self.rows: list[_Placed] = []
        self.folder = Folder(is_full=is_full)
        self._row_at: dict[int, _Placed] = {}

    def add(self, row: Row, hits: Sequence[Hit]) -> None:
        """Add a row with its hits; one of these may nearly repeat the other."""
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
        """Yield the next messages of a row that has room for more."""
        # Copies of later rows do not count: their number depends on the page.
        if len(placed.places) < SHOWN <= len(placed.places) + placed.repeated:
            yield from placed.row.best[SHOWN : 2 * SHOWN]

    def fill(self, page: Iterable[_Placed], hit: Hit) -> None:
        """Show a hit in the row of its thread, if that has room."""
        for placed in page:
            if any(c.message_id == hit.message_id for c in placed.row.best[SHOWN : 2 * SHOWN]):
                self._show(placed, hit)

    def _show(self, placed: _Placed, hit: Hit) -> None:
        own = next((at for at in placed.places if self.folder.is_alike(hit, at)), None)
        if own is not None:
            self.folder.fold(own, hit)
            placed.repeated += 1
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
