"""Find and mask the addresses in a text of mail, plain and in common disguises.

One grammar serves Python and PostgreSQL: the pieces below are valid patterns of both. PostgreSQL
gets a single pattern, ADDRESSES. Python finds the signs first and then checks the text around each,
in linear time. Tests compare what both mask.

    jo@example.org, jo%40example.org        the sign, or a code for it, touches both parts
    jo [at] example (dot) org               a sign or a word between brackets
    jo at example.org                       the word between blanks
    jo @ example.org, jo at (line end) ...  other forms, if a known domain follows
    jo(a)example.org                        HyperKitty
    jo[at]gmail                             a provider that is known without its domain
    jo골뱅이example.org, joATexampleDOTorg   words for the sign that touch both parts
    <ana en example.org>                    Mailman's words, in places where prose has none

A masked text keeps its length, so spans of highlights and segments stay valid. Mask first, then
cut; or mask a part together with CONTEXT characters around it. For characters that look like "@",
see https://www.unicode.org/reports/tr36/.
"""

import re
import string
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

from mail_assets.mail.message.addresses import AT_MARKS

#: Replacement for each character of an address.
MASK = "\N{BULLET}"
#: Maximum characters of a local part and of a domain (RFC 5321, 4.5.3.1). Limits in Python only.
MAX_LOCAL, MAX_DOMAIN = 64, 255
#: Maximum characters of a run "a@b@c", in which each address is the local part of the next.
MAX_RUN = 4_000
#: Characters around a place that are enough to decide whether it is in an address.
CONTEXT = 400
#: Maximum characters between a local part and its sign.
_MAX_GAP = 40

# --- the grammar: character classes, for use between [ and ] ---

#: Characters without width, which may be anywhere in a word.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e0fff"
)
#: Letters; ranges skip the punctuation and blanks between them.
_LETTER = (
    "a-zA-Z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u037d\u037f-\u0386\u0388-\u0559"
    "\u0560-\u0588\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4-\u05f2\u0610-\u061a\u0620-\u0669\u066e-\u06d3"
    "\u06d5-\u06ff\u0710-\u0963\u0966-\u0e4e\u0e50-\u0e59\u0e5c-\u167f\u1681-\u1fff\u2c00-\u2dff"
    "\u3005-\u3007\u3021-\ud7ff\uf900-\ufdff\ufe20-\ufe4f\ufe70-\ufefe\uff21-\uff3a\uff41-\uff5a"
    f"\uff66-\uffdc\U00010000-\U000dffff{_INVISIBLE}"
)
_END = f"{_LETTER}0-9\uff10-\uff19"
_LABEL_SIGN = rf"{_END}_\-"
#: Characters of a local part (RFC 5322, 3.2.3), without "/" so that the beginning of a URL stays.
_ATOM_SIGN = f"+{_LABEL_SIGN}.\uff0e\ufe52\u2024!#$&'*=?^`{{|}}~%"
_LETTER_SEEN = _LETTER.removesuffix(_INVISIBLE)
_BLANK_SIGN = " \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000"
#: Brackets (they need not be closed), quotes, rules and dashes.
_BRACKET_SIGN = (
    r"\[\](){}<>|+*~#%=^!_\"'\u00ab\u00bb\u2010-\u2015\u2018-\u201f\u2039\u203a\u27e8\u27e9"
    "\u3008-\u3011\uff08\uff09\uff1c\uff1e\uff3b\uff3d\uff5b\uff5d-"
)

# --- the grammar: pieces, for both; `_for_postgres` removes a "+" after a repetition ---


def _spell(word: str) -> str:
    return "".join(
        f"[{one}{one.upper()}]" if one != one.upper() else re.escape(one) for one in word
    )


def _spell_any(words: str) -> str:
    return f"(?:{'|'.join(map(_spell, words.split()))})"


