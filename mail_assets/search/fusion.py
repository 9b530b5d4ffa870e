"""Two rankings into one: weighted reciprocal rank fusion (Cormack, Clarke, Buettcher 2009)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mail_assets.search.legs import Candidate

#: The constant of the paper: how slowly a place further down loses its worth.
K = 60

#: What a place in each leg is worth. Equal weights are worse than the semantic leg alone on
#: questions put in other words than the mail's.
WEIGHTS = {"semantic": 1.0, "fulltext": 0.5}


def fuse(
    legs: Mapping[str, Sequence[Candidate]], weights: Mapping[str, float] = WEIGHTS
) -> list[Candidate]:
    """Return the candidates of all legs by their summed worth, 1.0 for first place in each.

    A message is shown in the copy that its weightiest leg found. A chunk of that copy is worth
    what the leg gave that named it.
    """
    best = sum(weights[name] for name in legs) / (K + 1)
    fused: dict[str, Candidate] = {}
    for name, candidates in sorted(legs.items(), key=lambda leg: -weights[leg[0]]):
        for place, candidate in enumerate(candidates, 1):
            worth = weights[name] / (K + place) / best
            found = _worth(candidate, worth)
            known = fused.setdefault(candidate.message_id, found)
            if known is not found:
                fused[candidate.message_id] = _both(known, found)
    ranked = sorted(fused.values(), key=lambda c: (-c.score, c.message_id))
    return [replace(c, score=round(c.score, 6)) for c in ranked]


def _worth(candidate: Candidate, worth: float) -> Candidate:
    """Return a candidate whose score, and that of its chunks, is its place's worth."""
    return replace(
        candidate,
        score=worth,
        words=round(worth, 6) if candidate.words else 0.0,
        chunks=[replace(chunk, score=round(worth, 6)) for chunk in candidate.chunks],
    )


def _both(known: Candidate, found: Candidate) -> Candidate:
    """Return `known` with the worth that another leg found."""
    words = found.words if found.copy == known.copy else 0.0
    return replace(known, score=known.score + found.score, words=known.words + words)
