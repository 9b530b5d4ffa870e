"""Find the identifiers in a message that stemming and stop words would spoil, for exact search.

Files, functions, configuration parameters, SQLSTATEs and commit hashes are searched as they are
written. Of diffs only file and function names are kept, not the code. A name ends at a letter of a
script without blanks between words (letters.py); such letters in names of diffs become pairs, as in
a text. Postgres does the language-aware full text.
"""

import re
from collections.abc import Iterable, Iterator

from mail_assets.text.letters import MAX_NAMES_BYTES, pair_letters

MAX_IDENTIFIERS = 500  # per message; diffs are read first, then the text from its beginning
MAX_LENGTH = 200  # characters, at most 800 bytes: a tsvector lexeme ends at 2,046
MIN_PART = 3  # "pg", "is" and "in" would match everything

# Two-character classes of appendix A of the PostgreSQL manual
SQLSTATE_CLASSES = (
    "00|01|02|03|08|09|0A|0B|0F|0L|0P|0Z|10|20|21|22|23|24|25|26|27|28|2B|2D|2F|34|38|39|"
    "3B|3D|3F|40|42|44|53|54|55|57|58|72|F0|HV|P0|XX"
)
# The two patterns below begin with a class of characters and look back afterwards: so the engine
# jumps from one candidate to the next.
# Five digits that end in three zeros are mostly a number, not a class as a whole.
_SQLSTATE = re.compile(
    rf"[0-57FHPX][0-9A-Z](?<={SQLSTATE_CLASSES})(?<![\w.,:/-]..)(?!(?<=\d\d)000)[0-9A-Z]{{3}}"
    r"(?![\w/-]|[.,:]\d)"
)
_HEX = re.compile(r"[0-9a-f](?<![\w-].)[0-9a-f]{6,39}+(?![\w-])")
# Each pattern starts only at a word and never backtracks, so it is linear.
_ADDRESS_OR_HOST = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w.-]*|\b\w++://[^\s/<>\"]*")
_COMPOUND = re.compile(
    r"(?<![\w$+-])(?=[\w$+-]*[._/:])[\w$+-]++(?:(?:\.|/|::)[\w$+-]++)*+"  # a.b, a/b.c, a::b, a_b
)
_SEPARATORS = re.compile(r"[._:]+")
_QUALIFIERS = re.compile(r"\.|::")
_EMPHASIS = re.compile(r"_[^\W_]+_")  # as in "_very_ slow"
_LETTER = re.compile(r"[^\W\d_]")

_NAME = r"[^\s\x00]+"
_FILE = re.compile(
    rf"(?m)^(?:diff --git a/({_NAME})|diff --(?:cc|combined) ({_NAME})|Index: ({_NAME})|"
    rf"(?:rename|copy) (?:from|to) ({_NAME})|"
    rf"(?:---|\+\+\+|\*\*\*) (?:[ab]/)?(?!\d+(?:,\d+)? [-*]{{4}})"
    rf"(?=\S*[./]|\S+(?:\t|$))({_NAME}))"  # "--- and so on" is prose
)
_HUNK = re.compile(
    r"(?m)^(?:@@ -\d[\d,]* \+\d[\d,]* @@|@@@{1,20}(?: [-+]\d[\d,]*){3,22} @@@{1,20}|\*{15})"
    r"[ \t]+(.{1,200})"
)
_FUNCTION = re.compile(
    r"([^\W\d][\w.:~]{0,199}+)[ \t]{0,8}+\(|\b(?:def|class|sub|function|struct)[ \t]+([\w.:]+)"
)


def find_identifiers(text: str, patches: Iterable[str] = ()) -> list[str]:
    """Return the names in a text (or a query) and in diffs: lower-cased, sorted, each once.

    A path also gives its last component and that one's stem; a dotted or underscored word
    also gives its parts of MIN_PART or more characters. No name is empty, longer than
    MAX_LENGTH or holds NUL; there are at most MAX_IDENTIFIERS of them, and together they take at
    most MAX_NAMES_BYTES.
    """
    found: set[str] = set()
    size = 0
    for name in _names(text, patches):
        name = name.lower()
        if 1 < len(name) <= MAX_LENGTH and name not in found:
            size += len(name.encode())
            if size > MAX_NAMES_BYTES:
                break
            found.add(name)
            if len(found) == MAX_IDENTIFIERS:
                break
    return sorted(found)


def _names(text: str, patches: Iterable[str]) -> Iterator[str]:
    for patch in (*patches, text):
        yield from _names_in_patch(patch)
    plain = _without_addresses(pair_letters(text))
    yield from _commits(plain)
    yield from _SQLSTATE.findall(plain)
    for match in _COMPOUND.finditer(plain):
        yield from _with_parts(match[0])


def _without_addresses(text: str) -> str:
    return "\n".join(
        _ADDRESS_OR_HOST.sub(" ", line) if "@" in line or "://" in line else line
        for line in text.split("\n")
    )


def _commits(text: str) -> Iterator[str]:
    return (word for word in _HEX.findall(text) if not (word.isdigit() or word.isalpha()))


def _names_in_patch(patch: str) -> Iterator[str]:
    found = list(_FILE.finditer(patch))
    for hunk in _HUNK.finditer(patch):
        found += _FUNCTION.finditer(hunk[1])
    for match in found:
        for name in pair_letters(match[match.lastindex or 0]).split():
            yield name
            yield from _with_parts(name)


def _with_parts(word: str) -> Iterator[str]:
    """Yield a compound word, its last path component, the stem and the parts of that.

    Both kinds of parts: `pg_catalog.pg_class` is found by `pg_class` and by `class`.
    """
    word = word.strip("./:+-$")
    name = word.rsplit("/", 1)[-1]
    parts = [part for part in _SEPARATORS.split(name) if _LETTER.search(part)]
    if not parts or word in parts or _EMPHASIS.fullmatch(word):
        return
    if max(map(len, parts)) < 2 and not ("/" in word or "_" in word):
        return  # "e.g", "a.b"
    yield word
    yield name
    yield name.rsplit(".", 1)[0]
    yield from (
        piece
        for piece in _QUALIFIERS.split(name)
        if _LETTER.search(piece) and len(piece) >= MIN_PART
    )
    yield from (part for part in parts if len(part) >= MIN_PART)