_UNSEEN = f"[{_INVISIBLE}]*+"
_BLANK = f"(?:[{_BLANK_SIGN}]|%20|&(?:nbsp|#32|#160);)"
_BLANKS = f"[{_BLANK_SIGN}]*"
_BRACKETS = f"(?:[{_BRACKET_SIGN}]|&[lg]t;){{1,2}}"
#: A line end, also a soft one of quoted-printable, with the quote marks of the next line.
_LINE_END = f"=?(?:\r\n|[\r\n\v\f\u0085\u2028\u2029])[>|{_BLANK_SIGN}]*"
_IN_LABEL = f"(?:(?![_-][dD][oO][tT][_-][{_LABEL_SIGN}])[{_LABEL_SIGN}])"
_LABEL = f"{_IN_LABEL}++"
#: The first label, which is not "www".
_FIRST = rf"(?:[wW](?![wW]{{2}}\.)|[{_END.replace('a-zA-Z', 'a-vx-zA-VX-Z')}_]){_IN_LABEL}*+"
#: Top-level domains that confirm an address with an ambiguous sign: generic ones used for mail, and
#: those of private networks. Countries have two letters, see `_KNOWN`.
_TOP = (
    "com net org edu gov mil int info biz name pro aero coop museum arpa dev app xyz online site "
    "tech cloud email mail blog page club live world space foundation group systems example "
    "invalid local"
)
_KNOWN = rf"(?:[a-zA-Z]{{2}}|{_spell_any(_TOP)}|[xX][nN]--[{_LABEL_SIGN}]+)(?![{_LABEL_SIGN}])"
_TIGHT_DOT = (
    "(?:[.\u3002\uff0e\uff61\ufe52\u2024]|%(?:25)*2[eE]|=2[eE]"
    "|&(?:amp;)?(?:#0*46|#[xX]0*2[eE]|period);?)"
)
_DOT_WORD = _spell_any("dot d0t punto punkt ponto точка крапка kropka tečka nokta")
_DOT_IN_BRACKETS = (
    rf"(?:{_spell_any('dot punto punkt point ponto точка period d0t')}|d o t|D O T|\.)"
)
_QUOTES = "\"'\u00ab\u00bb\u2018-\u201f\u2039\u203a"
_USUAL_TOP = f"(?:[a-zA-Z]{{2}}|{_spell_any('com net org edu gov info')})(?![{_LABEL_SIGN}])"
_DOT = (
    rf"(?:{_TIGHT_DOT}|{_BLANK}{_DOT_WORD}{_BLANK}"
    rf"|{_BLANKS}(?:[/|*~#_{_QUOTES}-]{_spell('dot')}[/|*~#_{_QUOTES}-]"
    rf"|[\[({{<]{{1,2}}{_BLANKS}{_DOT_IN_BRACKETS}{_BLANKS}[\])}}>]{{1,2}}){_BLANKS}"
    rf"|{_BLANK}{{1,2}}(?:\.{_BLANK}|\uff0e){_BLANK}{{0,2}}(?={_USUAL_TOP})"
    rf"|\.{_BLANK}(?=(?:com|net|org|edu)(?![{_LABEL_SIGN}])))"
)
#: A domain with a letter, unlike a version ("react@18.2"), or an IP address in brackets.
_HOST = rf"(?=[0-9_.-]*[{_LETTER_SEEN}]){_LABEL}(?:{_DOT}{_LABEL})*+"
_IP = r"\[(?:[iI][pP][vV]6:)?[0-9A-Fa-f.:]+\]"
#: A domain that ends with two or more letters, unlike "10.30", a time.
_NAMED = (
    rf"{_FIRST}{_DOT}(?:{_LABEL}{_DOT})*[{_LETTER}]{{2}}(?:[{_LABEL_SIGN}]*[{_END}])?(?![{_END}])"
)
#: A domain with a known top-level domain. Text after it that looks like code excludes it.
_FAMOUS = rf"{_FIRST}{_DOT}(?:{_LABEL}{_DOT})*{_KNOWN}(?!{_TIGHT_DOT}[{_LABEL_SIGN}]|[@(/])"
#: The same after a name of the sign, where "point" is a dot; after "at" it would be a plain word.
_SPOKEN = _FAMOUS.replace(_DOT_WORD, _spell_any("dot point punto punkt ponto точка крапка"))
#: Providers that people name without their domain.
_PROVIDER = (
    f"{_spell_any('gmail googlemail hotmail yahoo outlook icloud protonmail gmx aol naver yandex')}"
    f"(?![{_LABEL_SIGN}.\uff0e@(/=])"
)
#: An ASCII domain whose dots may be words that touch the labels, as the sign does.
_DOT_TOUCHING = rf"{_BLANKS}(?:{_TIGHT_DOT}|{_spell('dot')}|점|쩜|닷|ドット|どっと|点|點){_BLANKS}"
_ASCII_LABEL = f"(?:(?!{_spell('dot')})[a-zA-Z0-9_-])+"
_MIXED = rf"(?:{_ASCII_LABEL}{_DOT_TOUCHING})+(?:[a-zA-Z]{{2}}|{_spell_any(_TOP)})(?![a-zA-Z0-9_-])"
_SMALL = (
    r"[a-z0-9-]+(?:(?:DOT|\.)[a-z0-9-]+)*(?:DOT[a-z]{2,6}|\.(?:com|net|org|edu))(?![a-zA-Z0-9_.-])"
)

