"""Match what announces a quote.

* Attributions ("On ... X wrote:"), sought upwards from the begin of a quote, so that prose that
  reads like one stays text. Their words are in `phrases`. Right above a quote a name with its
  address, or a date, is enough, with any verb.
* Header blocks: From, Sent, To and Subject as programs copy them above a message. Above an answered
  message Outlook and its like leave the message below unmarked. Above a forwarded message the text
  is new to the list. A separator decides which, else the context (`match_quote_head`).
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from mail_assets.mail.body.lines import BodyLines, LineBlock, QuoteHead, fold
from mail_assets.mail.body.phrases import INLINE_PHRASES, Template, load_phrases

# --- attributions ---

_MAX_LENGTH = 330  # characters of an attribution
_MAX_ABOVE = 24  # characters of a name or a closing right above one
_MAX_LINES = 4  # of an attribution
MAX_BLANKS = 3  # lines between an attribution and its quote
_MAX_NAME_WORDS = 10  # words of a name without address or date
_MAX_LEAD = 24  # words of a name with address and date
_MIN_DIGITS = 5  # of a date with a day; "In 2019, they found:" has four
_DECORATION = " \t\xa0-=*_\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069"
_COLONS = frozenset(":：")
_COLON = re.compile("[:：]")
_OPEN_ENDS = frozenset(",:;：，")  # a sentence goes on below
_ENDS = (":", "：", ">", "]", ")", "...", "…")  # ends of attributions in any language
_ADDRESS = r"(?:<[^<>]{1,120}(?:@|\ at\ )[^<>]{1,120}>|\([^()]{1,80}@[^()]{1,80}\))"
# Jo Roe <jo@example.org>, 2026-01-05 10:11:
_NAMED = re.compile(rf"[^<>]{{0,80}}{_ADDRESS}[^<>:]{{0,40}}(?::[^<>:]{{0,20}}){{0,2}}:$")
_ADDRESS_FIRST = re.compile(r"\S{1,80}@\S{1,80} \([^()]{2,60}\):$")  # jo@example.org (Jo Roe):
_DATED_ADDRESS = re.compile(rf"\d{{4}}([-/])\d\d?\1\d\d?,? [^<>]{{0,80}}{_ADDRESS}:?$")  # Gmail
# [Jo Roe] or * Jo Roe:
_BRACKETED = re.compile(
    r"(?:\[(?=[^\]]{1,130}\]:?$)|\* (?=[^:]{1,130}:$))"
    r"[A-Z][\w.'-]{0,30}(?: [A-Z][\w.'-]{0,30}){1,3}\]?:?$"
)
_FROM = re.compile(r"[*]?From:[*]? {1,9}[^:]{2,100}$")  # alone above a quote
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)|\d{1,4}[-./] ?\d{1,2}[-./] ?\d{1,4}")
_MARK = re.compile(r"(?:>[ \t]?)+")
_DIGIT = re.compile(r"\d|[^\0-\x7f]")  # or what may become one when it is folded
_TIME = re.compile(r"\d[:.h時时点시] ?\d\d")
# a year, a date in numbers, or a time
WHEN = re.compile(
    rf"(?<!\d)(?:19|20)\d\d(?!\d)|\d{{1,4}}[-./]\d{{1,2}}[-./]\d{{1,4}}|{_TIME.pattern}"
)
_RULED = re.compile(r"\s{0,3}-{4} \S[^\n]{0,300} -{4}\s{0,3}$")  # Zoho: "---- On ... wrote ----"
_CUT = re.compile(r"\s{0,3}\[(?:\.{2,4}|…|snip)\]\s{0,3}$")  # the quote's beginning was left out
_NOTE = re.compile(r"\s{0,3}\[[^\[\]]{3,160}\]\s{0,3}$")  # "[stuff deleted]": above its rest
_SENTENCE = re.compile(r"[!?:;：]$|[^\W\d]{4}\.$")  # the line is the end of one
_GLUED = re.compile(r"(?<=>)(?=[^\W\d_])")  # Gmail wrapped "<jo@example.org>wrote:" so until 2013
_DATE_FIRST = re.compile(r"\W{0,3}(?:\w{1,12}[.,]{0,2} ){0,2}\d")
_NAME_FIRST = re.compile(r"[^\s<>]{1,30}(?: [^\s<>]{1,30}){0,4} ?<")

_QUOTE_BEGIN = re.compile(rb"\x00(?=\x01)")  # 1 for a quoted line, as in `quoted`


class _Candidate(NamedTuple):
    """Lines that may be one attribution, folded into one text."""

    start: int
    text: str
    first: int  # characters of the first line; of the whole text if it is one line

    def is_one_line(self) -> bool:
        return self.first >= len(self.text)


def is_attribution(line: str) -> bool:
    """Return whether a single line reads like "On ... X wrote:"."""
    text = fold(line.strip(_DECORATION))
    return _matches_template(_Candidate(0, text, len(text)))


def may_attribute(line: str) -> bool:
    """Return whether a line ends as attributions do: a quick test."""
    return line.rstrip(_DECORATION).endswith(_ENDS + load_phrases().ends)


def _find_attributions(lines: list[str], quoted: bytearray) -> dict[int, int]:
    """Return the attributions over marked quotes: first line -> line after the last."""
    found = {}
    for begin in _QUOTE_BEGIN.finditer(quoted):
        above = last = begin.start()
        while last >= 0 and above - last < MAX_BLANKS and not lines[last].strip():
            last -= 1
        start = attribution_start(lines, quoted, last, blanks=above - last)
        if start is None and last > 0 and _NOTE.match(lines[last]):
            last -= 1 if lines[last - 1].strip() else 2
            start = attribution_start(lines, quoted, last, blanks=0)
        if start is not None:
            found[start] = last + 1
    return found


def _find_unmarked_attributions(lines: list[str], own: list[int]) -> dict[int, int]:
    """Return possible attributions of an unmarked quote that end with one of the own lines.

    They stand alone, begin with a date or a name and hold a time, as programs write them.
    """
    found = {}
    for last in own:
        line = lines[last]
        if (
            (":" in line or "：" in line)
            and (line.rstrip(_DECORATION)[-1:] in _COLONS or _RULED.match(line))
            and any(map(_DIGIT.search, lines[max(last - _MAX_LINES + 1, 0) : last + 1]))
        ):
            for candidate in _join_lines(lines, None, last):
                if _is_dated(lines, candidate) and (
                    _matches_template(candidate) or _NAMED.match(candidate.text)
                ):
                    found[candidate.start] = last + 1
                    break
    return found


def _is_dated(lines: list[str], candidate: _Candidate) -> bool:
    """Return whether lines look like a program's attribution with a time.

    Right below a sentence it is one line with an address.
    """
    start, text, _ = candidate
    above = lines[start - 1].strip() if start else ""
    alone = len(above) <= _MAX_ABOVE or lines[start][:4].isspace()
    whole = candidate.is_one_line() and re.search(_ADDRESS, text) and above[-1:] not in _OPEN_ENDS
    if not (alone or whole) or _TIME.search(text) is None or _DATE.search(text) is None:
        return False
    return _begins(text) or text.startswith(load_phrases().starts)


def attribution_start(lines: list[str], quoted: bytearray, last: int, *, blanks: int) -> int | None:
    """Return the first line of the longest attribution that ends with line `last`."""
    if last < 0 or quoted[last]:
        return None
    tail = _CUT.sub("", lines[last][-_MAX_LENGTH:]).rstrip(_DECORATION)
    if blanks <= 1 and (_BRACKETED.match(tail.strip()) or (not blanks and _FROM.match(tail))):
        return last
    if not may_attribute(tail) and "news:" not in tail:
        return None
    for candidate in _join_lines(lines, quoted, last):
        if _matches_template(candidate) or _DATED_ADDRESS.match(candidate.text):
            return candidate.start
        if blanks <= 1 and _has_shape(candidate):
            return candidate.start
    return None


def _join_lines(lines: list[str], quoted: bytearray | None, last: int) -> Iterator[_Candidate]:
    start = last
    length = len(lines[last])
    while start > 0 and last - start < _MAX_LINES - 1:
        above = lines[start - 1].strip()
        length += len(above) + 1
        if (
            not above.strip(_DECORATION)
            or length > _MAX_LENGTH
            or _SENTENCE.search(above, len(above) - 6)
        ):
            break
        if quoted and quoted[start - 1]:
            break
        start -= 1
    for first in range(start, last + 1):
        if len(lines[first]) <= _MAX_LENGTH:
            text = " ".join((*lines[first:last], _CUT.sub("", lines[last])))
            text = _GLUED.sub(" ", fold(text.strip(_DECORATION)))
            yield _Candidate(first, text, len(text) if first == last else len(lines[first]))


def _matches_template(candidate: _Candidate) -> bool:
    dotted = candidate.text.endswith("...")  # as VMS and Outlook Express write
    if dotted:
        text = candidate.text.rstrip(". ")
        candidate = candidate._replace(text=text if text.endswith(">") else f"{text}:")
    return any(
        template.matches(candidate.text) and _is_plausible(template, candidate)
        for template in load_phrases().find_templates(candidate.text)
        if not dotted or template.end != ":"
    )


def _is_plausible(template: Template, candidate: _Candidate) -> bool:
    """Return whether the place of the author holds one, not a sentence like "then he wrote:"."""
    text = candidate.text
    if template.start:
        return candidate.is_one_line() or any(map(str.isdigit, text)) or "@" in text
    lead = text[: text.find(template.words[0] if template.words else template.end, 1)]
    words = lead.count(" ") + 1
    marked = "@" in lead or "<" in lead or any(map(str.isdigit, lead))
    if template.dated and WHEN.search(lead) is None:
        return False
    if len(lead) <= candidate.first:
        return words <= (_MAX_LEAD if marked else _MAX_NAME_WORDS)
    return marked and words <= _MAX_LEAD and _begins(text)


def _begins(text: str) -> bool:
    return _DATE_FIRST.match(text) is not None or _NAME_FIRST.match(text) is not None


def _has_shape(candidate: _Candidate) -> bool:
    """Return whether lines right above a quote hold a name or a date, without a known verb."""
    text = candidate.text
    if _NAMED.match(text) or _ADDRESS_FIRST.match(text):
        return candidate.is_one_line() or _begins(text)
    if not text.endswith(":") or _DATE.search(text) is None:
        return False
    opens = text[0].isdigit() or text.startswith(load_phrases().starts)
    return opens and sum(map(str.isdigit, text)) >= _MIN_DIGITS


# --- header blocks ---

_MAX_FIELD_NAME = 40  # characters of a field's name, or of a line like "Begin forwarded message:"
_MAX_SEPARATOR = 250  # characters
MAX_BLOCK = 16  # lines
_MAX_FOLDED = 4  # lines of one field, except for addresses
_MIN_KINDS = 3  # fields that differ
_FAR = 500  # lines from the head of a patch to its diff, with a long message and many files
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

_Kinds = dict[int, str]  # line -> kind


def separator_kind(line: str) -> str:
    """Return "original", "forwarded" or "forwarded_end" for "-----Original Message-----", or ""."""
    text = line.strip(" \t>")[:_MAX_SEPARATOR]
    return _phrase_kind(text.translate(_TO_HYPHENS)) if text[:2] in _RULES else ""


@lru_cache(maxsize=1024)
def _phrase_kind(text: str) -> str:
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


def _find_header_blocks(
    lines: list[str], own: list[int], quoted: bytearray, answers: bool
) -> dict[int, QuoteHead]:
    # with their separators, by their first line
    fields, separators = find_fields(lines, own)
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
                if head and head.kind == "original" and not (answers and quoted.find(1, 0, i) < 0):
                    head = _above_quote(head, lines, quoted)
            if head is not None:
                heads[max(start, done)] = head
                done = head.stop
    return heads


_FIELD_LINE = r"(?:[* \t]{0,3}+[^\s:：>*][^:：\n]{0,38}+[:：][^\n]*+\n(?:[ \t]++[^\s][^\n]*+\n)*+)"
#: Lines in a row that may be fields, each with the lines that continue it; `third` if they are more
#: than two. Fewer match too: to search again within them would take quadratic time.
_FIELDS_IN_A_ROW = re.compile(
    rf"^{_FIELD_LINE}(?:{_FIELD_LINE}(?P<third>{_FIELD_LINE}++)?+)?+", re.MULTILINE
)


def find_mail_head(text: str, has_above: bool, dated: bool = True) -> tuple[int, int] | None:
    """Return the start and end of a header block of Outlook in a text, with its separator.

    It names author, date, receiver and subject, or a separator stands above it. It has text above
    it: an answer. `has_above` says that there is some above the text itself. A forwarded message
    has none of it: it is new to the list. With `dated` false an address may stand for the date.
    """
    for block in _FIELDS_IN_A_ROW.finditer(text):
        if not block["third"]:
            continue
        start = block.start()
        rule_start, rule = _line_above(text, start)
        separator = separator_kind(rule) or ("rule" if _UNDERSCORES.match(rule.strip()) else "")
        if separator.startswith("forwarded") or _GIT_MAGIC.search(rule):
            continue
        lines = block[0].split("\n")
        fields = find_fields(lines, [i for i, line in enumerate(lines) if line.strip()])[0]
        dates = [lines[i] for i, kind in fields.items() if kind == "date"]
        wanted = {"from"} if separator else {"from", "to", "subject"}
        has_date = any(map(_may_be_date, dates)) if dates or dated else "@" in block[0]
        if not (has_date and wanted <= {*fields.values()}):
            continue
        if separator:
            start = rule_start
        if has_above or text[:start].strip():
            return start, block.end()
    return None


def _line_above(text: str, at: int) -> tuple[int, str]:
    """Return the last line before a line's start that is not blank, and where it begins."""
    while at > 0:
        start = text.rfind("\n", 0, at - 1) + 1
        if text[start:at].strip():
            return start, text[start : at - 1]
        at = start
    return 0, ""


