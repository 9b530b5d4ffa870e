"""One page of hits: near-duplicates folded, and few hits of any thread.

[near_duplicates] Near-duplicates among hits: a patch that was sent again, a question posted twice.

[facets] How many messages match, by list, year, author, sender and kind.

Of a query of conditions alone (fields, phrases, what is excluded) all messages that meet them are
counted where an index finds them: up to MAX_COUNTED copies, and of required words so many of the
newest as are looked at (max_depth); else, and where many of the newest messages meet them, these
alone. Of a query with words that may be missing nearly every message matches a little; what the
legs found is counted, on all pages, as far as its score is asked for.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import psycopg

from mail_assets.mail.message.ids import base_subject
from mail_assets.search.candidates import Candidate
from mail_assets.search.field_conditions import FieldCondition
from mail_assets.search.filters import MessageFilter
from mail_assets.search.fulltext import (
    find_horizon,
    find_newest,
    find_required,
    max_depth,
    reads_little,
)
from mail_assets.search.hits import HitReader
from mail_assets.search.language.request import Group, Request
from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.live_index import LookedUp
from mail_assets.search.response import Facets, Hit, NewerCopy
from mail_assets.search.retrieval import SPARE_CANDIDATES, Retrieval

#: Share of words that the best chunks of two messages have in common to be one hit.
MIN_OVERLAP = 0.9
#: Hits that are folded into others. Whatever comes after them is a hit of its own, so that a page
#: of a corpus full of near-duplicates costs little more than another.
FOLDED = 100


class Folder:
    """Hits, best first, without near-duplicates of an earlier one, which names them in `copies`.

    The earlier one stays, though a maintainer reviews the newest: which that is depends on how many
    are read, and pages of any size have the same hits. So the newest is named beside it.

    Near-duplicates have the same sender, the same subject but for its marks (Re:, [PATCH v2]), and
    the same words in the chunk that matches best. `threads` has the threads of all that was added,
    each with the place of the hit that its first one is, or is folded into.
    """

    def __init__(self) -> None:
        self.hits: list[Hit] = []
        self.threads: dict[str, int] = {}
        self._added = 0
        self._alike: dict[tuple[str, str], list[tuple[int, set[str]]]] = {}

    def add(self, hits: Iterable[Hit]) -> None:
        """Add hits that come after those which were added before."""
        for hit in hits:
            self._added += 1
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
    """Say whether two texts have nearly the same words; of none nothing is known."""
    fewer, more = sorted((len(words), len(others)))
    if not fewer or fewer < MIN_OVERLAP * more:
        return False
    both = len(words & others)
    return both >= MIN_OVERLAP * (fewer + more - both)


#: Hits of one thread, by what a request groups by; a group that is not here has no limit.
MAX_OF_THREAD = {Group.few: 3, Group.thread: 1}
#: What a further message of a thread claims for itself, at least, of what its first one does: less,
#: and it is there for its thread, which has its place on the page already.
OWN_SHARE = 0.25


def read_page(reader: HitReader, request: Request, found: Retrieval) -> list[Hit]:
    """Return the hits of the page that a request asks for.

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
    return name_rest(folder, rest, last)[request.offset :]