#: A domain whose dots are words between signs: example/dot/org.
_SIGNED = rf"{_BLANKS}[/:;,.\\&`{_BRACKET_SIGN}]{{1,3}}{_BLANKS}"
_WORD_DOT = rf"{_SIGNED}{_spell('dot')}{_SIGNED}"
_WORDED = rf"{_FIRST}(?:{_WORD_DOT}{_LABEL})*{_WORD_DOT}{_KNOWN}"
#: A domain whose dots are Chinese words.
_CHINESE = (
    rf"(?:[a-zA-Z][a-zA-Z0-9_-]*{_BLANKS}[点點]{_BLANKS})+(?:[a-zA-Z]{{2}}|{_spell_any(_TOP)})"
    "(?![a-zA-Z0-9_-])"
)

# --- the grammar: signs ---


#: Words for the sign in the languages of Mailman and others; they count only between brackets.
_BRACKETED_WORD = (
    _spell_any("a à á ä et en em na на op w på bei la στο tại ĉe ב عند في در 在 於 于")
    + "|[aA] [tT]"
)


class _Sign(NamedTuple):
    """A form of "@": the class of its first character, and the pattern of the rest."""

    kind: str
    first: str
    rest: str


_SIGNS = (
    # Perl, Texinfo, and strings of programs
    _Sign("code", r"\\", r"(?:\\?@{1,2}|(?:u00|x)40)"),
    _Sign("signs", "@", "@+"),
    # URLs, also encoded twice, and quoted-printable
    _Sign("code", "%", "(?:25)*40"),
    _Sign("code", "=", "40"),
    # browsers accept entities without the semicolon
    _Sign("entity", "&", r"(?:amp;)*(?:#0*64|#[xX]0*40(?![0-9a-fA-F])|commat);?"),
    _Sign("sign", "@\uff20\ufe6b\u24d0\u24b6\U0001f150\U0001f170", ""),
    # names of the sign in scripts without blanks between words
    _Sign("spoken", "골", "뱅이"),
    _Sign("spoken", "アあｱ", "(?:ット|っと|ｯﾄ)(?:マーク|まーく|ﾏｰｸ)?"),
    _Sign("spoken", "艾", "特"),
    _Sign("spoken", "小", "老鼠"),
    _Sign("spoken", "圈", "[aA]"),
    _Sign("chinese", "在於于", ""),
    # joATexampleDOTorg
    _Sign("capitals", "A", "T(?=[a-z0-9])"),
    # HyperKitty writes all addresses so
    _Sign("kitty", r"(", rf"[aA]\)(?=[{_END}])"),
    # words that mean the sign only between brackets
    _Sign(
        "short",
        r"\[({\uff08\uff3b",
        rf"{_BLANKS}(?:{_BRACKETED_WORD}){_BLANKS}[\])}}\uff09\uff3d]",
    ),
    _Sign("slashes", "/", "[aA][tT]/"),
)
#: "at", also in full width, and in similar Cyrillic letters.
_AT = "[aA\uff21\uff41\u0430\u0410]", f"{_UNSEEN}[tT\uff34\uff54\u0442\u0422]"
#: Names of the sign in other languages, in lower case.
_NAMES = (
    "arroba", "arobase", "arrobase", "chez", "ät", "at-sign", "at sign", "@t", "klammeraffe",
    "chiocciola", "kukac", "zavináč", "zavinac", "małpa", "malpa", "apenstaartje", "snabel-a",
    "собака", "παπάκι", "at-symbol", "at symbol", "a commercial", "commercial at",
)  # fmt: skip

# --- the grammar: addresses ---

#: A spelled-out dot of a local part: "jo (dot) roe", "jo dot roe", "jo . roe".
_LOCAL_DOT = (
    rf"(?:{_BLANK}(?:{_DOT_WORD}|\.){_BLANK}"
    rf"|{_BLANK}?[\[({{<]{{1,2}}{_BLANK}?{_DOT_IN_BRACKETS}{_BLANK}?[\])}}>]{{1,2}}{_BLANK}?)"
)
_DOTTED = rf"[{_ATOM_SIGN}]*[{_END}]{_LOCAL_DOT}"