def find_fields(lines: list[str], own: list[int]) -> tuple[_Kinds, _Kinds]:
    """Return the fields and the separators among lines: line -> kind."""
    phrases = load_phrases()
    fields, separators = {}, {}
    for i in own:
        line = lines[i]
        if ":" not in line and (line.isascii() or "：" not in line):
            continue
        if colon := _COLON.search(line, 1, _MAX_FIELD_NAME):
            name = line[: colon.start()].strip(" \t*").lower()
            name = name if name.isascii() else fold(name)
            if name in phrases.fields:
                fields[i] = phrases.fields[name]
            elif name.startswith(_OTHER_FIELDS):
                fields[i] = "other"
            elif name in phrases.begin and not line[colon.end() :].strip():
                separators[i] = "forwarded"
    return fields, separators


def _find_rules(lines: list[str], own: list[int]) -> _Kinds:
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

    It needs author, date and one more field; right above a quote author and one more
    are enough.
    """
    stop = _block_end(lines, fields, i)
    kinds = {fields[x] for x in range(i, stop) if x in fields}
    if (i and _GIT_MAGIC.search(lines[i - 1])) or _begins_patch(kinds, lines, stop):
        return i, QuoteHead(stop, "text")
    if {"to", "subject"} <= kinds and "from" not in kinds:
        start = _notes_start(lines, i)
        return start, QuoteHead(stop, "original") if start < i else None
    whole = "from" in kinds and len(kinds - {"other"}) >= _MIN_KINDS
    if whole and any(fields.get(x) == "date" and _may_be_date(lines[x]) for x in range(i, stop)):
        return i, QuoteHead(stop, "original")
    return i, _above_quote(QuoteHead(stop, "original"), lines, quoted) if {"from"} < kinds else None


def _begins_patch(kinds: set[str], lines: list[str], stop: int) -> bool:
    """Return whether fields are the head of a patch, pasted as `git format-patch` wrote it.

    No program quotes mail without its receiver.
    """
    is_head = kinds == {"from", "date", "subject"}
    return is_head and any(line.startswith("diff --git ") for line in lines[stop : stop + _FAR])


def _may_be_date(field: str) -> bool:
    """Return whether the value of a field may be a date: words without a digit explain one."""
    return (
        _DIGIT.search(field) is not None or len(re.split("[:：]", field, maxsplit=1)[1].split()) < 2
    )


def _above_quote(head: QuoteHead, lines: list[str], quoted: bytearray) -> QuoteHead | None:
    """Return the head as an attribution if a marked quote follows, else None."""
    stop = head.stop
    below = next((x for x in range(stop, min(stop + 3, len(lines))) if lines[x].strip()), None)
    return QuoteHead(stop, "attribution") if below is not None and quoted[below] else None


def _block_end(lines: list[str], fields: dict[int, str], first: int) -> int:
    last = first
    seen = {fields[first]}
    for x in range(first + 1, min(first + MAX_BLOCK, len(lines))):
        if x in fields:
            last = x
            seen.add(fields[x])
        elif not lines[x].strip():
            if fields.get(x + 1, "other") in seen | {
                "other"
            }:  # some put a blank line between fields
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


def find_quote_heads(
    lines: list[str], own: list[int], quoted: bytearray, answers: bool
) -> dict[int, QuoteHead]:
    """Return the possible announcements of a quote or a forwarded message by their first line.

    `own` are the visible lines that are neither quoted nor of a diff. A message that does not
    answer another quotes one only by marks that leave no doubt: an attribution above marked lines,
    or a separator.
    """
    marked = _find_attributions(lines, quoted)
    heads = {start: QuoteHead(stop, "attribution") for start, stop in marked.items()}
    if answers:
        unmarked = _find_unmarked_attributions(lines, own)
        heads = {start: QuoteHead(stop, "unmarked") for start, stop in unmarked.items()} | heads
    return heads | _find_header_blocks(lines, own, quoted, answers)


def count_unannounced(heads: dict[int, QuoteHead], quoted: bytearray) -> int:
    """Return the number of lines above the first announcement; of all lines without one.

    There a message that answers none quotes none: its marks are prompts, code, or of a document.
    """
    return min((i for i, head in heads.items() if head.kind != "text"), default=len(quoted))


_INLINE = re.compile("|".join(INLINE_PHRASES), re.IGNORECASE | re.MULTILINE)
_NAME_MARK = re.compile(r"\[([^\W\d_][^\[\]\d@]{1,40})\](?![(\[])")  # "[Jo]", "[Jo Roe]: "
_MIN_SHORT = 3  # letters of a short form of a name


def match_quote_head(body: BodyLines, i: int) -> LineBlock | None:
    """Match an attribution, header block or separator.

    If there is text above, which answers it and does not say that it goes on inline, and no marked
    quote below but one that has its own attribution in the answered mail, all the rest is an
    unmarked quote. Without text above, or by a separator, a header block is a forwarded message,
    which is new to the list and stays text. The same fields under git's magic line, or above a
    diff, begin a commit message.
    """
    head = body.quote_heads.get(i)
    if head is None or head.kind == "text":
        return None
    if head.kind in {"original", "unmarked"}:
        all_unmarked = body.quoted.find(1, i) < 0 or _quotes_mail_below(body, i)
        is_whole = all_unmarked and body.next_visible(head.stop) < len(body.lines)
        if body.text_above and is_whole:
            is_quote = not _goes_on_inline(body, i, head.stop)
            return LineBlock(head.stop, "attribution", quotes_rest=is_quote)
        if head.kind == "unmarked":
            return None
    return LineBlock(head.stop, "attribution")


def _goes_on_inline(body: BodyLines, i: int, stop: int) -> bool:
    """Return whether the text above line i says so, or the author's name marks lines below."""
    pairs = zip(body.texts[:i], body.kinds[:i], strict=True)
    above = "\n".join(text for text, kind in pairs if kind == "text")
    marks = map(_NAME_MARK.match, body.texts[stop:])
    named = any(mark and _names(mark[1], body.author) for mark in marks)
    return named or _INLINE.search(above) is not None


