"""Retrieval: searches both indexes, confirms the matches in PostgreSQL, and ranks them.

Both indexes are searched at the same time. PostgreSQL applies the filters that the indexes cannot
check. If too few matches pass, the indexes are searched again for more matches; the share that
passed determines how many.
"""

import datetime as dt
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import psycopg

from mail_assets.postgres.statements import Pending, planned_once
from mail_assets.search.by_date import DatedRows, find_begin
from mail_assets.search.filters import MessageFilter, Place
from mail_assets.search.fulltext import (
    DEEPER,
    FULLTEXT_DEPTH,
    HYBRID_MESSAGES,
    MAX_DEPTH,
    PAGE_DEPTH,
    enough,
    find_required,
    has_any_word,
    search_words,
)
from mail_assets.search.fusion import (
    FLOORS,
    NO_FLOORS,
    add_thread_messages,
    drop_far,
    fuse,
    rank_single_leg,
    settle_ends,
    weigh_legs,
)
from mail_assets.search.language.request import Group, Mode, Request
from mail_assets.search.live_index import VectorSearch
from mail_assets.search.look_up import LookedUp
from mail_assets.search.matches import (
    NO_MATCHES,
    Candidate,
    ConfirmedMatches,
    Depths,
    Identity,
    IndexMatches,
    append_unknown,
    ask_unknown,
    confirm_matches,
    read_copies,
)
from mail_assets.search.query import (
    LanguageTerms,
    Query,
    WeighedTerm,
    list_names,
    measure_coverage,
    weigh_query,
)
from mail_assets.search.semantic import (
    HYBRID_CHUNKS,
    MAX_NEAREST,
    SEMANTIC_DEPTH,
    Vector,
    measure_chunks,
    rerank,
    search_vectors,
)
from mail_assets.text.identifiers import find_ids
from mail_assets.text.letters import pair_letters
from mail_assets.vectors.index import Match

#: Extra candidates beyond a page, because some are folded into other hits.
SPARE_CANDIDATES = 5
#: Only this many hits are checked for near-duplicates; this bounds the cost in a corpus full of
#: them.
FOLDED = 100
#: Matches that hybrid mode asks for first.
HYBRID_DEPTHS = Depths(HYBRID_MESSAGES, HYBRID_CHUNKS)
#: Most messages with the required words to which the vector search is limited; it then misses none.
FEW_REQUIRED = 500
#: Factor on the estimated number of matches to ask for, because the share that passes falls.
SPARE = 2

T = TypeVar("T")


class RankedMatches(NamedTuple):
    """Candidates, best first, with the query and terms that found them, and the explanation.

    - `looked_up`: the values that the search began with; None for a pasted id.
    - `asked`: the depths of the last request to the indexes; None if there are no more matches.
      `is_cut`: there are more, beyond the greatest depth.
    - `pools`: the number of candidates after each request to the indexes. The first pool is the
      same for every page; deeper candidates only follow it.
    - `unknown`: lexemes of the query that no message has.
    - `far`: how many messages are no hits because only meaning found them, and they are too far.
    - `dated`: the rows of a list by date; `candidates` has the first of them. With `seeks` they
      begin with the rows of the page.
    """

    candidates: list[Candidate]
    query: Query | None = None
    terms: Sequence[WeighedTerm] = ()
    explanation: Mapping[str, Any] = MappingProxyType({})
    looked_up: LookedUp | None = None
    asked: Depths | None = None
    is_cut: bool = False
    pools: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()
    far: int = 0
    dated: DatedRows | None = None
    seeks: bool = False

    @property
    def looked_back_to(self) -> dt.date | None:
        """The day (UTC) beyond which messages were not read."""
        return self.dated.looked_back_to if self.dated else None

    @property
    def first_pool(self) -> list[Candidate]:
        """The candidates that every page of a query has."""
        return self.candidates[: self.pools[0]] if self.pools else self.candidates

    @property
    def opening_ms(self) -> float:
        """The milliseconds that it took to open the indexes."""
        return self.looked_up.opening_ms if self.looked_up else 0.0


