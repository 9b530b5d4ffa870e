"""Fusion: combines the rankings of both legs, with the evidence of threads.

    score = strength * (own + threads * thread) / (1 + threads)
            * (1 + beginning - brevity) / (1 + first)

1. `own` is the weighted sum of a message's scores in the legs. The scores of a leg are scaled from
   0 (its last) to 1 (its best), so that its own scale does not matter. `thread` is the same sum for
   the best message of the thread in each leg.
2. If full text finds the whole question in one message (`covered` near 1: a pasted sentence, an
   identifier), full text decides and threads do not count: the question is about that message. The
   effect is weaker for a few words, because some message has any three words.
3. Threads weigh less for longer questions: a short one names a topic, a long one a message.
4. Queries that are not pasted text usually want the first message of a thread: `beginning` is
   `first` for first messages, 0 for others. They do not want "Thank you!", which has the thread's
   subject and little else: `brevity` is `brief` for such messages, 0 for others.
5. `strength` is the weighted sum of the legs' best scores: the share of the best possible BM25, and
   cosine above FLOOR. It is one number per query, and makes scores of queries comparable.
6. Similarities below FLOOR do not count. If only one leg finds anything, its order is kept.
7. A message that only meaning finds is no hit below the floor of the encoder.
8. In every mode, messages whose whole subject is the query come first (direct_hits.py). For a query
   of names only, messages without any of the names come last.

The measurements are in docs/benchmarks.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mail_assets.encoding.models import ALL_MINILM_L6_V2
from mail_assets.search.matches import Candidate

MIN_FULLTEXT_WEIGHT, MAX_FULLTEXT_WEIGHT = 0.6, 0.95
#: Exponent of `covered`: half of the way to MAX_FULLTEXT_WEIGHT is at 0.92.
WHOLE = 8
#: The weight of a thread's evidence; a message's own score weighs 1.
THREAD_WEIGHT = 4.0
#: Most words of a question that names a topic rather than a message, even if found whole.
SHORT_QUESTION = 12
#: The bonus of the first message of a thread, as a share of its score.
FIRST_WEIGHT = 0.1
#: The penalty of a message with little new text, as a share of its score.
BRIEF_WEIGHT = 0.2
#: Messages that come before those found through commits.
AHEAD = 3
#: The highest cosine similarity of unrelated texts. With the default model nonsense reaches 0.3,
#: and questions of people 0.5 and more.
FLOOR = 0.2
#: Score below which the best hit rarely answers. Most nonsense queries score less; few sentences
#: that point at a message do.
MIN_STRENGTH = 0.15


class Floors(NamedTuple):
    """Least similarity of a hit that only meaning finds; `wordless` if no message has a word."""

    worded: float
    wordless: float


#: The floors of measured encoders; others have none. With the default model, questions about other
#: topics reach at most 0.44, mostly less than 0.3, and random letters 0.56. 1 of 30 relevant
#: messages is below 0.3.
FLOORS = {ALL_MINILM_L6_V2.name: Floors(0.3, 0.55)}
NO_FLOORS = Floors(-1.0, -1.0)


@dataclass(frozen=True)
class Mix:
    """The weights of the legs (their sum is 1) and of threads (a message's own score weighs 1).

    `first` is the bonus of first messages, `brief` the penalty of brief ones.
    """

    semantic: float
    fulltext: float
    threads: float
    first: float = 0.0
    brief: float = 0.0


class _Leg(NamedTuple):
    """A leg's candidates, best first, with their scores scaled to 0 to 1, and its best claim."""

    name: str
    weight: float
    candidates: Sequence[Candidate]
    scores: Sequence[float]
    strength: float


class _Found(NamedTuple):
    """A message that one or both legs found; `own` is the sum of its scores."""

    candidate: Candidate
    own: float
    chunks: Mapping[str, float]
    ranks: dict[str, int]


def weigh_legs(covered: float, words: int, names: int = 0) -> Mix:
    """Return the mix for a question; `words` and `names` are its numbers of words and identifiers.

    `covered` is the share of the question's weight that the best message by words has. A question
    of names only counts as pasted text.
    """
    pasted = min(1.0, words / SHORT_QUESTION) if words > names else 1.0
    whole = pasted * covered**WHOLE
    fulltext = MIN_FULLTEXT_WEIGHT + (MAX_FULLTEXT_WEIGHT - MIN_FULLTEXT_WEIGHT) * whole
    threads = THREAD_WEIGHT * (1 - whole) * min(1.0, SHORT_QUESTION / max(words, 1))
    first, brief = FIRST_WEIGHT * (1 - whole), BRIEF_WEIGHT * (1 - whole)
    return Mix(1 - fulltext, fulltext, threads, first, brief)


def fuse(semantic: Sequence[Candidate], fulltext: Sequence[Candidate], mix: Mix) -> list[Candidate]:
    """Return the candidates of both legs, best first, with scores from 0 to 1.

    The evidence of a thread is the score of its best message in each leg; these may be two
    messages. A message is shown in the copy found by the leg with the greater weight; chunks of
    another copy are dropped.
    """
    near = [one for one in semantic if one.score > FLOOR]
    legs = [
        # similarity on a scale from 0 (FLOOR) to 1 (the same text)
        _build_leg(
            "semantic",
            mix.semantic,
            near,
            ((one.score - FLOOR) / (1 - FLOOR) for one in near),
        ),
        _build_leg("fulltext", mix.fulltext, fulltext, (one.score for one in fulltext)),
    ]
    found = [leg for leg in legs if leg.candidates]
    if len(found) == 1:
        found, mix = (
            [found[0]._replace(weight=1.0)],
            replace(mix, threads=0.0, first=0.0, brief=0.0),
        )
    strength = sum(leg.weight * leg.strength for leg in found)
    fused: dict[str, _Found] = {}
    evidence: dict[str, float] = {}
    for leg in sorted(found, key=lambda leg: -leg.weight):
        _add_leg(leg, fused, evidence)
    scored = [
        _score(one, evidence[one.candidate.thread_key], mix, strength) for one in fused.values()
    ]
    return sorted(scored, key=lambda one: (-one.score, min(one.ranks.values()), one.message_id))


def add_thread_messages(
    ranked: Sequence[Candidate], messages: Iterable[Candidate]
) -> list[Candidate]:
    """Add messages of the candidates' threads that no leg found; best first.

    Added messages get the score that the thread gives, because they have no score of their own.
    """
    found = {one.message_id for one in ranked}
    threads = {one.thread_id: one.thread_score for one in ranked}
    added = [
        one._replace(score=threads[one.thread_id], thread_score=threads[one.thread_id])
        for one in messages
        if one.message_id not in found and one.thread_id in threads
    ]
    # Python's sort is stable: equal scores keep their order.
    return sorted([*ranked, *added], key=lambda one: -one.score)


def settle_ends(
    ranked: Sequence[Candidate], subjects: Iterable[Candidate], linked: Iterable[Candidate] = ()
) -> list[Candidate]:
    """Move whole subjects to the front of a ranking, and messages without the names to the end.

    Whole subjects get the best score of the ranking, or 1 if nothing else is found. Scores of moved
    messages never exceed those before them. Messages of `linked`, the mail of commits that change
    the named files, follow the best AHEAD messages at the latest, with or without the names.
    """
    known = {one.message_id: one for one in ranked}
    best = ranked[0].score if ranked else 1.0
    first = _mark(known, subjects, "subject", best)
    rest = [one for one in ranked if one.message_id not in first]
    named = [*first.values(), *(one for one in rest if one.is_named)]
    ahead = {one.message_id for one in named[:AHEAD]}
    to_commits = _mark(known, linked, "commit", named[:AHEAD][-1].score if named else best)
    lifted = [one for id, one in to_commits.items() if id not in ahead]
    after = [one for one in named[AHEAD:] if one.message_id not in to_commits]
    named = [*named[:AHEAD], *lifted, *after]
    lowest = named[-1].score if named else best
    others = [
        one._replace(score=min(one.score, lowest))
        for one in rest
        if not one.is_named and one.message_id not in to_commits
    ]
    return [*named, *others]


def _mark(
    known: Mapping[str, Candidate], found: Iterable[Candidate], name: str, score: float
) -> dict[str, Candidate]:
    """Return candidates by id, with a score and with their rank as that of the leg `name`."""
    marked = {}
    for place, other in enumerate(found, 1):
        one = known.get(other.message_id, other)
        marked[one.message_id] = one._replace(score=score, ranks={**one.ranks, name: place})
    return marked


def drop_far(ranked: Iterable[Candidate], least: float, *, by_name: bool) -> list[Candidate]:
    """Return the candidates that are hits: found by words, or near enough in meaning.

    `by_name`: the query has names only; then messages with one of them are hits too.
    """
    return [
        one
        for one in ranked
        if "fulltext" in one.ranks
        or (by_name and one.is_named)
        or 1.0 - min(one.chunks.values(), default=0.0) >= least
    ]


def rank_single_leg(name: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates of a single leg, with their ranks."""
    return [one._replace(ranks={name: rank}) for rank, one in enumerate(candidates, 1)]


def _build_leg(
    name: str, weight: float, candidates: Sequence[Candidate], claims: Iterable[float]
) -> _Leg:
    values = [*claims]
    return _Leg(name, weight, candidates, _spread(values), max(values, default=0.0))


def _add_leg(leg: _Leg, fused: dict[str, _Found], evidence: dict[str, float]) -> None:
    best: dict[str, float] = {}
    for rank, (one, score) in enumerate(zip(leg.candidates, leg.scores, strict=True), 1):
        claim, known = leg.weight * score, fused.get(one.message_id)
        if known is None:
            fused[one.message_id] = _Found(one, claim, one.chunks, {leg.name: rank})
        else:
            fused[one.message_id] = _merge(known, one, claim, {leg.name: rank})
        best.setdefault(one.thread_key, score)
    for thread, score in best.items():
        evidence[thread] = evidence.get(thread, 0.0) + leg.weight * score


def _spread(scores: Sequence[float]) -> list[float]:
    """Scale scores, best first, to 0 to 1; all become 1 if they are equal."""
    if not scores:
        return []
    best, last = scores[0], scores[-1]
    return [(score - last) / (best - last) if best > last else 1.0 for score in scores]


def _merge(known: _Found, found: Candidate, claim: float, ranks: dict[str, int]) -> _Found:
    chunks = known.chunks
    if found.copy == known.candidate.copy:
        chunks = chunks or found.chunks
    return _Found(known.candidate, known.own + claim, chunks, {**known.ranks, **ranks})


def _score(found: _Found, evidence: float, mix: Mix, strength: float) -> Candidate:
    one = found.candidate
    strength *= (1 + mix.first * one.begins - mix.brief * one.is_brief) / (1 + mix.first)
    thread_score = strength * mix.threads * evidence / (1 + mix.threads)
    score = strength * found.own / (1 + mix.threads) + thread_score
    return Candidate(
        one.message_id,
        one.copy,
        one.thread_id,
        round(score, 6),
        found.chunks,
        found.ranks,
        round(thread_score, 6),
        one.begins,
        one.is_brief,
        is_named=one.is_named,
    )