_LOCAL = rf"(?:\"[^\"\n]+\"|[{_ATOM_SIGN}]*[{_END}])"
_BRACKETED = f"{_BLANKS}{_BRACKETS}{_BLANKS}"
_GAP = f"(?:{_BRACKETED}|{_BLANK}{_BLANKS})"
#: The gap after a word has no "<", which would begin a URL in a sentence.
_WORD_GAP = _GAP.replace("<>", ">").replace("&[lg]t;", "&gt;")
#: Tags and comments of HTML, and a comment of RFC 5322.
_TAGS = r"(?:(?:<[^<>\n]*>)+|\([^()\n]*\))"
#: Signs on both sides of a word.
_POINTED = f"{_BLANK}{_BLANKS}[.:;,]{{1,2}}"
_LINE_GAP = f"{_BLANKS}(?:{_BRACKETS}{_BLANKS})?{_LINE_END}"
#: Words that are never a local part: before "at" and a line end they refer to a place.
_PLACED = _spell_any(
    "available look looks looked looking found hosted located published posted released announced "
    "maintained documented archived visible listed mirrored downloaded website online pointed "
    "arrive arrived arrives stored"
)
#: Words of programs before "(a)".
_KEYWORDS = _spell_any("if for while return switch sizeof typeof and or not elif")
#: A local part that is a plain word: "user at gmail" may be prose, "jo.roe at gmail" is not.
_PLAIN_WORD = f"[{_LETTER}]+"


class _Form(NamedTuple):
    """A way to write an address around signs; `unless`: words that are no local part before it."""

    gap: str
    kinds: str
    after: str
    domain: str
    unless: str = ""


_CERTAIN, _TOUCHED = f"{_NAMED}(?!@)", f"{_NAMED}(?![@(/=])"
_FORMS = (
    # between brackets
    _Form(
        _BRACKETED,
        "sign entity at name",
        f"{_BRACKETED}(?:{_LINE_END})?(?:{_BRACKETS}{_BLANKS})?",
        _CERTAIN,
    ),
    _Form("", "kitty", "", _TOUCHED, _KEYWORDS),
    _Form(_BLANKS, "kitty short", f"(?:{_LINE_GAP}|{_BLANKS})", _FAMOUS, _KEYWORDS),
    _Form(_LINE_GAP, "kitty", "", _FAMOUS, _KEYWORDS),
    _Form(_TAGS, "sign entity", f"(?:{_TAGS})?", _FAMOUS),
    _Form("", "sign entity", _TAGS, _FAMOUS),
    # in a hunk header only the second "@@" follows a word, and that is a number
    _Form(f"{_BLANK}{_BLANKS}", "signs", f"{_BLANK}{_BLANKS}", _FAMOUS, r"[+0-9]+"),
    _Form(_POINTED, "at", rf"[.:;,]{{1,2}}{_BLANKS}", _FAMOUS),
    # a word between blanks
    _Form(f"{_BLANK}{_BLANKS}", "at slashes", f"{_BLANK}{_BLANKS}", _CERTAIN),
    _Form(_BLANKS, "spoken", _BLANKS, _MIXED),
    _Form(_BRACKETED, "spoken", _BRACKETED, _MIXED),
    _Form("", "capitals", "", _SMALL),
    _Form(_SIGNED, "at", _SIGNED, _WORDED),
    _Form(_BLANKS, "chinese", _BLANKS, _CHINESE, r"[^\x00-\x7f]+"),
    _Form(_BRACKETED, "sign entity at name", _BRACKETED, _PROVIDER),
    _Form(_GAP, "sign name", _WORD_GAP, _PROVIDER),
    _Form(f"{_BLANK}{_BLANKS}", "at", f"{_BLANK}{_BLANKS}", _PROVIDER, _PLAIN_WORD),
    # other forms, if a known domain follows
    _Form(
        f"(?:{_LINE_GAP}|{_GAP})?",
        "sign entity",
        f"(?:{_LINE_GAP}(?:{_BRACKETS}{_BLANKS})?|{_GAP})?",
        _FAMOUS,
    ),
    _Form(_GAP, "at name", _WORD_GAP, _FAMOUS),
    _Form(_GAP, "name", _WORD_GAP, _SPOKEN),
    _Form(_GAP, "at name", f"{_LINE_GAP}{_WORD_GAP}?", _FAMOUS, _PLACED),
    _Form(_LINE_GAP, "at name", f"(?:{_LINE_GAP}{_WORD_GAP}?|{_WORD_GAP})", _FAMOUS, _PLACED),
)
#: Words that lists in other languages write for "@". They count where prose does not have them: in
#: "<>", after "mailto:", and alone on a line. "Mirad: está en example.org, y" is a sentence.
_MARKS = {*AT_MARKS, *(f" {mark.strip()} " for mark in AT_MARKS if mark.strip())}
_MARK = f"(?:{'|'.join(re.escape(mark) for mark in sorted(_MARKS, key=len, reverse=True))})"
_MARK_LOCAL = r"[+a-zA-Z0-9_.!#$%&'*/=?^`{|}~-]++"
_MARK_DOMAIN = rf"(?:[{_LABEL_SIGN}]++\.)+[{_LABEL_SIGN}]{{2}}[{_LABEL_SIGN}]*+"
#: Allowed before such an address on its line: quote marks, and the name of a field.
_FIELDS = "from to cc de von da para mail e-mail email correo contact sender reply-to desc"
_MARGIN, _FIELD = f"[>|{_BLANK_SIGN}]*+", f"{_spell_any(_FIELDS)}:{_BLANK}?"
_MARK_LEAD = f"{_MARGIN}(?:{_FIELD})?"
#: Allowed after it on its line: punctuation, or a name.
_MARK_END = rf"(?=[{_BLANK_SIGN}.,;>]*+(?:\([^()\n]*+\))?[{_BLANK_SIGN}]*+(?:\r?\n|$))"


