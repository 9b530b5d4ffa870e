"""Find header blocks: From, Sent, To and Subject as programs copy them above a message.

Above an answered message Outlook and its like leave the message below unmarked; above a forwarded
one it is new to the list. A separator says which, or else what stands around (`quote_heads`).
"""

import re
from functools import lru_cache

from mail_assets.mail.body.folding import fold
from mail_assets.mail.body.line_rule import QuoteHead
from mail_assets.mail.body.phrases import load_phrases

_MAX_NAME = 40  # characters of a field's name, or of a line like "Begin forwarded message:"
_MAX_SEPARATOR = 250  # characters
_MAX_BLOCK = 16  # lines
_MAX_FOLDED = 4  # lines of one field, except for addresses
_MIN_KINDS = 3  # fields that differ
_MAX_GAP = 7  # lines from a separator to its first field: Lotus Notes names the author there
_OTHER_FIELDS = ("x-", "list-", "content-", "resent-", "mime-", "delivered-")
_DASHES = "".join(map(chr, (*range(0x2010, 0x2016), 0x2212)))  # ProtonMail ruled with U+2010
_TO_HYPHENS = str.maketrans(_DASHES, "-" * len(_DASHES))
_RULE_STARTS = frozenset("-=*_ \t" + _DASHES)
_RULES = frozenset(mark * 2 for mark in "-=*_" + _DASHES)
_UNDERSCORES = re.compile(r"_{20,}+\s{0,9}$")
_GIT_MAGIC = re.compile(r"From [0-9a-f]{7,64} Mon Sep 17 00:00:00 2001")
# a line of Lotus Notes above To, cc and Subject: "Jo Roe on 01/05/2000 10:11:12 AM"
_NOTES_DATE = re.compile(
    r"(?:\S[^\n]{0,120}? \w{1,4} )?\d{1,4}[-./]\d{1,2}[-./]\d{1,4},? \d{1,2}[:.]\d\d"
    r"(?:[:.]\d\d)?(?: ?[AaPp]\.?[Mm]\.?)?\s{0,9}$"
)

#: The kinds of some lines, by their numbers.
Kinds = dict[int, str]


def separator_kind(line: str) -> str:
    """Return "original", "forwarded" or "forwarded_end" for "-----Original Message-----", or ""."""
    text = line.strip(" \t>")[:_MAX_SEPARATOR]
    return _phrase_kind(text.translate(_TO_HYPHENS)) if text[:2] in _RULES else ""


@lru_cache(maxsize=1024)
def _phrase_kind(text: str) -> str:
    """Return what separator_kind() does, for a text that begins with a rule."""
    inner, closing, _ = text.strip(text[0] + " \t").partition(text[:2])
    if not inner:
        return ""
    phrase = fold(inner)
    phrases = load_phrases()
    if closing or text[-1] == text[0]:
        kind = phrases.separators.get(phrase)
        if kind:
            return kind
    return next((kind for t, kind in phrases.separator_templates if t.matches(phrase)), "")


def find_header_blocks(lines: list[str], own: list[int], quoted: bytearray) -> dict[int, QuoteHead]:
    """Return the header blocks, with their separators, by their first line."""
    fields, separators = _find_fields(lines, own)
    separators |= _find_rules(lines, own)
    heads: dict[int, QuoteHead] = {}
    done = 0
    for i in sorted(fields.keys() | separators.keys()):
        if i >= done:
            start, head = i, None
            if i in separators:
                head = _ruled_block(lines, fields, i, separators[i])
            else:
                start, head = _bare_block(lines, quoted, fields, i)
            if head is not None:
                heads[max(start, done)] = head
                done = head.stop
    return heads


