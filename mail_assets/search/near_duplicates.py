"""Near-duplicates among hits: a patch that was sent again, a question posted twice."""

from collections.abc import Sequence
from dataclasses import replace

from mail_assets.mail.message.subjects import base_subject
from mail_assets.search.response import Hit

#: Share of words that the best chunks of two messages have in common to be one hit.
MIN_OVERLAP = 0.9


def fold_near_duplicates(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits without the near-duplicates of an earlier one, which names them in `copies`.

    Near-duplicates have the same sender, the same subject but for its marks (Re:, [PATCH v2]), and
    the same words in the chunk that matches best.
    """
    kept: list[Hit] = []
    for hit in hits:
        original = next((i for i, one in enumerate(kept) if _are_duplicates(one, hit)), None)
        if original is None:
            kept.append(hit)
        else:
            copies = (*kept[original].copies, hit.message_id)
            kept[original] = replace(kept[original], copies=copies)
    return kept


def _are_duplicates(one: Hit, other: Hit) -> bool:
    if one.from_email != other.from_email or not (one.chunks and other.chunks):
        return False
    if base_subject(one.subject).lower() != base_subject(other.subject).lower():
        return False
    words, others = ({*hit.chunks[0].text.lower().split()} for hit in (one, other))
    return len(words & others) >= MIN_OVERLAP * len(words | others)
