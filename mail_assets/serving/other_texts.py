"""The other texts of a message: what stands under the same Message-ID and says something else.

Some programs give an id twice, and some archives have two versions of a message. Each text is
found by search, so each can be read. Copies of one text differ in what their lists added to it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mail_assets.tables.messages import utc

Document = dict[str, Any]

#: Other texts that a message is shown with: anybody can send more under an id.
MAX_OTHERS = 10
#: What a list adds.
_ADDED = "footer"


def describe_others(copies: Sequence[Mapping[str, Any]]) -> list[Document]:
    """Return the other texts of a message, which is the first of its copies, with their places."""
    others: dict[str, Document] = {}
    first = _find_own(copies[0])
    for copy in copies[1:]:
        own = _find_own(copy)
        if own != first and (own in others or len(others) < MAX_OTHERS):
            place = {"list": copy["list"], "month": copy["month"]}
            others.setdefault(own, _describe(copy))["places"].append(place)
    return [*others.values()]


def choose_text(document: Document, number: int) -> Document:
    """Return a message with one of its texts, by its number from 1; the last for any beyond."""
    others = document["other_texts"][: number - 1]
    return document | (others[-1] if others else {})


def _describe(copy: Mapping[str, Any]) -> Document:
    names = ("subject", "from_name", "body_text", "segments")
    return {name: copy[name] for name in names} | {"sent_at": utc(copy["sent_at"]), "places": []}


def _find_own(copy: Mapping[str, Any]) -> str:
    """Return what the sender wrote, without blanks that programs change."""
    text = copy["body_text"]
    if not copy["segments"]:
        return " ".join(text.split())
    own = (text[start:end] for start, end, kind in copy["segments"] if kind != _ADDED)
    return " ".join("".join(own).split())
