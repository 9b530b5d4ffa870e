"""Match announcements of a quote: attributions, header blocks and separators.

A header block is From, Sent, To and Subject as programs copy them above a message. Outlook and
similar programs put it above an answered message and leave that message unmarked. They also put it
above a forwarded message, but that text is new to the list. A separator decides between the two,
else the context (`match_quote_head`). Attributions are in attributions.py.
"""

import re
from functools import lru_cache

from mail_assets.mail.body.attributions import (
    DIGIT,
    MAX_BLANKS,
    MAX_LENGTH,
    MAX_LINES,
    find_attributions,
    find_run_on_attributions,
    find_unmarked_attributions,
    is_attribution,
)
from mail_assets.mail.body.lines import ATTRIBUTION, TEXT, BodyLines, LineBlock, QuoteHead, fold
from mail_assets.mail.body.phrases import INLINE_PHRASES, load_phrases

_COLON = re.compile("[:：]")
_MAX_FIELD_NAME = 40  # characters of a field's name, or of a line like "Begin forwarded message:"
_MAX_SEPARATOR = 250  # characters of a separator
MAX_BLOCK = 16  # lines of a header block
_MAX_FOLDED = 4  # lines of one field, except for addresses
_MIN_KINDS = 3  # different fields
_FAR = 500  # lines from the head of a patch to its diff, past a long message and many files
_MAX_GAP = 7  # lines from a separator to its first field; Lotus Notes names the author between
_OTHER_FIELDS = ("x-", "list-", "content-", "resent-", "mime-", "delivered-")
_DASHES = "".join(map(chr, (*range(0x2010, 0x2016), 0x2212)))  # ProtonMail used U+2010 in rules
_TO_HYPHENS = str.maketrans(_DASHES, "-" * len(_DASHES))
_RULE_STARTS = frozenset("-=*_ \t" + _DASHES)
_RULES = frozenset(mark * 2 for mark in "-=*_" + _DASHES)
_YAHOOS_INDENT = "    "  # of an attribution
_UNDERSCORES = re.compile(r"_{20,}+\s{0,9}$")
# the line above a message in an mbox file, by git or with the sender
_FROM_LINE = re.compile(
    r"From (?:[0-9a-f]{7,64} Mon Sep 17 00:00:00 2001|"
    r"\S{1,200} {1,2}[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d)"
)
# Hotmail wrote From: jo@example.orgTo: dev@example.orgDate: ...Subject: x
_HOTMAILS_FIELDS = ("From: ", "To: ", "Date: ", "Subject: ")
# >>> Jo Roe <jo@example.org> 01/05/26 3:05 AM >>>
_GROUPWISE = re.compile(
    r">>> ?\S[^\n]{1,160} \d{1,4}[-./]\d{1,2}[-./]\d{1,4} \d{1,2}:\d\d(?::\d\d)?"
    r"(?: ?[AaPp]\.?[Mm]\.?)? ?>>>\s{0,9}$"
)
# a line of Lotus Notes above To, cc and Subject: "Jo Roe on 01/05/2000 10:11:12 AM"
_NOTES_DATE = re.compile(
    r"(?:\S[^\n]{0,120}? \w{1,4} )?\d{1,4}[-./]\d{1,2}[-./]\d{1,4},? \d{1,2}[:.]\d\d"
    r"(?:[:.]\d\d)?(?: ?[AaPp]\.?[Mm]\.?)?\s{0,9}$"
)
# a table of Lotus Notes: a label at the end of a line, a date, and a line of its author
_MAX_LABEL = 12  # letters
_TABLE_LABEL = re.compile(rf"(?:^|(?<=\s\s))([^\W\d_]{{1,{_MAX_LABEL}}})$")
_TABLE_DATE = re.compile(
    r"(?<![\d.])\d{1,4}[-./]\d{1,2}[-./]\d{1,4},? {1,3}(?:[AaPp][Mm] )?\d{1,2}[:.]\d\d"
)
_TABLE_SENDER = re.compile(r"@| at |>$|^(?:Sent by|Inactive hide details)\b", re.IGNORECASE)
_TABLE_INDENT = 8  # blanks in front of a cell of the left column
_MAX_TABLE = 60  # lines from "To" to "Subject", past many receivers
_MAX_TABLE_LINE = 100  # characters at the end of a line that may have a label
_MAX_BLOCK_ABOVE = 14  # lines of the author above "To"

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


