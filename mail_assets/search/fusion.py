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

    A message is shown in the copy that its best leg found; the chunks that any leg names for
    that copy speak for it, each scored as the message is.
    """
    best = sum(weights[name] for name in legs) / (K + 1)
    fused: dict[str, Candidate] = {}
    for name, candidates in sorted(legs.items(), key=lambda leg: -weights[leg[0]]):
        for place, candidate in enumerate(candidates, 1):
            worth = weights[name] / (K + place) / best
            known = fused.get(candidate.message_id)
            if known is None:
                known = replace(candidate, score=0.0, chunks=[])
                fused[candidate.message_id] = known
            known.score += worth
            _add_chunks(known, candidate, worth)
    ranked = sorted(fused.values(), key=lambda c: (-c.score, c.message_id))
    return [replace(c, score=round(c.score, 6)) for c in ranked]


def _add_chunks(known: Candidate, candidate: Candidate, worth: float) -> None:
    if candidate.archive != known.archive:
        return
    scores = {chunk.key: chunk for chunk in known.chunks}
    for chunk in candidate.chunks:
        before = scores[chunk.key].score if chunk.key in scores else 0.0
        scores[chunk.key] = replace(chunk, score=round(before + worth, 6))
    known.chunks = sorted(scores.values(), key=lambda c: (-c.score, c.index))