# --- PostgreSQL ---


def _write(kinds: str) -> str:
    found = [f"[{one.first}]{one.rest}" for one in _SIGNS if one.kind in kinds.split()]
    found += ["".join(_AT)] if "at" in kinds.split() else []
    found += map(_spell, _NAMES if "name" in kinds.split() else ())
    return f"(?:{'|'.join(found)})"


def _for_postgres(pattern: str) -> str:
    """Return a pattern without Python's possessive repetitions, which only save time."""
    return re.sub(r"(?<=[+*?}])\+(?!\])", "", pattern.replace(_IN_LABEL, f"[{_LABEL_SIGN}]"))


def _write_sign(form: _Form) -> str:
    """Return the pattern of a form up to its domain.

    Words that are not a local part are checked after the sign, because most words have no sign.
    """
    sign = f"{form.gap}{_UNSEEN}{_write(form.kinds)}"
    is_word = rf"(?:^|[^{_ATOM_SIGN}]){form.unless}"
    unless = f"(?<!{is_word}{sign})" if form.unless else ""
    return f"{sign}{unless}{_UNSEEN}{form.after}"


class SqlPatterns(NamedTuple):
    """Parts of the PostgreSQL pattern of an address, without capturing groups.

    An address is `lead` followed by one of: `plain`; `local`, some of `forms` and `more`; `listed`.
    If a text does not contain a form, the form may be left out of its pattern. That saves time,
    because PostgreSQL builds its automaton again for each match and looks behind from the start of
    the text.
    """

    lead: str
    plain: str
    local: str
    forms: tuple[str, ...]
    more: str
    listed: str

    @property
    def whole(self) -> str:
        """The pattern with all forms."""
        disguised = f"{self.local}(?:{'|'.join(self.forms)})+{self.more}"
        return f"{self.lead}(?:{self.plain}|{disguised}|{self.listed})"


def _join_patterns() -> SqlPatterns:
    plain = rf"(?:@(?:{_HOST}|{_IP})|{_write('sign signs code entity')}{_NAMED})"
    local = rf"(?:\"[^\"\n]+\"|[+.\uff0e!#$&'*=?^`{{|}}~%-]*[{_END}_][{_ATOM_SIGN}]*)"
    forms = []
    for domain in dict.fromkeys(form.domain for form in _FORMS):
        signs = "|".join(_write_sign(form) for form in _FORMS if form.domain == domain)
        forms.append(_for_postgres(f"(?:{signs}){domain}"))
    marked = f"{_MARK_LOCAL}{_MARK}"
    listed = (
        rf"{marked}(?:(?<=<{marked}){_MARK_DOMAIN}(?=>)|(?<=mailto:{marked}){_MARK_DOMAIN}"
        rf"|(?<=(?:^|\n){_MARK_LEAD}{marked}){_FAMOUS}{_MARK_END})"
    )
    return SqlPatterns(
        _for_postgres(f"(?:{_DOTTED})*"),
        _for_postgres(f"{local}{plain}+"),
        _for_postgres(_LOCAL),
        tuple(forms),
        _for_postgres(f"{plain}*"),
        _for_postgres(listed),
    )


