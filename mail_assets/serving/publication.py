"""The one door to the outside: what leaves it holds no address of anybody, unless that is wanted.

Every document passes, whatever it is made of; what is new in one is masked unless it is listed here
as an id.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from mail_assets.search.language.request import Request
from mail_assets.serving.addresses import CONTEXT, mask_addresses
from mail_assets.serving.encoded import mask_encoded

#: Whether addresses are shown.
HIDDEN, SHOWN = "hidden", "shown"
ADDRESSES = (HIDDEN, SHOWN)

#: Keys of addresses, and of what is counted by them.
_PRIVATE = frozenset({"from_email", "recipients", "cc", "reply_to", "authors"})
#: Keys of ids, which look like addresses, of URLs, and of what the client itself has sent.
_OPEN = frozenset(
    {
        "message_id", "thread_id", "parent_id", "parent_message_id", "in_reply_to", "references",
        "copies", "in_thread", "also", "patches", "key", "mentions", "url", "next", "previous",
        "pages", "query", "query_id", "permalink", "parameters", "question",
    }
)  # fmt: skip
#: What is counted by the names of people, who may have written their address there.
_KEYED_BY_NAMES = frozenset({"senders"})


@dataclass(frozen=True)
class Publication:
    """What a document is made into before anybody sees it."""

    addresses: str = HIDDEN

    @property
    def hides(self) -> bool:
        """Whether addresses are hidden."""
        return self.addresses == HIDDEN

    @property
    def private_keys(self) -> frozenset[str]:
        """The keys that no document has."""
        return _PRIVATE if self.hides else frozenset()

    def publish(self, document: Any, ids: Collection[str] = ()) -> Any:
        """Return a document of plain values as it may be seen.

        Addresses in texts are masked at their length, but for `ids`, known to be Message-IDs, and
        so is what is encoded and may hold some.
        """
        return _mask(document, ids) if self.hides else document

    def restrict(self, request: Request) -> Request:
        """Return a request whose hits do not tell whether a guess at an address is right."""
        return replace(request, names_only=True) if self.hides else request

    def publish_part(self, text: str, start: int, end: int) -> str:
        """Return a part of a text as it may be seen: an address that it cuts is hidden too.

        CONTEXT characters before and behind it are read, and the same is hidden as in the whole.
        """
        if not self.hides:
            return text[start:end]
        first = max(0, start - CONTEXT)
        return _mask_text(text[first : end + CONTEXT], ())[start - first : end - first]


def _mask(value: Any, ids: Collection[str]) -> Any:
    match value:
        case str():
            return _mask_text(value, ids)
        case dict():
            return {
                key: inner if key in _OPEN else _mask_under(key, inner, ids)
                for key, inner in value.items()
                if key not in _PRIVATE
            }
        case list() | tuple():
            return [_mask(inner, ids) for inner in value]
    return value


def _mask_under(key: str, value: Any, ids: Collection[str]) -> Any:
    masked = _mask(value, ids)
    if key not in _KEYED_BY_NAMES:
        return masked
    counts: Counter[str] = Counter()
    for name, count in masked.items():  # of several names the same may be left
        counts[_mask_text(name, ())] += count
    return dict(counts)


def _mask_text(text: str, ids: Collection[str]) -> str:
    return mask_addresses(mask_encoded(text), ids)
