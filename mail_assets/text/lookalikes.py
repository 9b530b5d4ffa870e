"""Find names of different people that look alike.

Anybody can write under the name of another person, or under a name that looks the same. So names
are compared as a reader sees them: without case, accents, invisible characters and word order.
Letters of other scripts count as the Latin letters that they resemble. Where names look alike,
commands and pages also show an address or a mark of each person.
https://www.unicode.org/reports/tr39/ lists all letters that look alike.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

#: Lower-case letters and digits that look like another letter.
_LOOKALIKES = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458"
    "\u0501\u051b\u051d\u04bb\u04cf\u03b1\u03b2\u03b5\u03b6\u03b7\u03b9\u03ba\u03bd\u03bf\u03c1"
    "\u03c4\u03c5\u03c7\u0131i1|05\u0261\u0251",
    "abekmhopctyxsljdqwhlabeznlkvoptyxllllosga",
)
_WORD = re.compile(r"\w+")


def find_lookalikes(people: Iterable[tuple[str, str]]) -> set[str]:
    """Return the names that look like the name of another person.

    `people` are pairs of a name and an identifier of the person: an address, or a mark.
    """
    found: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for name, person in people:
        if look := _look(name):
            found[look].add((name, person))
    return {
        name for some in found.values() if len({who for _, who in some}) > 1 for name, _ in some
    }


def _look(name: str) -> str:
    """Return a key that is equal for names that look alike."""
    bare = "".join(
        one
        for one in unicodedata.normalize("NFKD", name).casefold()
        if unicodedata.category(one) not in ("Mn", "Cf", "Cc")
    )
    return " ".join(sorted(_WORD.findall(bare.translate(_LOOKALIKES))))
