"""Find and mask the addresses in a text of mail, plain and in common disguises.

A masked text keeps its length, so spans of highlights and segments still fit. Mask first, then cut;
or mask a part together with CONTEXT characters around it.
https://www.unicode.org/reports/tr36/ names the characters that look like "@".
"""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from mail_assets.mail.message.addresses import AT_MARKS

#: Replaces each character of an address.
MASK = "\N{BULLET}"
#: The longest local part and domain (RFC 5321, 4.5.3.1).
MAX_LOCAL, MAX_DOMAIN = 64, 255
#: More characters than an address has, with those around it that decide whether it is one.
CONTEXT = 400
#: Most characters of a disguise before the sign.
_MAX_BEFORE = 6

#: Forms of "@": the sign and its look-alikes, those of Perl and Texinfo, URLs (also encoded twice),
#: HTML, quoted-printable and strings of programs, and the word.
_AT = re.compile(
    r"(?P<touching>\\@@?|@@|%(?:25){0,3}40|=40)|[@\uFF20\uFE6B]|\[a\](?=[ \t]?[^\W_])|&lt;at&gt;"
    r"|(?<=[ \t])/at/(?=[ \t])|&(?:amp;)?(?:#0{0,5}64|#x0{0,5}40|commat);"
    r"|\\(?:u00|x)40|(?<![^\W_])(?P<word>at)(?![^\W_])",
    re.IGNORECASE,
)
#: Characters around the sign: brackets, which need not be closed, and a line end after it.
_BLANK = r"[ \t\u00A0]"
_SIGNS = (
    r"[\[\](){}<>|*~#%+=^\u00AB\u00BB\u2039\u203A\u27E8\u27E9\u3008-\u3011\uFF08\uFF09\uFF3B\uFF3D"
    r"_-]{1,2}"
)
_BEFORE_BACKWARDS = re.compile(rf"(?:{_BLANK}{{0,2}}{_SIGNS}|[\"'])?{_BLANK}{{0,2}}")
_AFTER = re.compile(
    rf"{_BLANK}{{0,2}}(?:(?:{_SIGNS}|[\"']){_BLANK}{{0,2}})?"
    rf"(?:\r?\n[ \t>|]{{0,6}})?(?:{_SIGNS}{_BLANK}{{0,2}})?"
)
_BLANKS = (" ", "\t")
#: After the word, a line end or "<" means a sentence with a URL.
_AFTER_WORD = re.compile(r"[^\n<]+")
_INVISIBLE = (
    r"\u00AD\u200B-\u200F\u202A-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFB\U000E0000-\U000E007F"
)
#: A local part backwards, or a quoted text on one line. No slash: the beginning of a URL stays.
_LOCAL_BACKWARDS = re.compile(rf"\"[^\"\n]++\"|[\w.!#$&'*+=?^`{{|}}~%{_INVISIBLE}-]++")
#: Top-level domains that mark an address if its sign is ambiguous: countries, the generic ones
#: used for mail, and those of private networks.
_TOP = (
    r"(?:[a-z]{2}|com|net|org|edu|gov|mil|int|info|biz|name|pro|aero|coop|museum|arpa|dev|app|xyz"
    r"|online|site|tech|cloud|email|mail|blog|page|club|live|world|space|foundation|group|systems"
    r"|example|invalid|local|xn--[\w-]{1,59})(?![\w-])"
)
_DOT = (
    rf"(?:[.\u3002\uFF0E]|%(?:25){{0,3}}2e|=2e|&(?:amp;)?(?:#0{{0,5}}46|#x0{{0,5}}2e|period);"
    rf"|{_BLANK}{{0,2}}[\[({{<]{{1,2}}{_BLANK}?(?:dot|\.){_BLANK}?[\])}}>]{{1,2}}"
    rf"{_BLANK}{{0,2}}|{_BLANK}{{0,2}}[|*~#_-]dot[|*~#_-]{_BLANK}{{0,2}}|{_BLANK}dot{_BLANK}"
    rf"|{_BLANK}{{1,2}}\.{_BLANK}{{1,2}}(?={_TOP}))"
)
_LABEL = rf"(?:(?![_-]dot[_-])[\w{_INVISIBLE}-])++"
_DOMAIN = re.compile(rf"(?!www\.){_LABEL}(?:{_DOT}{_LABEL})++|\[[\dA-Fa-f.:]++\]", re.IGNORECASE)
#: A host without dots, after a plain "@" only.
_HOST = re.compile(_LABEL)
#: The two characters before a domain.
_LOCAL_AND_SIGN = re.compile(r"[\w.!#$&'*+=?^`{|}~%\"-][@\uFF20\uFE6B]")
#: Signs alone are not a local part: "{@link", or "+@Override" in a patch.
_WORD = re.compile(r"\w")
#: A domain has a letter, unlike a version ("react@18.2"), or is an IP address in brackets.
_LETTER = re.compile(r"[^\W\d_]|\[")
#: After a disguised sign the domain ends with letters: "at 10.30" is a time.
_NAMED = re.compile(r"[^\W\d_]{2}")
_ENDS_WITH_TOP = re.compile(rf"(?<![^\W_]){_TOP}\Z", re.IGNORECASE)
#: Addresses as pipermail writes them in the list's language, only in "<>" or after "mailto:":
#: "está en example.org" is a sentence. They are shorter than CONTEXT.
_MARKS = "|".join(re.escape(mark) for mark in sorted(AT_MARKS, key=len, reverse=True))
_MARKED = (
    rf"[\w.!#$&'*+=?^`{{|}}~%-]{{1,64}}?(?:{_MARKS})(?:[\w-]{{1,63}}+\.){{1,4}}+[\w-]{{2,63}}+"
)
_LISTED = re.compile(rf"(?<=<){_MARKED}(?=>)|(?<=mailto:){_MARKED}")