def _find_header_blocks(body: BodyLines, own: list[int], answers: bool) -> dict[int, QuoteHead]:
    # header blocks with their separators, by first line
    lines, quoted = body.lines, body.quoted
    fields, separators = find_fields(lines, own)
    separators |= _find_rules(lines, own)
    heads = _find_notes_tables(body, own)
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
#: Lines in a row that may be fields, each with its continuation lines; `third` is set if there are
#: more than two. Shorter runs match too: searching inside them again would take quadratic time.
_FIELDS_IN_A_ROW = re.compile(
    rf"^{_FIELD_LINE}(?:{_FIELD_LINE}(?P<third>{_FIELD_LINE}++)?+)?+", re.MULTILINE
)


def is_groupwise(line: str) -> bool:
    """Return whether a line is a GroupWise attribution, which stands above an unmarked quote."""
    return line.startswith(">>>") and _GROUPWISE.match(line) is not None


def find_mail_head(text: str, has_above: bool, dated: bool = True) -> tuple[int, int] | None:
    """Return the start and end of an Outlook header block in a text, with its separator.

    The block names author, date, receiver and subject; or a separator above it replaces some of
    them. There is text above it, because the message is an answer. Above a forwarded message there
    is none, and the block does not count: that text is new to the list.

    `has_above`: there is text above `text` itself. With `dated` false an address may replace the
    date.
    """
    for block in _FIELDS_IN_A_ROW.finditer(text):
        if not block["third"]:
            continue
        start = block.start()
        rule_start, rule = _line_above(text, start)
        separator = separator_kind(rule) or ("rule" if _UNDERSCORES.match(rule.strip()) else "")
        if separator.startswith("forwarded") or _FROM_LINE.search(rule):
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
    """Return the start and text of the last visible line above a line's start, or (0, "")."""
    while at > 0:
        start = text.rfind("\n", 0, at - 1) + 1
        if text[start:at].strip():
            return start, text[start : at - 1]
        at = start
    return 0, ""


def find_fields(lines: list[str], own: list[int]) -> tuple[_Kinds, _Kinds]:
    """Return the fields and the separators among the lines `own`, each as line -> kind."""
    phrases = load_phrases()
    fields, separators = {}, {}
    for i in own:
        line = lines[i]
        if line.isascii():
            colon = line.find(":", 1, _MAX_FIELD_NAME)
        else:
            found = _COLON.search(line, 1, _MAX_FIELD_NAME)
            colon = found.start() if found else -1
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