def _find_disguises() -> str:
    between = f"(?:[^{_END}]|[{_INVISIBLE}]|%20|&(?:nbsp|#32|#160|[lg]t);)"
    dot = f"(?:{_DOT_IN_BRACKETS}|{_DOT_WORD})"
    dotted = (
        rf"[{_LABEL_SIGN}]+(?:{_TIGHT_DOT}|{_BLANK}{{1,2}}(?:{dot}{_BLANK}|\uff0e)"
        rf"|{_BLANKS}[/:;,.\\&`{_BRACKET_SIGN}]{{1,3}}{_BLANKS}{dot})"
    )
    sign = (
        rf"(?:[^{_LETTER_SEEN}]{_write('at name')}{between}|{_write('kitty short slashes entity')}"
        rf"|[>)]{_write('sign entity')}|{_write('sign entity')}(?:<[^<>\n]*>|\([^()\n]*\)))"
    )
    lead = rf"(?:<|mailto:|(?:^|\n){_MARK_LEAD})"
    spelled = rf"[{_END}]{_LOCAL_DOT}[{_ATOM_SIGN}]*[{_END}]{_write('sign signs code entity')}"
    return _for_postgres(
        rf"(?:(?:{sign}|(?:^|[^{_END}]){_write('sign')}|{_write('sign')}{between}){between}*"
        rf"(?:{dotted}|{_PROVIDER})|{spelled}|{_write('spoken')}|[a-z0-9]AT{_SMALL}"
        rf"|{_write('chinese')}{_BLANKS}[a-zA-Z][a-zA-Z0-9_-]*{_BLANKS}[点點]"
        rf"|{lead}{_MARK_LOCAL}{_MARK}(?:[{_LABEL_SIGN}]+\.)+[{_LABEL_SIGN}]{{2}})"
    )


def _find_hints() -> str:
    """Return the pattern of any non-ASCII character or ASCII sign.

    It has few and small classes, because PostgreSQL builds its automaton again for each text.
    """
    named = "|".join(_spell(name) for name in ("at", *_NAMES) if name.isascii())
    bracketed = _spell_any("a et en em na op w bei")
    marked = "|".join(re.escape(mark) for mark in sorted(_MARKS) if mark.isascii())
    return (
        r"[^\x01-\x7f]|[@%&\\]|=40|AT[a-z0-9]|\([aA]\)|/[aA][tT]/"
        rf"|[\[({{][ \t]*(?:{bracketed}|[aA] [tT])[ \t]*[\])}}]"
        rf"|[^a-zA-Z](?:{named})[^a-zA-Z0-9]|(?:{marked})[a-zA-Z0-9_-]+\."
    )


#: PostgreSQL patterns without capturing groups. PLAIN: an address whose parts touch its sign.
#: ADDRESSES: an address of any form. Both also match several in a row.
PATTERNS = _join_patterns()
PLAIN, ADDRESSES = PATTERNS.plain, PATTERNS.whole
#: Matches every text with a disguised address, and about one text of six. PostgreSQL takes up to
#: milliseconds to match ADDRESSES, so this is tested first.
DISGUISES = _find_disguises()
#: Matches every text with an address.
SIGNS = rf"@|{_write('sign code entity')}[{_LABEL_SIGN}]|{DISGUISES}"
#: Matches every text that SIGNS matches, and about one subject of twenty in all. For a subject
#: PostgreSQL takes 50 us to test SIGNS, and 8 us to test this.
HINTS = _find_hints()


# --- Python ---


class _Lazy:
    """A pattern that is compiled on first use: all together take a second, a search needs none."""

    made: ClassVar[list["_Lazy"]] = []

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.made.append(self)

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.pattern)


