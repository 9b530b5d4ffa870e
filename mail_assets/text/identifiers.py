"""Find the names in a text, as they are written: joined words, versions, codes and commit ids.

words.py finds the words of a name. Here the whole name becomes a lexeme of its own, so that a text
with `pg_class` ranks above one with "pg" and "class". Parts of several words become lexemes too:
the file of a path, a host without its first label. Of diffs only names of files and functions are
kept, not the code. A letter of a script without blanks between words ends a name (letters.py).

Signs belong to the names `C++`, `C#` and `.NET`: a query for one of them alone does not find the
letters. `C++` also finds C++17.

The beginnings of a version are lexemes with a point at the end: 9.6.1 and 9.6 have `9.6.`, and only
9.6 has `9.6`. A commit id has a lexeme of its first seven digits and a point. So an id finds longer
and shorter ids of the same commit, also within a URL.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from mail_assets.text.letters import MAX_NAMES_BYTES, UNSPACED
from mail_assets.text.words import ADDRESS, Kept, clean_text

MAX_IDENTIFIERS = 10_000  # per message; diffs are read first, then the text from its beginning
MAX_LENGTH = 200  # characters, at most 800 bytes; a lexeme of PostgreSQL has at most 2,046
#: Most pieces of a dotted name whose runs are all kept; of a longer name only those at its end.
MAX_PIECES = 5
_KEPT = 1 << 14  # names whose parts are cached: a list has few, which repeat often
_ENDING = 2  # last components of a path; together they are a lexeme

# Two-character classes of appendix A of the PostgreSQL manual
SQLSTATE_CLASSES = (
    "00|01|02|03|08|09|0A|0B|0F|0L|0P|0Z|10|20|21|22|23|24|25|26|27|28|2B|2D|2F|34|38|39|"
    "3B|3D|3F|40|42|44|53|54|55|57|58|72|F0|HV|P0|XX"
)
# The two patterns below begin with a character class and look behind only after it, so that the
# engine skips to the next candidate.
# Five digits that end in 000 are usually a number, not an SQLSTATE.
_SQLSTATE = re.compile(
    rf"[0-57FHPX][0-9A-Z](?<={SQLSTATE_CLASSES})(?<![\w.,:/-]..)(?!(?<=\d\d)000)[0-9A-Z]{{3}}"
    rf"(?![^\W{UNSPACED}]|[/-]|[.,:]\d)"
)
_HEX = re.compile(rf"[0-9a-f](?<![\w-].)[0-9a-f]{{6,39}}+(?![^\W{UNSPACED}]|-)")
#: An id within a name: a commit in `?id=`, a build in `kernel-3f9c2ab.rpm`.
_INNER_HEX = re.compile(rf"(?<![^\W_])[0-9a-f]{{7,40}}+(?![^\W_{UNSPACED}])")
# Each pattern starts only at a word and never backtracks, so it is linear.
_PIECE = rf"(?:[^\W{UNSPACED}]|[$+-])"
_ADDRESS = re.compile(ADDRESS)
_URL = re.compile(r"\b\w++://(?:[^\s/@<>\"]*@)?([^\s/<>\"?#:]*)([^\s<>\"]*)")
_JOINED = r"(?:\.|/|::)"
_COMPOUND = re.compile(  # a.b, a/b, a::b, a_b, a-b
    rf"(?<!{_PIECE})(?=(?:[^\W_{UNSPACED}]|[$+])*+(?:[_-]|{_JOINED}{_PIECE}))"
    rf"{_PIECE}++(?:{_JOINED}{_PIECE}++)*+"
)
#: The same for ASCII text, in a third of the time.
_ASCII_COMPOUND = re.compile(
    rf"(?<![\w$+-])(?=[A-Za-z0-9$+]*+(?:[_-]|{_JOINED}[\w$+-]))[\w$+-]++(?:{_JOINED}[\w$+-]++)*+",
    re.ASCII,
)
_ALNUM, _ALPHA = rf"[^\W_{UNSPACED}]", rf"[^\W\d_{UNSPACED}]"
#: C++, g++, C#; the first group leaves out the number of a standard, as in C++17.
_PLUS = rf"({_ALPHA}{_ALNUM}*+(?:\+\+|#))(?:(?<=\+)[0-9]{_ALNUM}*+)?(?![^\W{UNSPACED}]|[+#])"
_SIGNED = re.compile(rf"(?<!{_ALNUM}){_PLUS}")
#: .NET, .gitignore; within a word only capitals: ASP.NET.
_LEADING = re.compile(rf"(?<!\.)\.(?:(?<!\w\.){_ALPHA}{_ALNUM}*+|[A-Z]{{2,}}+)(?![^\W{UNSPACED}])")
#: Part of each ASCII word with a name: a digit or sign, a joined word, or an SQLSTATE of letters.
_MAY_NAME = re.compile(r"[0-9@#+_-]|[./:][\w$+/-]|HV|XX|[^\0-\x7f]")
#: A text that is only one of these. Without a capital letter, as in `.deb`, it is a suffix.
_ONLY_SIGNED = re.compile(rf"[^\w.]*({_PLUS}|\.[A-Z]{_ALNUM}*+(?![^\W{UNSPACED}]))[^\w+#]*")
#: Digits of the shortest commit id, and a text that is only an id.
_SHORT_ID = 7
_ONLY_ID = re.compile(rf"\W*([0-9a-f]{{{_SHORT_ID},40}})\W*")
#: Two or more numbers with points between them; a letter may follow (9.6rc1).
VERSION = r"[0-9]+(?:\.[0-9]+)+"
_VERSION = re.compile(r"[0-9](?<![0-9.].)[0-9]*+(?:\.[0-9]++)++")
#: A text that is only a version.
_ONLY_VERSION = re.compile(rf"\W*[vV]?({VERSION})\W*")
_SEPARATORS = re.compile(r"[._:/$+-]+")
_QUALIFIERS = re.compile(r"(\.|::)")
_EMPHASIS = re.compile(r"_[^\W_]+_")  # as in "_very_ slow"
_LETTER = re.compile(r"[^\W\d_]")
_IN_PROSE = re.compile(r"[^\W_]+(?:(?:-[^\W_]+)+|/[^\W_]+)")

_NAME = r"[^\s\x00]+"
_FILE = re.compile(
    rf"(?:diff --git a/({_NAME})|diff --(?:cc|combined) ({_NAME})|Index: ({_NAME})|"
    rf"(?:rename|copy) (?:from|to) ({_NAME})|"
    rf"(?:---|\+\+\+|\*\*\*) (?:[ab]/)?(?!\d+(?:,\d+)? [-*]{{4}})"
    rf"(?=\S*[./]|\S+(?:\t|$))({_NAME}))"  # "--- and so on" is prose
)
_HUNK = re.compile(
    r"(?:@@ -\d[\d,]* \+\d[\d,]* @@|@@@{1,20}(?: [-+]\d[\d,]*){3,22} @@@{1,20}|\*{15})"
    r"[ \t]+(.{1,200})"
)
#: Beginnings of the lines that _FILE and _HUNK match.
_FILE_SIGNS = ("--- ", "+++ ", "*** ", "diff --", "Index: ", "rename ", "copy ")
_HUNK_SIGNS = ("@@", "*" * 15)
_SIGNS = (*_FILE_SIGNS, *_HUNK_SIGNS)
_FIRST_SIGNS = frozenset(sign[0] for sign in _SIGNS)
_FUNCTION = re.compile(
    r"([^\W\d][\w.:~]{0,199}+)[ \t]{0,8}+\(|\b(?:def|class|sub|function|struct)[ \t]+([\w.:]+)"
)


class Name(NamedTuple):
    """A name, its place and lexemes; `is_signed`: without its signs it is another word."""

    start: int
    end: int
    whole: str
    parts: tuple[str, ...] = ()
    is_signed: bool = False

    @property
    def is_prose(self) -> bool:
        """True if hyphens or a slash join words, as in prose: the name then ranks like words."""
        return bool(_IN_PROSE.fullmatch(self.whole))


def find_identifiers(text: str, patch_names: Iterable[str] = ()) -> list[str]:
    """Return the lexemes of the names in a text and in diffs: lower case, sorted, each once.

    `patch_names` come from `list_patch_names`; diffs within the text are read here. No lexeme is
    empty, longer than MAX_LENGTH or contains NUL. There are at most MAX_IDENTIFIERS, and together
    they take at most MAX_NAMES_BYTES.
    """
    found: set[str] = set()
    size = 0
    words = dict.fromkeys((*patch_names, *list_patch_names([text]), *clean_text(text).split()))
    for lexeme in chain.from_iterable(map(_LEXEMES.__getitem__, words)):
        if lexeme not in found:
            size += len(lexeme.encode())
            if size > MAX_NAMES_BYTES:
                break
            found.add(lexeme)
            if len(found) == MAX_IDENTIFIERS:
                break
    return sorted(found)


def _list_lexemes(word: str) -> tuple[str, ...]:
    if (word.isalpha() and word.islower()) or not _MAY_NAME.search(word):
        return ()
    lexemes = chain.from_iterable((name.whole, *name.parts) for name in find_names(word))
    return tuple(one for one in lexemes if 1 < len(one) <= MAX_LENGTH)


#: Lexemes by word. No name contains blanks, and most words of a list repeat.
_LEXEMES = Kept(_list_lexemes)


def list_patch_names(patches: Iterable[str]) -> list[str]:
    """Return the names of files and functions in diffs as written, each once."""
    names: dict[str, None] = {}
    for patch in patches:
        may_be = [line for line in patch.split("\n") if line[:1] in _FIRST_SIGNS]
        lines = [line for line in may_be if line.startswith(_SIGNS)]
        files = [_FILE.match(line) for line in lines if line.startswith(_FILE_SIGNS)]
        found = [*filter(None, files)]
        hunks = [_HUNK.match(line) for line in lines if line.startswith(_HUNK_SIGNS)]
        for hunk in filter(None, hunks):
            found += _FUNCTION.finditer(hunk[1])
        names |= dict.fromkeys(match[match.lastindex or 0] for match in found)
    return [*names]


def find_names(text: str) -> Iterator[Name]:
    """Yield the names in a clean text, sorted by kind; those of URLs and addresses first.

    A mail address is a name without parts, whose lexeme begins with `@`. Where addresses are
    hidden, no query can ask for it, nor for its beginning.
    """
    plain = text
    if "@" in plain:
        for found in _ADDRESS.finditer(plain):
            yield Name(*found.span(), f"@{found[0].rstrip('.-_').lower()}")
        plain = _ADDRESS.sub(_blank, plain)
    if "://" in plain:
        for found in _URL.finditer(plain):
            yield from _names_of_url(found)
        plain = _URL.sub(_blank, plain)
    for found in _HEX.finditer(plain):
        if _is_id(found[0]):
            yield Name(*found.span(), found[0], (_begin_id(found[0]),))
    for found in _SQLSTATE.finditer(plain):
        yield Name(*found.span(), found[0].lower())
    for found in _VERSION.finditer(plain):
        parts = _beginnings(found[0])
        whole = parts.pop() if _follows_letter(plain, found.end()) else found[0]
        yield Name(*found.span(), whole, tuple(parts))
    for found in _SIGNED.finditer(plain) if "+" in plain or "#" in plain else ():
        parts = [found[1].lower()] if found[1] != found[0] else []
        yield Name(*found.span(), found[0].lower(), tuple(parts), is_signed=True)
    for found in _LEADING.finditer(plain) if "." in plain else ():
        is_signed = bool(_ONLY_SIGNED.fullmatch(found[0]))
        yield Name(*found.span(), found[0].lower(), is_signed=is_signed)
    for found in (_ASCII_COMPOUND if plain.isascii() else _COMPOUND).finditer(plain):
        if name := _read_compound(found[0]):
            yield Name(*found.span(), *name)


def find_version(text: str) -> str:
    """Return the lexeme that finds a version, "" if the text is more than a version."""
    found = _ONLY_VERSION.fullmatch(text)
    return f"{found[1]}." if found else ""


def find_signed(text: str) -> str:
    """Return the lexeme of C++, C#, .NET or the like, "" if the text is anything else."""
    found = _ONLY_SIGNED.fullmatch(text)
    return found[1].lower() if found else ""