def _is_run_on(line: str) -> bool:
    """Return whether a line that begins with a field has all others too, right after the values."""
    if not all(name in line for name in _HOTMAILS_FIELDS):
        return False
    places = (line.index(name) for name in _HOTMAILS_FIELDS)
    return (
        DIGIT.search(line) is not None and sum(not line[at - 1 : at].isspace() for at in places) > 2
    )


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
    """Return the block that begins with a separator; a rule of underscores needs fields below."""
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

    It needs author, date and one more field. Right above a quote, the author and one more are
    enough.
    """
    if _is_run_on(lines[i]):
        return i, QuoteHead(i + 1, "run-on")
    stop = _block_end(lines, fields, i)
    kinds = {fields[x] for x in range(i, stop) if x in fields}
    if (i and _FROM_LINE.search(lines[i - 1])) or _begins_patch(kinds, lines, stop):
        return i, QuoteHead(stop, "text")
    if {"to", "subject"} <= kinds and "from" not in kinds:
        start = _notes_start(lines, i)
        return start, QuoteHead(stop, "original") if start < i else None
    whole = "from" in kinds and len(kinds - {"other"}) >= _MIN_KINDS
    if whole and any(fields.get(x) == "date" and _may_be_date(lines[x]) for x in range(i, stop)):
        return i, QuoteHead(stop, "original")
    return i, _above_quote(QuoteHead(stop, "original"), lines, quoted) if {"from"} < kinds else None


def _begins_patch(kinds: set[str], lines: list[str], stop: int) -> bool:
    """Return whether fields are the head of a format-patch mail: they name no receiver."""
    is_head = kinds == {"from", "date", "subject"}
    return is_head and any(line.startswith("diff --git ") for line in lines[stop : stop + _FAR])


def _may_be_date(field: str) -> bool:
    """Return whether the value of a field may be a date, not several words without a digit."""
    return DIGIT.search(field) is not None or len(_COLON.split(field, maxsplit=1)[1].split()) < 2


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
            }:  # some programs put a blank line between fields
                break
        elif x - last > _MAX_FOLDED and "@" not in lines[x] and ";" not in lines[x]:
            break
    stop = last + 1
    while stop < len(lines) and stop - last <= _MAX_FOLDED and lines[stop][:1] in {" ", "\t"}:
        if not lines[stop].strip():
            break
        stop += 1
    return stop


def _find_notes_tables(body: BodyLines, own: list[int]) -> dict[int, QuoteHead]:
    """Return the header blocks that Lotus Notes writes as a table, by first line.

    In the plain text of the table "To", "cc" and "Subject" end their lines, and the values follow
    in the next lines. Author and date stand to the left or above.
    """
    lines, texts, names = body.lines, body.texts, load_phrases().fields
    ends: dict[int, str] = {}
    # most lines are longer than a label and have no two blanks in front of their last word
    may_be = [
        i
        for i in own
        if (end := texts[i][-_MAX_LABEL - 2 :])[-1].isalpha()
        and (len(end) <= _MAX_LABEL or "  " in end or not end.isprintable())
    ]
    for i in may_be:
        label = _TABLE_LABEL.search(lines[i].rstrip()[-_MAX_TABLE_LINE:])
        if label and fold(label[1]) in names:
            ends[i] = names[fold(label[1])]
    heads: dict[int, QuoteHead] = {}
    stop = 0
    for i, kind in ends.items():
        if kind != "to":
            continue
        below = range(i + 1, min(i + _MAX_TABLE, len(lines)))
        subject = next((x for x in below if ends.get(x) == "subject"), i)
        if [ends[x] for x in range(i + 1, subject) if x in ends] != ["cc"]:
            continue
        start = _table_start(lines, i)
        if any(map(_TABLE_DATE.search, lines[start:subject])):
            # many tables may share one paragraph
            stop = stop if subject + 1 < stop else _table_end(lines, subject)
            heads[start] = QuoteHead(stop, "original")
    return heads


def _table_start(lines: list[str], i: int) -> int:
    """Return the first line of the author above "To" in a table of Lotus Notes."""
    start = i
    for x in range(i - 1, max(i - _MAX_BLOCK_ABOVE, -1), -1):
        line = lines[x].strip()
        is_cell = len(lines[x]) - len(lines[x].lstrip()) >= _TABLE_INDENT
        if line and (is_cell or _TABLE_DATE.search(line) or _TABLE_SENDER.search(line)):
            start = x
        elif line:
            break
    return start


def _table_end(lines: list[str], i: int) -> int:
    """Return the line below the value of the subject, which may be wrapped."""
    x = i + 1
    while x < len(lines) and not lines[x].strip():
        x += 1
    while x < len(lines) and lines[x].strip():
        x += 1
    return x


def _notes_start(lines: list[str], i: int) -> int:
    """Return the first line that Lotus Notes writes above the fields at i, or i without one."""
    for x in range(i - 1, max(i - _MAX_GAP, -1), -1):
        if _NOTES_DATE.match(lines[x].strip()):
            while x > 0 and i - x < _MAX_GAP and lines[x - 1].strip() and "@" in lines[x - 1]:
                x -= 1
            return x
    return i


def find_quote_heads(body: BodyLines, own: list[int], answers: bool) -> dict[int, QuoteHead]:
    """Return the possible announcements of a quote or a forwarded message, by first line.

    `own` are the visible lines outside of quotes and diffs. In a message that answers no other,
    only certain ones count: an attribution above marked lines, or a separator.
    """
    lines, quoted = body.lines, body.quoted
    marked = find_attributions(lines, quoted)
    heads = {start: QuoteHead(stop, "attribution") for start, stop in marked.items()}
    if answers:
        unmarked = find_unmarked_attributions(lines, own)
        heads = {start: QuoteHead(stop, "unmarked") for start, stop in unmarked.items()} | heads
        pointed = [i for i in own if ">" in lines[i]]
        run_on = find_run_on_attributions(lines, pointed, quoted)
        heads |= {i: QuoteHead(i + 1, "run-on") for i in run_on}
        heads |= {i: QuoteHead(i + 1, "unmarked") for i in pointed if is_groupwise(lines[i])}
    return heads | _find_header_blocks(body, own, answers)


def count_unannounced(heads: dict[int, QuoteHead], quoted: bytearray) -> int:
    """Return the number of lines above the first announcement, or of all lines without one.

    In a message that answers no other, marks on these lines are prompts, code or part of a
    document.
    """
    return min((i for i, head in heads.items() if head.kind != "text"), default=len(quoted))


_INLINE = re.compile("|".join(INLINE_PHRASES), re.IGNORECASE | re.MULTILINE)
_MARK = re.compile(r"(?:>[ \t]?)+")
_NAME_MARK = re.compile(r"\[([^\W\d_][^\[\]\d@]{1,40})\](?![(\[])")  # "[Jo]", "[Jo Roe]: "
_MIN_SHORT = 3  # minimum letters of a short form of a name


def match_quote_head(body: BodyLines, i: int) -> LineBlock | None:
    """Match an attribution, header block or separator.

    The whole rest is an unmarked quote under three conditions: there is text above, which is the
    answer; that text does not announce inline answers; and there is no marked quote below, except
    one with its own attribution in the answered mail.

    Without text above, or with a separator, a header block begins a forwarded message. That text is
    new to the list and stays text. The same fields under git's magic line, or above a diff, begin a
    commit message.
    """
    head = body.quote_heads.get(i)
    if head is None or head.kind == "text":
        return None
    if head.kind in {"original", "unmarked", "run-on"}:
        all_unmarked = (
            head.kind == "run-on"
            or _is_yahoos(body, i)
            or body.quoted.find(1, head.stop) < 0
            or _quotes_mail_below(body, i)
        )
        is_whole = all_unmarked and body.next_visible(head.stop) < len(body.lines)
        if body.text_above and is_whole:
            is_quote = not _goes_on_inline(body, i, head.stop)
            return LineBlock(head.stop, ATTRIBUTION, quotes_rest=is_quote)
        if head.kind != "original":
            return None
    return LineBlock(head.stop, ATTRIBUTION)


def _is_yahoos(body: BodyLines, i: int) -> bool:
    """Return whether an attribution is by Yahoo, which indents it and never marks the quote."""
    head = body.quote_heads[i]
    top = body.next_visible(head.stop)
    if head.kind != "unmarked" or not head.stop < top < len(body.lines) or body.quoted[top]:
        return False
    is_indented = [body.lines[x].startswith(_YAHOOS_INDENT) for x in (i, top)]
    return is_indented == [True, False]


def _goes_on_inline(body: BodyLines, i: int, stop: int) -> bool:
    """Return whether inline answers are announced above line i or marked from line `stop` on.

    The author's name in brackets marks such answers. Text that was searched for an earlier
    announcement is not searched again.
    """
    if not body.says_inline:
        new = slice(body.read_to, i)
        pairs = zip(body.texts[new], body.kinds[new], strict=True)
        above = "\n".join(text for text, kind in pairs if kind == TEXT)
        body.says_inline, body.read_to = _INLINE.search(above) is not None, i
    if body.last_named is None:
        marks = enumerate(map(_NAME_MARK.match, body.texts))
        named = (x for x, mark in marks if mark and _names(mark[1], body.author))
        body.last_named = max(named, default=-1)
    return body.says_inline or body.last_named >= stop


def _names(name: str, author: frozenset[str]) -> bool:
    words = name.casefold().replace(".", " ").split()
    return bool(words) and all(
        len(word) >= _MIN_SHORT and any(own.startswith(word) for own in author) for word in words
    )


def _quotes_mail_below(body: BodyLines, i: int) -> bool:
    """Return whether the first marked quote below belongs to the answered mail.

    Such a quote has its own attribution in the answered mail. There are several cases:

    * Apple Mail marks that attribution too.
    * Below header fields, the answered mail may begin with the quote.
    * Below header fields or an attribution, the quote may stand in a mail that the answered mail
      quotes without marks.
    * Below an attribution or a separator alone, the answered mail has text above its quote.
    * Unmarked text below header fields and a blank line belongs to the answered mail, and then its
      quote does too.
    """
    head = body.quote_heads[i]
    first = body.quoted.find(1, head.stop)
    top = body.next_visible(head.stop)
    is_block = head.kind == "original" and head.stop > i + 1
    if is_block and _is_letter(body, head.stop, first):
        return True
    if _marks_attribution(body, first):
        return is_block or top < first
    if _marks_header(body, first):
        return top < first
    if is_block or head.kind == "unmarked":
        below = range(top + (not is_block), first)
        if any(_is_unmarked(body.quote_heads.get(x), x) for x in below):
            return True
    for above in range(first - 1, max(first - MAX_LINES - MAX_BLANKS, head.stop - 1), -1):
        own = body.quote_heads.get(above)
        if own is not None and own.kind == "attribution":
            is_below = top < above or (top == above and (is_block or _is_nested(body, head, first)))
            return body.next_visible(own.stop) == first and is_below
    return False


def _is_letter(body: BodyLines, i: int, first: int) -> bool:
    """Return whether unmarked text follows the fields that end at line i and their wrapped rest."""
    rest = next((x for x in range(i, min(i + _MAX_FOLDED, first)) if not body.texts[x]), first)
    return body.next_visible(rest) < first


def _is_nested(body: BodyLines, head: QuoteHead, first: int) -> bool:
    """Return whether a second attribution, right below the first, belongs to the unmarked mail.

    If the program marks the mail, the quote below the second attribution has two marks, not one.
    """
    mark = _MARK.match(body.texts[first])
    is_single = mark[0].count(">") == 1 if mark else body.texts[first].startswith("|")
    return head.kind == "unmarked" and is_single


def _is_unmarked(head: QuoteHead | None, i: int) -> bool:
    if head is None:
        return False
    return head.kind == "unmarked" or (head.kind == "original" and head.stop > i + 1)


def _marks_attribution(body: BodyLines, i: int) -> bool:
    """Return whether a quote begins with an attribution as deep as the lines that it announces."""
    depths = []
    texts = []
    for line in body.texts[i : i + MAX_LINES + MAX_BLANKS]:
        line = line[:MAX_LENGTH].replace("&gt;", ">")
        mark = _MARK.match(line)
        depths.append(mark[0].count(">") if mark else 0)
        texts.append(line[mark.end() :] if mark else line)
    text = texts[0] if is_attribution(texts[0]) else " ".join(texts[:2])
    same = [depth for depth, text in zip(depths, texts, strict=True) if text]
    return is_attribution(text) and len(same) > 2 and 0 < same[0] == same[1] == same[2]


def _marks_header(body: BodyLines, i: int) -> bool:
    """Return whether a quote begins with the header block or the separator of another mail."""
    below = body.texts[i : i + MAX_LINES + MAX_BLANKS]
    texts = [_MARK.sub("", line[:MAX_LENGTH], count=1) for line in below]
    visible = [x for x, text in enumerate(texts) if text.strip()]
    kinds = {*find_fields(texts, visible)[0].values()} - {"other"}
    return len(kinds) >= _MIN_KINDS or separator_kind(texts[0]) == "original"