def select_scored(request: Request, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates with the score that a request asks for at least."""
    least = request.min_score
    return [one for one in candidates if least is None or one.score >= least]


def select_of_threads(
    ranked: Sequence[Candidate], most: int | None, first: int | None = None
) -> tuple[list[Candidate], dict[str, list[str]]]:
    """Return the best of each thread, `most` at most, and the ids of the rest by thread.

    A further one that claims little for itself is of the rest.

    Where all of the `first` are of one thread none is left out: there is nothing to make room for.
    Those are the same for pages of any size; what is asked for deeper may be of another one.
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
    """Tell whether a message of a thread is more than a part of what its first one shows."""
    own, most = one.score - one.thread_score, first.score - first.thread_score
    return one is first or not one.thread_score or own >= OWN_SHARE * most


def name_rest(folder: Folder, rest: Mapping[str, Sequence[str]], last: int) -> list[Hit]:
    """Return the hits up to the last of a page, with the ids of what was found of threads besides.

    The first message of a thread names them: its hit, or the one that it is folded into.
    """
    named: dict[int, list[str]] = {}
    for thread, place in folder.threads.items():
        named.setdefault(place, []).extend(rest.get(thread, ()))
    return [
        replace(hit, in_thread=tuple(named[place])) if named.get(place) else hit
        for place, hit in enumerate(folder.hits[:last])
    ]


def _limit(request: Request, found: Retrieval) -> int | None:
    """Return how many hits a thread has at most, None for all: a list by date leaves none out."""
    group = Group(request.group)
    if group == Group.few and not (found.query and found.query.ranks):
        return None
    return MAX_OF_THREAD.get(group)


#: Copies of messages that are counted: this bounds the cost.
MAX_COUNTED = 10_000
#: Of the newest messages (filters.MAX_WALKED) so many are enough to say how they are spread. They
#: are a twentieth, and as many of all would take an index long to read.
MANY = 500
#: Authors and senders that are named.
MAX_AUTHORS = 20


#: Of a request that no message can meet.
NO_FACETS = Facets(
    0, at_least=False, lists={}, months={}, years={}, authors={}, senders={}, kinds={}
)


def count_facets(
    connection: psycopg.Connection, parsed: ParsedRequest, filters: MessageFilter, found: Retrieval
) -> Facets:
    """Return how many messages match a request, for which `found` was found.

    Raises:
        WordsError: the index of words is missing or fails.
    """
    candidates = select_scored(parsed.request, found.candidates)
    if found.looked_up is None:  # an id was pasted
        return _count_named(connection, filters, candidates)
    if not parsed.is_exact or parsed.request.min_score is not None:
        return _count_named(connection, filters, candidates, at_least=True)
    counted = _count_all(connection, found.looked_up)
    if counted.at_least and counted.total < len(candidates):
        return _count_named(connection, filters, candidates, at_least=True)
    return counted


def _count_named(
    connection: psycopg.Connection,
    filters: MessageFilter,
    candidates: Iterable[Candidate],
    *,
    at_least: bool = False,
) -> Facets:
    ids = sorted(one.message_id for one in candidates)
    named = filters.require_field(FieldCondition("ids", ids))
    return _count(connection, named, at_least=at_least)


def _count_all(connection: psycopg.Connection, looked_up: LookedUp) -> Facets:
    """Return how many messages meet the conditions: all that do, or those of the newest."""
    filters = looked_up.filters
    ids = looked_up.passing
    most = min(MAX_COUNTED, max_depth(looked_up.query))
    if ids is None:
        ids = find_required(looked_up, most)
    if ids is not None:
        return _count(connection, filters.require_field(FieldCondition("ids", [*ids])))
    if newest_ids := find_newest(looked_up, most):
        named = filters.require_field(FieldCondition("ids", newest_ids.message_ids))
        return _count(connection, named, at_least=True)
    is_left = find_horizon(connection, filters) is not None
    newest = _count(connection, filters.walk(), at_least=is_left)
    if is_left and newest.total < MANY and reads_little(connection, filters):
        return _count(connection, filters.find_by_index())
    return newest


def _count(
    connection: psycopg.Connection, filters: MessageFilter, *, at_least: bool = False
) -> Facets:
    rows = connection.execute(
        filters.statement("facets"), {**filters.parameters, "most": MAX_COUNTED + 1}
    ).fetchall()
    counts: dict[str, dict[str, int]] = {}
    for facet, value, messages in rows:
        counts.setdefault(facet, {})[value] = messages
    cut = counts.get("copies", {}).get("", 0) > MAX_COUNTED
    return Facets(
        total=counts.get("messages", {}).get("", 0),
        at_least=cut or at_least,
        lists=_most_first(counts.get("list", {})),
        months=dict(sorted(counts.get("month", {}).items())),
        years=dict(sorted(counts.get("year", {}).items())),
        authors=_first_of(counts.get("author", {})),
        senders=_first_of(counts.get("sender", {})),
        kinds=_most_first(counts.get("kind", {})),
    )


def _first_of(counts: Mapping[str, int]) -> dict[str, int]:
    return dict([*_most_first(counts).items()][:MAX_AUTHORS])


def _most_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
