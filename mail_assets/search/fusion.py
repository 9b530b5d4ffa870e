"""Fusion: the rankings of both legs as one, with the evidence of threads.

    score = strength * (own + threads * thread) / (1 + threads)
            * (1 + beginning - brevity) / (1 + first)

1. `own` is the weighted sum of a message's scores in the legs. The scores of a leg are spread from
   0 (its last) to 1 (its best), so that its scale does not matter. `thread` is the same sum for the
   best message of its thread in each leg.
2. A question that full text finds whole (`covered` near 1: a pasted sentence, an identifier) is
   left to full text, and threads do not count: the question is about that message. For a few words
   this holds less: some message has any three of them.
3. Threads weigh less the longer a question is: a short one names a topic, a long one a message.
4. Queries that are not pasted text usually want the first message of a thread: `beginning` is
   `first` for those, 0 for others. They do not want "Thank you!", which has the thread's subject
   and little else: `brevity` is `brief` for such messages, 0 for others.
5. `strength` is the weighted sum of the legs' best scores: the share of the best possible BM25, and
   cosine above FLOOR. It is one number for a query and puts queries on one scale.
6. Similarities below FLOOR do not count. If only one leg finds anything, its order stands.
7. What meaning alone finds is no hit below the floor of the encoder.
8. In every mode the messages whose whole subject is the query come first (direct_hits.py).
   Where nothing but names is asked, those without any of the names come last.

docs/benchmarks.md has the measurements behind the numbers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mail_assets.encoding.models import ALL_MINILM_L6_V2
from mail_assets.search.matches import Candidate

MIN_FULLTEXT_WEIGHT, MAX_FULLTEXT_WEIGHT = 0.6, 0.95
#: The power of what is covered: half of the way to MAX_FULLTEXT_WEIGHT is at 0.92.
WHOLE = 8
#: The weight of a thread's evidence; a message's own score weighs 1.
THREAD_WEIGHT = 4.0
#: Words up to which a question names a topic rather than a message, also where it is found whole.
SHORT_QUESTION = 12
#: The bonus of the first message of a thread, as a share of its score.
FIRST_WEIGHT = 0.1
#: The malus of a message with little text of its own, as a share of its score.
BRIEF_WEIGHT = 0.2
#: Messages that stand before those to which commits lead.
AHEAD = 3
#: The highest cosine similarity of unrelated texts. With the default model nonsense reaches 0.3,
#: and questions of people 0.5 and more.
FLOOR = 0.2
#: The score below which the best hit answers no question: most nonsense queries score less, and few
#: sentences that point at a message.
MIN_STRENGTH = 0.15


class Floors(NamedTuple):
    """The least similarity of a hit that is found by meaning alone.

    `wordless` is that of a question of which no message has a word.
    """

    worded: float
    wordless: float


#: The floors of an encoder. Questions about other things reach 0.44 with the default model, and
#: mostly less than 0.3; 1 of 30 relevant messages is farther away. Random letters reach 0.56.
#: Encoders that were not measured have none.
FLOORS = {ALL_MINILM_L6_V2.name: Floors(0.3, 0.55)}
NO_FLOORS = Floors(-1.0, -1.0)


@dataclass(frozen=True)
class Mix:
    """The weights of the legs, 1 together, and of threads, where a message's own score weighs 1.

    `first` is the bonus of first messages, `brief` the malus of brief ones.
    """

    semantic: float
    fulltext: float
    threads: float
    first: float = 0.0
    brief: float = 0.0


class _Leg(NamedTuple):
    """A leg's candidates, best first, their scores spread over 0 to 1, and its best claim."""

    name: str
    weight: float
    candidates: Sequence[Candidate]
    scores: Sequence[float]
    strength: float


class _Found(NamedTuple):
    """A message that legs found, in the copy of the first leg; `own` sums their scores."""

    candidate: Candidate
    own: float
    chunks: Mapping[str, float]
    ranks: dict[str, int]


def weigh_legs(covered: float, words: int, names: int = 0) -> Mix:
    """Return the mix for a question; `words` is its number of words, `names` that of identifiers.

    `covered` is the share of its weight that the best message by words has. A question of names
    alone counts as pasted.
    """
    pasted = min(1.0, words / SHORT_QUESTION) if words > names else 1.0
    whole = pasted * covered**WHOLE
    fulltext = MIN_FULLTEXT_WEIGHT + (MAX_FULLTEXT_WEIGHT - MIN_FULLTEXT_WEIGHT) * whole
    threads = THREAD_WEIGHT * (1 - whole) * min(1.0, SHORT_QUESTION / max(words, 1))
    first, brief = FIRST_WEIGHT * (1 - whole), BRIEF_WEIGHT * (1 - whole)
    return Mix(1 - fulltext, fulltext, threads, first, brief)


def fuse(semantic: Sequence[Candidate], fulltext: Sequence[Candidate], mix: Mix) -> list[Candidate]:
    """Return the candidates of both legs, best first, their scores 0 to 1.

    A thread's evidence is the score of its best message in each leg, which need not be the same
    message. A message is shown in the copy that the leg with the greater weight found; chunks of
    another copy are dropped.
    """
    near = [one for one in semantic if one.score > FLOOR]
    legs = [
        # a similarity on a scale from FLOOR, 0, to the same text, 1
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
    """Return candidates and those messages of their threads that no leg found, best first.

    Added messages have no score of their own: they follow the others of their thread, in its order.
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
    """Return a ranking with whole subjects first, and messages without the names asked for last.

    Whole subjects have the best score of the ranking, 1 where nothing else is found; the last no
    better one than those before them. Those of `linked`, which led to commits that change what is
    named, follow the best AHEAD at the latest, whether they have the name or not.
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
    """Return candidates by their ids, each with a score and with its rank under a name."""
    marked = {}
    for place, other in enumerate(found, 1):
        one = known.get(other.message_id, other)
        marked[one.message_id] = one._replace(score=score, ranks={**one.ranks, name: place})
    return marked


def drop_far(ranked: Iterable[Candidate], least: float, *, by_name: bool) -> list[Candidate]:
    """Return the candidates that are hits: found by words, or near enough by meaning.

    `by_name`: nothing but names is asked, and messages with one of them are hits too.
    """
    return [
        one
        for one in ranked
        if "fulltext" in one.ranks
        or (by_name and one.is_named)
        or 1.0 - min(one.chunks.values(), default=0.0) >= least
    ]


def rank_single_leg(name: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the ranking of one leg alone, with its ranks."""
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
    """Return scores, best first, on 0 to 1; all 1 where they are equal."""
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