#: A class first, then groups that name the kind of sign: ten times as fast as `a|b|c`.
_CANDIDATE = _Lazy(
    f"[{''.join(one.first for one in _SIGNS)}](?:"
    + "|".join(
        f"(?<=[{one.first}]){one.rest}(?P<{one.kind}{number}>)" for number, one in enumerate(_SIGNS)
    )
    + ")"
)
#: Look-ahead after a word for the sign: a domain with a dot, or a provider.
_ON = (
    rf"(?=(?:[^{_END}]|[{_INVISIBLE}]|%20|&(?:nbsp|#32|#160|[lg]t);){{1,40}}(?:{_PROVIDER}"
    rf"|[{_LABEL_SIGN}]+(?:[^{_END}{_BLANK_SIGN}]|{_BLANK}{{1,2}}(?:[^{_END}]|[dDpPkKnNtTтТкК]))))"
)


def _find_word(first: str, rest: str) -> _Lazy:
    """Return the pattern of a word; to skip fast, text before it is checked after a letter."""
    before = rf"(?<=[^{_LETTER_SEEN}1-9]{first})"
    return _Lazy(rf"(?P<word>{first}{before}{rest})(?![{_LETTER_SEEN}0-9]){_ON}")


_WORD = _find_word(*_AT)
_NAME_SIGNS = {name: _find_word(_spell(name[0]), _spell(name[1:])) for name in _NAMES}
_RUN_BACKWARDS = _Lazy(rf"\"[^\"\n]++\"|[{_ATOM_SIGN}]++")
_ENDS_DOTTED = _Lazy(rf"(?<![{_ATOM_SIGN}])(?:{_DOTTED})+\Z")
_IS_LOCAL = _Lazy(f"[{_END}_]")
#: Characters with which a spelled-out dot may end.
_ENDS_OF_DOTS = frozenset(" \t\u00a0\u1680\u202f\u205f\u2800\u3000;0)]}>") | {
    chr(one) for one in range(0x2000, 0x200B)
}
#: A local part with a word, not only with signs around another address.
_HAS_WORD = _Lazy(rf"[^\"{_LETTER_SEEN}0-9@\uff20\ufe6b]*+[{_LETTER_SEEN}0-9]")
_TOUCHING = _Lazy(f"{_HOST}|{_IP}|{_NAMED}")
_TOUCHING_NAMED = _Lazy(_NAMED)
_RUN = _Lazy(f"(?:@(?:{_HOST}|{_IP}))*+")


class _Judge(NamedTuple):
    """The Python patterns of a form: the text after the sign, then the text before it."""

    rest: "_Lazy"
    before: "_Lazy"
    unless: "_Lazy"


_JUDGES = {
    kind: tuple(
        _Judge(
            _Lazy(f"{_UNSEEN}{form.after}{form.domain}"),
            _Lazy(
                rf"(?P<local>\"[^\"\n]+\"|(?<![{_ATOM_SIGN}])[{_ATOM_SIGN}]*[{_END}])"
                rf"{form.gap}{_UNSEEN}\Z"
            ),
            _Lazy(form.unless),
        )
        for form in _FORMS
        if kind in form.kinds.split()
    )
    for kind in ("at", "name", *(one.kind for one in _SIGNS))
}
_MARKED = rf"(?P<address>{_MARK_LOCAL}{_MARK}"
#: Each begins with characters that a search finds fast. The name of a field is matched only if a
#: colon follows, because most lines have none.
_LISTED = (
    _Lazy(rf"<{_MARKED}{_MARK_DOMAIN})(?=>)"),
    _Lazy(rf"mailto:{_MARKED}{_MARK_DOMAIN})"),
    _Lazy(rf"\n{_MARGIN}(?:(?=[a-zA-Z-]{{1,9}}:){_FIELD})?{_MARKED}{_FAMOUS}){_MARK_END}"),
)


#: Maximum characters of a text in the cache of texts, and of one in the cache of names.
MAX_KEPT, MAX_NAME = 32_000, 512


def compile_patterns() -> None:
    """Compile all patterns now; a server calls this before its first request."""
    for one in _Lazy.made:
        one.compiled  # noqa: B018


class Address(NamedTuple):
    """An address in a text, from `start` to `end`."""

    start: int
    end: int
    text: str