class Address(NamedTuple):
    """An address in a text, from `start` to `end`."""

    start: int
    end: int
    text: str


def find_addresses(text: str) -> Iterator[Address]:
    """Yield addresses, and Message-IDs, which look like them; in time linear in `text`.

    Each sign is judged by the CONTEXT characters around it, so a part of a text that includes these
    gives the same result as the whole. `a@b@c` has two addresses.
    """
    for at in _AT.finditer(text):
        if found := _match_plain(text, at) or _match_disguised(text, at):
            yield found
    for match in _LISTED.finditer(text):
        yield Address(match.start(), match.end(), match.group())


def _match_plain(text: str, at: re.Match[str]) -> Address | None:
    """Return the address whose parts touch the sign."""
    if at["word"]:
        return None
    before = text[max(0, at.start() - MAX_LOCAL) : at.start()]
    # a hostile megabyte of "@" ends here: it has no local part
    local = _LOCAL_BACKWARDS.match(before[::-1])
    if not (local and _WORD.search(local.group())):
        return None
    bounds = at.end(), at.end() + MAX_DOMAIN
    domain = _DOMAIN.match(text, *bounds)
    if at.group() == "@":
        domain = domain or _HOST.match(text, *bounds)
        is_named = domain and _LETTER.search(domain.group())
    else:
        is_named = domain and _NAMED.search(domain.group()[-6:])
    return _cut(text, at.start() - local.end(), domain.end()) if domain and is_named else None


def _match_disguised(text: str, at: re.Match[str]) -> Address | None:
    """Return the address whose sign has blanks or signs around it, or is a word."""
    after = _AFTER.match(text, at.end())
    domain = after and _DOMAIN.match(text, after.end(), after.end() + MAX_DOMAIN)
    if not (after and domain) or at["touching"]:  # "timeout=40 example.org"
        return None
    backwards = text[max(0, at.start() - MAX_LOCAL - _MAX_BEFORE) : at.start()][::-1]
    before = _BEFORE_BACKWARDS.match(backwards)
    local = before and _LOCAL_BACKWARDS.match(backwards, before.end(), before.end() + MAX_LOCAL)
    if not (before and local and _WORD.search(local.group())):
        return None
    if _is_domain(text, at.start() - local.end(), at.start() - before.end()):
        return None
    follows = text[domain.end() : domain.end() + 1]
    if _is_certain(at, before.group(), after.group()):
        is_named = _NAMED.search(domain.group()[-6:]) and follows != "@"
    elif at["word"] and not (before.group() and _AFTER_WORD.fullmatch(after.group())):
        return None
    else:
        is_named = _ENDS_WITH_TOP.search(domain.group()) and follows not in ("@", "(", "/")
    return _cut(text, at.start() - local.end(), domain.end()) if is_named else None


def _is_domain(text: str, start: int, end: int) -> bool:
    """Return whether a local part is a domain: "jo@example.org at irc.example.org"."""
    if start < 2 or not _LOCAL_AND_SIGN.match(text, start - 2, start):
        return False
    return bool(_DOMAIN.fullmatch(text, start, end) or _HOST.fullmatch(text, start, end))


def _is_certain(at: re.Match[str], before: str, after: str) -> bool:
    """Return whether the sign is only used in addresses: "(at)", "[@]", the word in two blanks."""
    if at["word"] and before in _BLANKS and after in _BLANKS:
        return True
    return bool(before.strip() and after.partition("\n")[0].strip())


def _cut(text: str, start: int, end: int) -> Address:
    return Address(start, end, text[start:end])


def mask_addresses(text: str, keep: Collection[str] = ()) -> str:
    """Return a text of the same length with its addresses masked, except those to `keep`."""
    pieces: list[str] = []
    at = 0
    for start, end, found in sorted(find_addresses(text)):
        if found not in keep and end > at:
            start = max(start, at)
            pieces += [text[at:start], MASK * (end - start)]
            at = end
    return "".join([*pieces, text[at:]])
