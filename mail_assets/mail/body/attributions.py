"""Find attributions ("On ... X wrote:"), the lines that tell who wrote what is quoted below.

An attribution is looked for upwards from where a quote begins, so prose that reads like one stays
text. Its words are those of `phrases`; right above a quote a name with its address, or a date,
is enough, whatever verb the author chose.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from mail_assets.mail.body.folding import fold
from mail_assets.mail.body.phrases import Template, load_phrases

_MAX_LENGTH = 330  # characters
_MAX_LINES = 4
_MAX_BLANKS = 3  # lines between an attribution and its quote
_MAX_NAME = 10  # words of a name without address or date
_MAX_LEAD = 24  # words of a name with address and date
_MIN_DIGITS = 5  # of a date with a day; "In 2019, they found:" has four
_DECORATION = " \t\xa0-=*_\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069"
_COLONS = frozenset(":：")
_ENDS = (":", "：", ">", "]", ")")  # what lines of any language end in
_ADDRESS = r"(?:<[^<>]{1,120}(?:@|\ at\ )[^<>]{1,120}>|\([^()]{1,80}@[^()]{1,80}\))"
# Jo Roe <jo@example.org>, 2026-01-05 10:11:
_NAMED = re.compile(rf"[^<>]{{0,80}}{_ADDRESS}[^<>:]{{0,40}}(?::[^<>:]{{0,20}}){{0,2}}:$")
_NAMED_BEHIND = re.compile(r"\S{1,80}@\S{1,80} \([^()]{2,60}\):$")  # jo@example.org (Jo Roe):
_DATED_ADDRESS = re.compile(rf"\d{{4}}([-/])\d\d?\1\d\d?,? [^<>]{{0,80}}{_ADDRESS}:?$")  # Gmail
_BRACKETED = re.compile(r"\[[A-Z][\w.'-]{0,30}(?: [A-Z][\w.'-]{0,30}){1,3}\]:?$")  # [Jo Roe]
_FROM = re.compile(r"[*]?From:[*]? {1,9}[^:]{2,100}$")  # alone above a quote
_DATE = re.compile(r"\b(?:19|20)\d\d\b|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}")
_DIGIT = re.compile(r"\d|[^\0-\x7f]")  # or what may become one when it is folded
_TIME = re.compile(r"\d[:.h時时点시] ?\d\d")
_CUT = re.compile(r"\s{0,3}\[(?:\.{2,4}|…|snip)\]\s{0,3}$")  # the quote's beginning was left out
_SENTENCE = re.compile(r"[!?:;：]$|[^\W\d]{4}\.$")  # the line is the end of one
_DATE_FIRST = re.compile(r"\W{0,3}(?:\w{1,12}[.,]{0,2} ){0,2}\d")
_NAME_FIRST = re.compile(r"[^\s<>]{1,30}(?: [^\s<>]{1,30}){0,4} ?<")

_QUOTE_BEGIN = re.compile(rb"\x00(?=\x01)")  # in a line's place 1 where it is quoted


class _Candidate(NamedTuple):
    """Lines from start on that may be one attribution, folded into one."""

    start: int
    text: str
    first: int  # characters of the first line; all where there is one

    def is_one_line(self) -> bool:
        return self.first >= len(self.text)


def is_attribution(line: str) -> bool:
    """Tell whether a line by itself reads like "On ... X wrote:"."""
    text = fold(line.strip(_DECORATION))
    return _matches_template(_Candidate(0, text, len(text)))


def find_attributions(lines: list[str], quoted: bytearray) -> dict[int, int]:
    """Return the attributions over marked quotes: the first line and the one behind each."""
    found = {}
    for begin in _QUOTE_BEGIN.finditer(quoted):
        above = last = begin.start()
        while last >= 0 and above - last < _MAX_BLANKS and not lines[last].strip():
            last -= 1
        start = _attribution_start(lines, quoted, last, blanks=above - last)
        if start is not None:
            found[start] = last + 1
    return found


def find_unmarked_attributions(lines: list[str], own: list[int]) -> dict[int, int]:
    """Return what could be attributions of an unmarked quote and end with one of the own lines.

    They stand alone, begin with a date or a name and tell the time, as programs write them.
    """
    found = {}
    for last in own:
        line = lines[last]
        if (
            (":" in line or "：" in line)
            and line.rstrip(_DECORATION)[-1:] in _COLONS
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
    """Tell whether lines below a blank one begin like a program's attribution, and tell a time."""
    start, text, _ = candidate
    alone = start == 0 or not lines[start - 1].strip()
    if not alone or _TIME.search(text) is None or _DATE.search(text) is None:
        return False
    return _begins(text) or text.startswith(load_phrases().starts)


def _attribution_start(
    lines: list[str], quoted: bytearray, last: int, *, blanks: int
) -> int | None:
    """Return the first line of an attribution that ends with line last; the longest counts."""
    if last < 0 or quoted[last]:
        return None
    tail = _CUT.sub("", lines[last][-_MAX_LENGTH:]).rstrip(_DECORATION)
    if blanks == 0 and (_BRACKETED.match(tail.strip()) or _FROM.match(tail)):
        return last
    if not tail.endswith(_ENDS + load_phrases().ends) and "news:" not in tail:
        return None
    for candidate in _join_lines(lines, quoted, last):
        if _matches_template(candidate) or _DATED_ADDRESS.match(candidate.text):
            return candidate.start
        if blanks <= 1 and _has_shape(candidate):
            return candidate.start
    return None


def _join_lines(lines: list[str], quoted: bytearray | None, last: int) -> Iterator[_Candidate]:
    """Yield what may be one attribution that ends with line last, the longest first."""
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
            text = fold(text.strip(_DECORATION))
            yield _Candidate(first, text, len(text) if first == last else len(lines[first]))


def _matches_template(candidate: _Candidate) -> bool:
    return any(
        template.matches(candidate.text) and _is_plausible(template, candidate)
        for template in load_phrases().find_templates(candidate.text)
    )


def _is_plausible(template: Template, candidate: _Candidate) -> bool:
    """Tell whether what stands for the author is one, not a sentence that ends like "he wrote:"."""
    text = candidate.text
    if template.start:
        return candidate.is_one_line() or any(map(str.isdigit, text)) or "@" in text
    lead = text[: text.find(template.words[0] if template.words else template.end, 1)]
    words = lead.count(" ") + 1
    marked = "@" in lead or "<" in lead or any(map(str.isdigit, lead))
    if len(lead) <= candidate.first:
        return words <= (_MAX_LEAD if marked else _MAX_NAME)
    return marked and words <= _MAX_LEAD and _begins(text)


def _begins(text: str) -> bool:
    """Tell whether a text of several lines begins with a date, or a name and an address."""
    return _DATE_FIRST.match(text) is not None or _NAME_FIRST.match(text) is not None


def _has_shape(candidate: _Candidate) -> bool:
    """Tell whether lines just above a quote name an author or a date, without a known verb."""
    text = candidate.text
    if _NAMED.match(text) or _NAMED_BEHIND.match(text):
        return candidate.is_one_line() or _begins(text)
    if not text.endswith(":") or _DATE.search(text) is None:
        return False
    opens = text[0].isdigit() or text.startswith(load_phrases().starts)
    return opens and sum(map(str.isdigit, text)) >= _MIN_DIGITS
