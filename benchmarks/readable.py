"""Read what strangers see of every text as a patient reader would: which addresses are left?

The reader knows no form of disguise. It knows the addresses, takes a text for words with something
between them, passes over "at" and "dot", and finds an address where its words stand in their order
and near each other.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

#: Characters between two words of an address, at most.
NEAR = 12
_WORD = re.compile(r"[^\W_]+")
#: What is said for the signs of an address, and what "@" is encoded as.
_SIGNS = frozenset({"at", "dot"})
_ENCODED = re.compile(r"%(?:25)*40|=40|&(?:amp;)?(?:#0*64|#x0*40|commat);|\\u0040|\\x40")
#: Between a local part and a domain these make the name of a host, or a path.
_NO_AT = frozenset({".", "/", "-", "_"})


class Reader:
    """Finds addresses that it knows."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self._known: dict[str, list[tuple[int, tuple[str, ...]]]] = defaultdict(list)
        for address in addresses:
            local, _, domain = address.lower().rpartition("@")
            words = [word for word in _WORD.findall(local) if word not in _SIGNS]
            whole = (*words, *_WORD.findall(domain))
            if words:
                self._known[words[0]].append((len(words), whole))

    def find(self, text: str) -> Iterator[str]:
        """Yield where an address can be read, as it stands there."""
        lowered = _ENCODED.sub(lambda match: "@" * len(match.group()), text.lower())
        words = [word for word in _WORD.finditer(lowered) if word.group() not in _SIGNS]
        if len(lowered) != len(text):
            text = lowered
        for at, word in enumerate(words):
            for local, known in self._known.get(word.group(), ()):
                found = words[at : at + len(known)]
                if tuple(one.group() for one in found) == known and _is_near(lowered, found, local):
                    yield text[word.start() : found[-1].end()]


def _is_near(text: str, words: list[re.Match[str]], local: int) -> bool:
    gaps = [text[one.end() : other.start()] for one, other in pairwise(words)]
    return all(len(gap) <= NEAR for gap in gaps) and gaps[local - 1] not in _NO_AT