def find_addresses(text: str) -> Iterator[Address]:
    """Yield addresses, and Message-IDs, which look like them; linear in the length of `text`.

    Each sign is judged by the CONTEXT characters around it, so a part of a text that includes them
    gives the same result as the whole. `a@b@c` is one address.
    """
    domains: list[tuple[int, int]] = []
    reach = 0
    for at in _CANDIDATE.compiled.finditer(text):
        if (
            at.end() <= reach
        ):  # inside the last match, but not near its end, where a domain may be cut
            continue
        kind = (at.lastgroup or "").rstrip(string.digits)
        touching = _match_touching(text, at, kind)
        if touching:
            yield touching
            reach = touching.end - MAX_DOMAIN
            domains.append((at.end(), touching.end))
            if _HAS_WORD.compiled.match(touching.text):
                continue
        if found := _match_disguised(text, at.span(), kind, domains):
            yield found
    for at in _WORD.compiled.finditer(text):
        if found := _match_disguised(text, at.span("word"), "at", domains):
            yield found
    lower = text.lower()
    for name, sign in _NAME_SIGNS.items():
        for at in sign.compiled.finditer(text) if name in lower else ():
            if found := _match_disguised(text, at.span("word"), "name", domains):
                yield found
    after_line_end = f"\n{text}"
    for sign in _LISTED:
        for match in sign.compiled.finditer(after_line_end):
            start, end = match.span("address")
            yield Address(start - 1, end - 1, match["address"])


def _match_touching(text: str, at: re.Match[str], kind: str) -> Address | None:
    """Return the address whose parts touch the sign, if any."""
    if kind not in ("sign", "signs", "code", "entity"):
        return None
    # a hostile megabyte of "@" ends here, because it has no local part
    local = _RUN_BACKWARDS.compiled.match(text[max(0, at.start() - MAX_LOCAL) : at.start()][::-1])
    if not (local and _IS_LOCAL.compiled.search(local.group())):
        return None
    bounds = at.end(), at.end() + MAX_DOMAIN
    domain = (_TOUCHING if at.group() == "@" else _TOUCHING_NAMED).compiled.match(text, *bounds)
    if domain is None:
        return None
    end = domain.end()
    if text.startswith("@", end) and (run := _RUN.compiled.match(text, end, end + MAX_RUN)):
        end = run.end()
    return _cut(text, at.start() - local.end(), end)


def _match_disguised(
    text: str, sign: tuple[int, int], kind: str, domains: Sequence[tuple[int, int]]
) -> Address | None:
    """Return the address whose sign is a word or has blanks or signs around it, if any.

    A part of one of the `domains` is never a local part: "jo@example.org at irc.example.org" has
    only one address.
    """
    at, end = sign
    first = max(0, at - MAX_LOCAL - _MAX_GAP)
    spans = []
    for rest, ends, unless in _JUDGES[kind]:
        if after := rest.compiled.match(text, end, end + MAX_DOMAIN):
            found = ends.compiled.search(text[first:at])
            if found and not (unless.pattern and unless.compiled.fullmatch(found["local"])):
                start, stop = (first + place for place in found.span("local"))
                place = bisect_right(domains, (start, len(text))) - 1
                start = max(start, domains[place][1]) if place >= 0 else start
                if start < stop:
                    spans.append((start, -after.end()))
    if not spans:
        return None
    start, negative_end = min(spans)  # the first address, the longest of these
    return _cut(text, start, -negative_end)


def _cut(text: str, start: int, end: int) -> Address:
    """Return an address with the words before a spelled-out dot of its local part."""
    before = text[max(0, start - MAX_LOCAL) : start]
    if before and before[-1] in _ENDS_OF_DOTS and (dotted := _ENDS_DOTTED.compiled.search(before)):
        start -= len(before) - dotted.start()
    return Address(start, end, text[start:end])


def list_addresses(text: str) -> tuple[Address, ...]:
    """Return the addresses of a text, sorted; cached, because a page asks twice."""
    if len(text) > MAX_KEPT:
        return _of_long(text)
    return _of_names(text) if len(text) <= MAX_NAME else _of_texts(text)


def _sort_addresses(text: str) -> tuple[Address, ...]:
    return tuple(sorted(find_addresses(text)))


#: Separate caches: hundreds of names and ids of a page must not displace its texts.
_of_texts, _of_names = (lru_cache(maxsize=most)(_sort_addresses) for most in (256, 2_048))
#: For the current page, which asks for its texts several times.
_of_long = lru_cache(maxsize=2)(_sort_addresses)


def mask_addresses(text: str, keep: Collection[str] = ()) -> str:
    """Return a text of the same length with its addresses masked, except those in `keep`."""
    pieces: list[str] = []
    at = 0
    for start, end, found in list_addresses(text):
        if found not in keep and end > at:
            start = max(start, at)
            pieces += [text[at:start], MASK * (end - start)]
            at = end
    return "".join([*pieces, text[at:]])