def find_ids(text: str) -> list[str]:
    """Return the lexemes that find a commit id, none if the text is more than an id.

    The first lexeme finds all ids that begin alike. The others find the shorter ids and this one.
    """
    found = _ONLY_ID.fullmatch(text)
    if not found or not _is_id(found[1]):
        return []
    lengths = range(_SHORT_ID, len(found[1]) + 1)
    return [_begin_id(found[1]), *(found[1][:length] for length in lengths)]


def _is_id(word: str) -> bool:
    return not (word.isdigit() or word.isalpha())


def _begin_id(commit: str) -> str:
    return f"{commit[:_SHORT_ID]}."


def _begin_ids(name: str) -> dict[str, None]:
    return dict.fromkeys(_begin_id(one) for one in _INNER_HEX.findall(name) if _is_id(one))


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _beginnings(version: str) -> list[str]:
    numbers = version.split(".")
    return [f"{'.'.join(numbers[:count])}." for count in range(2, len(numbers) + 1)]


def _follows_letter(text: str, at: int) -> bool:
    return text[at : at + 1].isalpha() and not re.match(rf"[{UNSPACED}]", text[at])


def _names_of_url(found: re.Match[str]) -> Iterator[Name]:
    host, path = found[1].rstrip(".,;:!?)'").lower(), found[2].rstrip(".,;:!?)'/")
    labels = host.split(".")
    parents = [".".join(labels[at:]) for at in range(1, len(labels) - 1)]
    whole = f"{host}{path.lower()}"
    if "." in host or path:
        parts = dict.fromkeys([host, *parents]) if "." in host else {}
        for inner in _COMPOUND.finditer(path):
            if name := _read_compound(inner[0]):
                parts |= dict.fromkeys([name[0], *name[1]])
        parts |= _begin_ids(path)
        parts.pop(whole, None)
        yield Name(found.start(), found.end(), whole, tuple(parts))