class Left(NamedTuple):
    """For each index, True if it may have more matches than it was asked for."""

    words: bool
    vectors: bool


NONE_LEFT = Left(words=False, vectors=False)


class LegRankings(NamedTuple):
    """The confirmed candidates of each leg, other messages of the best threads, and the terms.

    - `subjects`: messages whose whole subject is the query.
    - `linked`: mail of commits that change the named files or functions.
    - `covered`: share of the query's weight in the best message by words; 1 if it has all terms.
    - `milliseconds`: time of each part.
    - `unknown`: lexemes that no message has.
    - `left`: the indexes that may have more than they were `asked` for.
    """

    fulltext: list[Candidate]
    semantic: list[Candidate]
    members: list[Candidate]
    covered: float
    terms: list[WeighedTerm]
    milliseconds: dict[str, float]
    unknown: tuple[str, ...]
    subjects: Sequence[Candidate] = ()
    linked: Sequence[Candidate] = ()
    left: Left = NONE_LEFT
    asked: Depths = Depths()


class Retriever:
    """Finds candidates over one connection; only the caller's thread uses the connection."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        #: Searches the vector index, and encodes a query for reranking. The thread is kept, because
        #: starting one takes milliseconds on a busy machine.
        self._ahead = ThreadPoolExecutor(1)

    def find_pasted(
        self, message_ids: Iterable[str], filters: MessageFilter
    ) -> RankedMatches | None:
        """Return the message of the first id that is stored; None if none is."""
        for message_id in message_ids:
            if copies := read_copies(self.connection, filters, "by_id", message_id=message_id):
                return RankedMatches([copies[0]._replace(score=1.0)])
        return None

    def retrieve(self, request: Request, looked_up: LookedUp) -> RankedMatches:
        """Return the candidates of a request, best first, or by date if nothing ranks.

        The depth depends on the query, not on the page. If a page needs more, `retrieve_more`
        continues.
        """
        if not looked_up.query.ranks:
            return self._list_by_date(request, looked_up)
        if request.mode == Mode.hybrid:
            return self._retrieve(looked_up, HYBRID_DEPTHS)
        if request.mode == Mode.fulltext:
            is_whole = request.facets or request.group == Group.conversation
            return self._retrieve(looked_up, Depths(FULLTEXT_DEPTH if is_whole else PAGE_DEPTH))
        return self._retrieve(looked_up, Depths(vectors=SEMANTIC_DEPTH))

    def retrieve_more(self, found: RankedMatches) -> RankedMatches | None:
        """Return the same candidates and more after them; None if there are no more."""
        looked_up = found.looked_up
        if found.asked is None or looked_up is None:
            return None
        depths = Depths(
            min(DEEPER * found.asked.words, MAX_DEPTH),
            min(DEEPER * found.asked.vectors, MAX_NEAREST),
        )
        return self._retrieve(looked_up, depths, found)

    def retrieve_similar(
        self, index: VectorSearch, message_id: str, texts: Iterable[str], filters: MessageFilter
    ) -> RankedMatches:
        """Return the messages nearest to any text of a message, without the message itself."""
        best: dict[str, Candidate] = {}
        where = filters.vector_filter(index.max_constraints()).where
        for text in texts:
            matches = IndexMatches(by_meaning=search_vectors(index, text, where, from_mail=True))
            for one in confirm_matches(self.connection, filters, matches).by_meaning:
                known = best.setdefault(one.message_id, one)
                if one.score > known.score:
                    best[one.message_id] = one
        best.pop(message_id, None)
        ranked = sorted(best.values(), key=lambda one: (-one.score, one.message_id))
        return RankedMatches(rank_single_leg("semantic", ranked))

    def _list_by_date(self, request: Request, looked_up: LookedUp) -> RankedMatches:
        """Return the rows of a list by date; for a page deep in the list, from that page on."""
        after, by_thread = request.after_row, request.group == Group.conversation
        place = Place(after.sent_at, after.message_id) if after and after.sent_at else None
        most = max(PAGE_DEPTH, request.limit + SPARE_CANDIDATES)
        dated = DatedRows(self.connection, looked_up, place, by_thread, most)
        if after and after.is_end and place:
            dated = replace(dated, place=find_begin(dated, place, request.limit))
        return RankedMatches(
            [row[0] for row in dated.take(0, 1)],
            looked_up.query,
            looked_up=looked_up,
            dated=dated,
            seeks=place is not None,
        )

    def _retrieve(
        self, looked_up: LookedUp, depths: Depths, before: RankedMatches | None = None
    ) -> RankedMatches:
        """Return the candidates of one leg, or one ranking of both; those found before come first.

        A deeper search of an approximate index may also find nearer vectors. They still follow
        those found before, so that pages of any size follow each other without repeats. If the
        first search finds nothing, no page has anything.
        """
        ranked, query = self.rank_legs(looked_up, depths), looked_up.query
        is_hybrid = bool(depths.words and depths.vectors)
        mix: dict[str, Any] = {}
        if is_hybrid:
            names = len(query.parsed.identifiers)
            weights = weigh_legs(ranked.covered, len(pair_letters(query.text).split()), names)
            found = fuse(ranked.semantic, ranked.fulltext, weights)
            mix = {"mix": asdict(weights), "covered": ranked.covered}
        elif depths.words:
            found = rank_single_leg("fulltext", ranked.fulltext)
        else:
            found = rank_single_leg("semantic", ranked.semantic)
        near = _drop_far(found, ranked, looked_up) if depths.vectors else found
        far = len(ranked.semantic) - sum("semantic" in one.ranks for one in near)
        left = ranked.left
        if is_hybrid:  # others are farther
            left = left._replace(vectors=left.vectors and not far)
        if not near or (not is_hybrid and near[-1] is not found[-1]):
            left = NONE_LEFT
        if before is None:
            whole = add_thread_messages(near, ranked.members) if is_hybrid else near
            candidates = settle_ends(whole, ranked.subjects, ranked.linked)
            explanation = mix
            if depths.words:
                explanation["terms"] = [term.explain() for term in ranked.terms]
            if is_hybrid:
                for part in ("semantic", "fulltext", "members"):
                    explanation[part] = len(getattr(ranked, part))
            milliseconds = ranked.milliseconds
        else:
            candidates = append_unknown(before.candidates, near)
            explanation, known = {**before.explanation}, before.explanation["ms"]
            milliseconds = {
                part: round(ms + known[part], 1) for part, ms in ranked.milliseconds.items()
            }
        return RankedMatches(
            candidates,
            query,
            ranked.terms,
            explanation | {"ms": milliseconds},
            looked_up=looked_up,
            asked=_find_deeper(looked_up, depths, ranked, left),
            is_cut=any(left),
            pools=(*(before.pools if before else ()), len(candidates)),
            unknown=ranked.unknown,
            far=before.far if before else far,
        )

    def rank_legs(self, looked_up: LookedUp, depths: Depths) -> LegRankings:
        """Search the indexes, and return the confirmed candidates of each leg.

        With both legs, also return the other messages of the best threads.
        """
        languages = weigh_query(looked_up.query, looked_up.frequencies) if depths.words else []
        lexemes = sorted({term.lexeme for one in languages for term in one.terms})
        names = list_names(looked_up.query)
        matches, confirmed, confirm_ms = IndexMatches(), NO_MATCHES, 0.0
        wanted: Depths | None = choose_first_depths(looked_up, depths)
        refused: set[Identity] = set()
        rare = dict.fromkeys(
            term.lexeme for one in languages for term in one.terms if not term.is_named
        )
        unknown: Pending[frozenset[str]] | None = None
        model = looked_up.vectors.reranker() if looked_up.vectors else None
        vector: Future[Vector] | None = None
        while wanted is not None:
            matches = self._ask_indexes(looked_up, languages, wanted, matches)
            if model and vector is None:  # encoded while PostgreSQL confirms
                vector = self._ahead.submit(model.encode_query, looked_up.query.text)
            began = time.perf_counter()
            with self.connection.pipeline(), planned_once(self.connection):
                if unknown is None:
                    unknown = ask_unknown(self.connection, [*rare])
                confirmed = confirm_matches(
                    self.connection,
                    looked_up.filters,
                    matches,
                    lexemes,
                    subjects=looked_up.subjects,
                    linked=looked_up.linked,
                    names=names,
                    refused=refused,
                    threads=bool(depths.words and depths.vectors),
                )
            confirm_ms += milliseconds_since(began)
            wanted = choose_depths(looked_up, depths, matches, confirmed)
            if wanted is not None:
                refused = confirmed.find_refused(matches)
        semantic, began = confirmed.by_meaning, time.perf_counter()
        if looked_up.vectors:
            text = looked_up.query.text
            semantic = measure_chunks(looked_up.vectors, text, semantic, matches.by_meaning)
        if model and vector:
            semantic = rerank(
                self.connection, model.encoder, vector.result(), semantic, confirmed.by_words
            )
        asked = matches.asked
        # an index that returned as many as it was asked for may have more
        left = Left(
            words=0 < asked.words <= len(matches.by_words),
            vectors=looked_up.vectors is not None and 0 < asked.vectors <= len(matches.by_meaning),
        )
        return LegRankings(
            confirmed.by_words,
            semantic,
            confirmed.members,
            measure_coverage(languages, confirmed.lexemes),
            [term for one in languages for term in one.terms],
            {
                "nearest": matches.vectors_ms,
                "words": matches.words_ms,
                "stored": round(confirm_ms, 1),
                "rerank": milliseconds_since(began) if model else 0.0,
            },
            tuple(sorted(unknown.read())) if unknown else (),
            confirmed.by_subject,
            confirmed.by_link,
            left,
            asked,
        )

    def _ask_indexes(
        self,
        looked_up: LookedUp,
        languages: Sequence[LanguageTerms],
        depths: Depths,
        before: IndexMatches,
    ) -> IndexMatches:
        """Return the matches of both indexes; reuses those of an index already asked as deeply.

        The other thread searches the vector index; it uses no connection.
        """
        # Both searches release the GIL.
        asked = self._ahead.submit(_measure, lambda: _find_nearest(looked_up, depths, before))
        by_words, words_ms = before.by_words, 0.0
        if depths.words != before.asked.words:
            by_words, words_ms = _measure(lambda: search_words(looked_up, languages, depths.words))
        nearest, vectors_ms = asked.result()
        return IndexMatches(
            by_words,
            nearest.matches,
            Depths(depths.words, nearest.asked),
            nearest.passing,
            round(before.words_ms + words_ms, 1),
            round(before.vectors_ms + vectors_ms, 1),
        )


def _find_deeper(
    looked_up: LookedUp, depths: Depths, ranked: LegRankings, left: Left
) -> Depths | None:
    """Return the depths from which a deeper search can start; None if there are no more matches."""
    nearest = min(MAX_NEAREST, looked_up.vectors.max_matches()) if looked_up.vectors else 0
    words = left.words and ranked.asked.words < MAX_DEPTH
    vectors = left.vectors and ranked.asked.vectors < nearest
    return depths if words or vectors else None


def _drop_far(found: list[Candidate], ranked: LegRankings, looked_up: LookedUp) -> list[Candidate]:
    """Return the candidates that are hits; all of them, if the query requires words."""
    index, query = looked_up.vectors, looked_up.query
    if index is None or any(one.words.required for one in query.by_language):
        return found
    floors = FLOORS.get(index.name.encoder, NO_FLOORS)
    nearest = max((one.score for one in ranked.semantic), default=0.0)
    # the word index is asked only if the answer matters
    worded = ranked.fulltext or nearest >= floors.wordless or has_any_word(looked_up)
    least = floors.worded if worded else floors.wordless
    if all(map(find_ids, query.text.split())):  # commit ids have no meaning to compare
        least = math.inf
    return drop_far(found, least, by_name=bool(list_names(query)))


class _Nearest(NamedTuple):
    """The matches of the vector index, the number asked for, and the ids it was limited to."""

    matches: Sequence[Match]
    asked: int
    passing: Sequence[str] | None


def _find_nearest(looked_up: LookedUp, depths: Depths, before: IndexMatches) -> _Nearest:
    index, (where, complete) = looked_up.vectors, looked_up.vector_filter
    passing, depth = before.passing, depths.vectors
    if index is None or depth == before.asked.vectors:
        return _Nearest(before.by_meaning, before.asked.vectors, passing)
    if not before.asked.vectors:
        passing = _find_few_passing(looked_up, index.max_constraints())
        if passing is None and not complete:
            depth = widen(depth, _known_share(looked_up), MAX_NEAREST)
    depth = min(depth, index.max_matches())
    matches = search_vectors(
        index, looked_up.query.text, where, passing, depth, estimate=not complete
    )
    return _Nearest(matches, depth, passing)


def _find_few_passing(looked_up: LookedUp, most: int) -> Sequence[str] | None:
    """Return the ids of the messages that pass, if the index can be limited to so many."""
    passing = looked_up.passing.ids
    if passing is None and not looked_up.vector_filter.complete:
        passing = find_required(looked_up, min(FEW_REQUIRED, most))
    return passing if passing is None or len(passing) <= most else None


def _known_share(looked_up: LookedUp) -> float | None:
    """Return the share of all messages that pass; None if conditions on words decide too."""
    query = looked_up.query
    decide = (one.words.required or one.words.excluded for one in query.by_language)
    return None if any(decide) else looked_up.passing.share


def choose_first_depths(looked_up: LookedUp, wanted: Depths) -> Depths:
    """Return the first depths; the word index is searched deeper if a known share passes."""
    share = _known_share(looked_up)
    if not wanted.words or share is None:
        return wanted
    words = widen(enough(wanted.words), share, MAX_DEPTH)
    return wanted._replace(words=max(wanted.words, words))


def choose_depths(
    looked_up: LookedUp, wanted: Depths, matches: IndexMatches, confirmed: ConfirmedMatches
) -> Depths | None:
    """Return the next depths; None if enough matches pass or there are no more."""
    asked = matches.asked
    words = vectors = 0
    filters = looked_up.filters

    def says_all(found: int, passed: int) -> bool:
        # nearly all messages pass the conditions that are checked on hits only
        enough_passed = not filters.checked or SPARE * passed >= found
        return looked_up.passing.says_all and enough_passed

    found, passed = len(matches.by_words), len(confirmed.by_words)
    if wanted.words and not (filters.word_filter.complete or says_all(found, passed)):
        words = deepen(asked.words, found, passed, enough(wanted.words), MAX_DEPTH)
    found = len(matches.by_meaning)
    passed = sum(len(one.chunks) for one in confirmed.by_meaning)
    all_checked = looked_up.vector_filter.complete or (
        matches.passing is not None and (says_all(found, passed) or filters.words_say_all)
    )
    if looked_up.vectors and not all_checked:
        most = min(MAX_NEAREST, MAX_DEPTH, looked_up.vectors.max_matches())
        vectors = deepen(asked.vectors, found, passed, wanted.vectors, most)
    if not words and not vectors:
        return None
    return Depths(words or asked.words, vectors or asked.vectors)


def widen(wanted: int, share: float | None, most: int) -> int:
    """Return how many matches to ask for first, if a later filter passes only a share."""
    return DEEPER * wanted if share is None else min(most, math.ceil(SPARE * wanted / share))


def deepen(asked: int, found: int, passed: int, wanted: int, most: int) -> int:
    """Return how many matches to ask for next; 0 if enough passed or there are no more."""
    if passed >= wanted or found < asked or asked >= most:
        return 0
    needed = SPARE * wanted * asked // passed if passed else most
    return min(most, max(DEEPER * wanted, needed))


def milliseconds_since(began: float) -> float:
    """Return the milliseconds since `began`, a value of time.perf_counter."""
    return round((time.perf_counter() - began) * 1000, 1)


def _measure(work: Callable[[], T]) -> tuple[T, float]:
    began = time.perf_counter()
    return work(), milliseconds_since(began)