def _names(name: str, author: frozenset[str]) -> bool:
    words = name.casefold().replace(".", " ").split()
    return bool(words) and all(
        len(word) >= _MIN_SHORT and any(own.startswith(word) for own in author) for word in words
    )


def _quotes_mail_below(body: BodyLines, i: int) -> bool:
    """Return whether the first marked quote below has its own attribution in the answered mail.

    Apple Mail marks that too. Below fields the quote may begin that mail, or stand in a mail that
    the answered one quotes without marks. Below an attribution or a separator alone the answered
    mail has text above it.
    """
    head = body.quote_heads[i]
    first = body.quoted.find(1, head.stop)
    top = body.next_visible(head.stop)
    is_block = head.kind == "original" and head.stop > i + 1
    if _marks_attribution(body, first):
        return is_block or top < first
    if is_block and any(
        _is_unmarked(body.quote_heads[x], x) for x in body.quote_heads if top <= x < first
    ):
        return True
    for above in range(first - 1, max(first - _MAX_LINES - MAX_BLANKS, head.stop - 1), -1):
        own = body.quote_heads.get(above)
        if own is not None and own.kind == "attribution":
            is_below = top <= above if is_block else top < above
            return body.next_visible(own.stop) == first and is_below
    return False


def _is_unmarked(head: QuoteHead, i: int) -> bool:
    return head.kind == "unmarked" or (head.kind == "original" and head.stop > i + 1)


def _marks_attribution(body: BodyLines, i: int) -> bool:
    """Return whether a quote begins with an attribution of the depth of what it announces."""
    depths = []
    texts = []
    for line in body.texts[i : i + _MAX_LINES + MAX_BLANKS]:
        mark = _MARK.match(line)
        depths.append(mark[0].count(">") if mark else 0)
        texts.append(line[mark.end() :] if mark else line)
    text = texts[0] if is_attribution(texts[0]) else " ".join(texts[:2])
    same = [depth for depth, text in zip(depths, texts, strict=True) if text]
    return is_attribution(text) and len(same) > 2 and same[1] == same[0] == same[2]