@lru_cache(maxsize=_KEPT)
def _read_compound(name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return a name of several words in lower case, with its parts of several words.

    Parts are the components of a path, its last two, the last one without its suffix, runs of the
    pieces of a dotted name, and the first digits of ids.
    """
    word = name.strip("./:+-$").lower()
    pieces = [piece for piece in _SEPARATORS.split(word) if _LETTER.search(piece)]
    if not pieces or word in pieces or _EMPHASIS.fullmatch(word):
        return None
    if max(map(len, pieces)) < 2 and not ("/" in word or "_" in word):
        return None  # "e.g", "a.b"
    if "--" in word and not _QUALIFIERS.search(word):
        return None  # a dash between words
    components = word.split("/")
    last = components[-1]
    parts = [*components, last.rpartition(".")[0]]
    if len(components) > _ENDING:
        parts.append("/".join(components[-_ENDING:]))
    for component in components:
        if _QUALIFIERS.search(component):
            parts += _runs(component)
    several = dict.fromkeys(one.strip("./:+-$") for one in parts if _SEPARATORS.search(one))
    parts = [x for x in several if x != word and x.strip("_")]
    return word, (*parts, *_begin_ids(word))


def _runs(name: str) -> Iterator[str]:
    """Yield the runs of pieces of a dotted name; beyond MAX_PIECES only those at its end."""
    pieces = _QUALIFIERS.split(name)
    count = len(pieces) // 2 + 1
    for first in range(count):
        for last in range(first, count):
            if count <= MAX_PIECES or last == count - 1:
                yield "".join(pieces[2 * first : 2 * last + 1])
