"""Find names of different people that look alike.

Anybody can write under the name of another person, or under a name that looks the same. So names
are compared as a reader sees them: without case, accents, invisible characters and word order.
Letters of other scripts count as the Latin letters that they resemble. Where names look alike,
commands and pages also show an address or a mark of each person. A name may end like that itself,
as "Jo Roe <jo@example.org>": it is compared without the address or mark, and always found.
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
    "\u03c4\u03c5\u03c7\u0131i1|05\u0261\u0251\u0585\u0578\u057d\u0570\u0581\u0566",
    "abekmhopctyxsljdqwhlabeznlkvoptyxllllosgaonuhgq",
)
#: What commands and pages add to a name: an address, or a mark, which has no vowels.
_ADDED = re.compile(
    r"<[^<>]*>?|(?<!\S)[^\s@\uff20]*+[@\uff20]\S*|[(\[]\s{0,9}[^\W_aeiou]{4}\s{0,9}[)\]]",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


def find_lookalikes(people: Iterable[tuple[str, str]]) -> set[str]:
    """Return the names that look like the name of another person, or like one with its mark.

    `people` are pairs of a name and an identifier of the person: an address, or a mark.
    """
    found: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    marked = set[str]()
    for name, person in people:
        bare = _ADDED.sub(" ", name)
        if look := _look(bare):
            found[look].add((name, person))
        if bare != name and (look or name.strip("<>").lower() != person):
            marked.add(name)
    alike = (some for some in found.values() if len({who for _, who in some}) > 1)
    return marked.union(name for some in alike for name, _ in some)


def _look(name: str) -> str:
    """Return a key that is equal for names that look alike."""
    bare = "".join(
        one
        for one in unicodedata.normalize("NFKD", name).casefold()
        if unicodedata.category(one) not in ("Mn", "Cf", "Cc")
    )
    latin = bare.translate(_LOOKALIKES).replace("rn", "m").replace("vv", "w")
    return " ".join(sorted(_WORD.findall(latin)))
