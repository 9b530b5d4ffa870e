"""One page of hits: near-duplicates folded, and few hits of any thread."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mail_assets.search.candidates import Candidate
from mail_assets.search.hits import HitReader
from mail_assets.search.near_duplicates import Folder
from mail_assets.search.request import Group, Request
from mail_assets.search.response import Hit
from mail_assets.search.retrieval import SPARE_CANDIDATES, Retrieval

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