def _find_fields(lines: list[str], own: list[int]) -> tuple[Kinds, Kinds]:
    """Return the kinds of the fields, and of the separators that look like one, by line."""
    phrases = load_phrases()
    fields, separators = {}, {}
    for i in own:
        line = lines[i]
        if ":" not in line and (line.isascii() or "：" not in line):
            continue
        colon = line.find(":", 0, _MAX_NAME)
        if colon < 0:
            colon = line.find("：", 0, _MAX_NAME)
        if colon > 0:
            name = line[:colon].strip(" \t*").lower()
            name = name if name.isascii() else fold(name)
            if name in phrases.fields:
                fields[i] = phrases.fields[name]
            elif name.startswith(_OTHER_FIELDS):
                fields[i] = "other"
            elif name in phrases.begin and not line[colon + 1 :].strip():
                separators[i] = "forwarded"
    return fields, separators


def _find_rules(lines: list[str], own: list[int]) -> Kinds:
    """Return the kinds of the separators between rules, by line."""
    separators = {}
    for i in own:
        line = lines[i]
        if line[0] in _RULE_STARTS and line.lstrip()[:2] in _RULES:
            if _UNDERSCORES.match(line.strip()):
                separators[i] = "underscores"
            elif kind := separator_kind(line):
                separators[i] = kind
    return separators


def _ruled_block(lines: list[str], fields: dict[int, str], i: int, kind: str) -> QuoteHead | None:
    """Return the block at a separator; a rule of underscores needs a header below."""
    if kind == "forwarded_end":
        return QuoteHead(i + 1, "attribution")
    first = next((x for x in range(i + 1, i + _MAX_GAP) if x in fields), None)
    between = [line for line in lines[i + 1 : first] if line.strip()] if first else []
    if first is None or (between and not any(map(_NOTES_DATE.match, between))):
        return None if kind == "underscores" else QuoteHead(i + 1, kind)
    stop = _block_end(lines, fields, first)
    kinds = {fields[x] for x in range(first, stop) if x in fields}
    if kind == "underscores":
        return QuoteHead(stop, "original") if "from" in kinds and len(kinds) > 1 else None
    return QuoteHead(stop, kind)


def _bare_block(
    lines: list[str], quoted: bytearray, fields: dict[int, str], i: int
) -> tuple[int, QuoteHead | None]:
    """Return a block without a separator, and its first line.

    It needs author, date and one field more; right above a quote author and one more will do.
    """
    stop = _block_end(lines, fields, i)
    kinds = {fields[x] for x in range(i, stop) if x in fields}
    if i and _GIT_MAGIC.search(lines[i - 1]):
        return i, QuoteHead(stop, "text")
    if {"to", "subject"} <= kinds and "from" not in kinds:
        start = _notes_start(lines, i)
        return start, QuoteHead(stop, "original") if start < i else None
    if "from" not in kinds or len(kinds - {"other"}) < _MIN_KINDS or "date" not in kinds:
        below = next((x for x in range(stop, min(stop + 3, len(lines))) if lines[x].strip()), None)
        if below is None or not quoted[below] or not {"from"} < kinds:
            return i, None
        return i, QuoteHead(stop, "attribution")
    return i, QuoteHead(stop, "original")


def _block_end(lines: list[str], fields: dict[int, str], first: int) -> int:
    """Return the line behind the last field of the block that begins at a field."""
    last = first
    seen = {fields[first]}
    for x in range(first + 1, min(first + _MAX_BLOCK, len(lines))):
        if x in fields:
            last = x
            seen.add(fields[x])
        elif not lines[x].strip():
            if fields.get(x + 1, "other") in seen | {"other"}:  # some put a blank between fields
                break
        elif x - last > _MAX_FOLDED and "@" not in lines[x] and ";" not in lines[x]:
            break
    stop = last + 1
    while stop < len(lines) and stop - last <= _MAX_FOLDED and lines[stop][:1] in {" ", "\t"}:
        if not lines[stop].strip():
            break
        stop += 1
    return stop


def _notes_start(lines: list[str], i: int) -> int:
    """Return the first line that Lotus Notes writes above the fields at i; i for none."""
    for x in range(i - 1, max(i - _MAX_GAP, -1), -1):
        if _NOTES_DATE.match(lines[x].strip()):
            while x > 0 and i - x < _MAX_GAP and lines[x - 1].strip() and "@" in lines[x - 1]:
                x -= 1
            return x
    return i
