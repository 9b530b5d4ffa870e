"""Match attributions: "On ... X wrote:".

The search starts at the beginning of a quote and goes upwards, so prose that looks like an
attribution stays text. The words of attributions are in `phrases`. Right above a quote, a name with
an address or a date is enough, with any verb.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from mail_assets.mail.body.lines import fold
from mail_assets.mail.body.phrases import Template, load_phrases

MAX_LENGTH = 330  # characters of an attribution
_MAX_ABOVE = 24  # characters of a name or a closing right above an attribution
MAX_LINES = 4  # lines of an attribution
MAX_BLANKS = 3  # lines between an attribution and its quote
_MAX_NAME_WORDS = 10  # words of a name without address or date
_MAX_LEAD = 24  # words of a name with address and date
_MIN_DIGITS = 5  # digits of a date with a day; "In 2019, they found:" has four
_DECORATION = " \t\xa0-=*_\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069"
_QUOTATION = frozenset("\"'“”„«»‘’")
_COLONS = frozenset(":：")
_OPEN_ENDS = frozenset(",:;：，")  # the sentence continues in the next line
_ENDS = (":", "：", ">", "]", "】", ")", "...", "…")  # ends of attributions in any language
_TIME = r"\d[:.h時时点시] ?\d\d"
_A_TIME = re.compile(_TIME)
_MAY_BE_TIME = re.compile(r"\d\s*[:.hH]\s*\d\d|[^\0-\x7f]")  # before `fold`
# in angle brackets also with pipermail's word for `@` in any language: <jo en example.org>
_ADDRESS = (
    r"(?:<[^<>]{1,120}(?:@|\ at\ )[^<>]{1,120}>|\([^()]{1,80}@[^()]{1,80}\)"
    r"|<[^<>\s]{1,80}\ [^<>\s]{1,8}\ [\w-]{1,80}\.[\w.-]{2,80}>)"
)
_AN_ADDRESS = re.compile(_ADDRESS)
# Jo Roe <jo@example.org>, 2026-01-05 10:11:
_NAMED = re.compile(rf"[^<>]{{0,80}}{_ADDRESS}[^<>:]{{0,40}}(?::[^<>:]{{0,20}}){{0,2}}:$")
_ADDRESS_FIRST = re.compile(r"\S{1,80}@\S{1,80} \([^()]{2,60}\):$")  # jo@example.org (Jo Roe):
_DATED_ADDRESS = re.compile(rf"\d{{4}}([-/])\d\d?\1\d\d?,? [^<>]{{0,80}}{_ADDRESS}:?$")  # Gmail
# Jo Roe [2026-01-05 10:11]:
_DATED_NAME = re.compile(
    rf"[^\W\d][^\d<>()\[\]:]{{1,60}} [\[(][^\[\]()]{{0,20}}\d[-./]\d[^\[\]()]{{0,20}}"
    rf"{_TIME}[^\[\]()]{{0,20}}[\])]:$"
)
# [Jo Roe] or * Jo Roe: or From Jo Roe:
_BRACKETED = re.compile(
    r"(?:\[(?=[^\]]{1,130}\]:?$)|(?:\*|>?From) (?=[^:]{1,130}:$))"
    r"[A-Z][\w.'-]{0,30}(?: [A-Z][\w.'-]{0,30}){1,3}\]?:?$"
)
_FROM = re.compile(r"[*]?From:[*]? {1,9}[^:]{2,100}$")  # alone above a quote
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)|\d{1,4}[-./] ?\d{1,2}[-./] ?\d{1,4}")
DIGIT = re.compile(r"\d|[^\0-\x7f]")  # a digit, or a character that `fold` may turn into one
# a year, a date in numbers, or a time
WHEN = re.compile(rf"(?<!\d)(?:19|20)\d\d(?!\d)|\d{{1,4}}[-./]\d{{1,2}}[-./]\d{{1,4}}|{_TIME}")
_RULED = re.compile(r"\s{0,3}-{4} \S[^\n]{0,300} -{3,4}\s{0,3}$")  # Zoho: "---- On ... wrote ----"
_CUT = re.compile(r"\s{0,3}\[(?:\.{2,4}|…|snip)\]\s{0,3}$")  # the quote's beginning was left out
# "[stuff deleted]" or "<snip>" above a quote
_NOTE = re.compile(
    r"\s{0,3}(?:\[[^\[\]]{3,160}\]|(?i:[\W_]{0,9}snip(?:ped)?\b[^:>]{0,30}[\W_]{0,9}))\s{0,3}$"
)
_SENTENCE = re.compile(r"[!?:;：]$|[^\W\d]{4}\.$")  # the end of a sentence
_GLUED = re.compile(r"(?<=>)(?=[^\W\d_])")  # "<jo@example.org>wrote:", by Gmail until 2013
# Yahoo's web mail until 2013: Jo Roe <jo@example.org> wrote: the quote's first words
_RUN_ON = re.compile(
    r"[ \t]{0,8}[\w\"'“][^<>:]{0,79}<[^<>:\s]{1,80}(?:@| [^<>:\s]{1,4} )[^<>:\s]{1,80}>"
    r"[^<>:]{1,30}:(?=[ \t]+[^-=*_\s]|[^\W\d_])"
)
_DATE_FIRST = re.compile(r"\W{0,3}(?:\w{1,12}[.,]{0,2} ){0,2}\d")
_NAME_FIRST = re.compile(r"[^\s<>]{1,30}(?: [^\s<>]{1,30}){0,4} ?<")

_QUOTE_BEGIN = re.compile(rb"\x00(?=\x01)")  # 1 for a quoted line, as in `quoted`


class _Candidate(NamedTuple):
    """Lines that may form one attribution, folded into one text."""

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
    """Return whether a line ends like an attribution; a quick pre-check."""
    return line.rstrip(_DECORATION).endswith(_ENDS + load_phrases().ends)


def find_attributions(lines: list[str], quoted: bytearray) -> dict[int, int]:
    """Return the attributions above marked quotes: first line -> line after the last one."""
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


def find_unmarked_attributions(lines: list[str], own: list[int]) -> dict[int, int]:
    """Return possible attributions of unmarked quotes: first line -> line after the last one.

    `own` are the lines that may end one. As programs write it, such an attribution stands alone,
    begins with a date or a name, and contains a time.
    """
    found = {}
    for last in own:
        line = lines[last]
        if (":" in line or "：" in line) and (
            line.rstrip(_DECORATION)[-1:] in _COLONS or _RULED.match(line)
        ):
            text = "\n".join(lines[max(last - MAX_LINES + 1, 0) : last + 1])
            if not (
                ">" in line or _MAY_BE_TIME.search(text) or ("@" in line and DIGIT.search(text))
            ):
                continue
            for candidate in _join_lines(lines, None, last):
                if (
                    _is_dated(lines, candidate)
                    and (_matches_template(candidate) or _NAMED.match(candidate.text))
                ) or (_is_addressed(lines, candidate) and _matches_template(candidate)):
                    found[candidate.start] = last + 1
                    break
    return found


def _is_dated(lines: list[str], candidate: _Candidate) -> bool:
    """Return whether lines are an attribution with a time; below a sentence, with an address."""
    start, text, _ = candidate
    above = lines[start - 1].strip() if start else ""
    alone = len(above) <= _MAX_ABOVE or lines[start][:4].isspace()
    whole = candidate.is_one_line() and _AN_ADDRESS.search(text) and above[-1:] not in _OPEN_ENDS
    if not (alone or whole) or _A_TIME.search(text) is None or _DATE.search(text) is None:
        return False
    return _begins(text) or text.startswith(load_phrases().starts)


def find_run_on_attributions(lines: list[str], pointed: list[int], quoted: bytearray) -> list[int]:
    """Return the lines that begin with an attribution and continue with the quote itself.

    `pointed` are the author's lines that contain a ">".
    """
    return [
        i
        for i in pointed
        if (match := _RUN_ON.match(lines[i]))
        and len("".join(lines[i - 1 : i]).strip()) <= _MAX_ABOVE
        and is_attribution(match[0])
        and _begins_quote(lines[i][match.end() :], quoted[i + 1 : i + 2])
    ]


def _begins_quote(text: str, quoted_below: bytearray) -> bool:
    """Return whether the text after an attribution begins the quote: no marked lines follow."""
    text = text.strip()
    return 1 not in quoted_below or text.startswith(">") or is_attribution(text)


def _is_addressed(lines: list[str], candidate: _Candidate) -> bool:
    """Return whether a single line has a name and its address, without quotation marks below it."""
    start, text, _ = candidate
    above = lines[start - 1].strip() if start else ""
    below = next((line for line in lines[start + 1 : start + 1 + MAX_BLANKS] if line.strip()), "")
    return (
        candidate.is_one_line()
        and len(above) <= _MAX_ABOVE
        and (text[:1].isalnum() or text[:1] in _QUOTATION)
        and _NAMED.match(text) is not None
        and below.lstrip()[:1] not in _QUOTATION
    )


def attribution_start(lines: list[str], quoted: bytearray, last: int, *, blanks: int) -> int | None:
    """Return the first line of the longest attribution that ends with line `last`."""
    if last < 0 or quoted[last]:
        return None
    tail = _without_cut(lines[last][-MAX_LENGTH:]).rstrip(_DECORATION)
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
    while start > 0 and last - start < MAX_LINES - 1:
        above = lines[start - 1].strip()
        length += len(above) + 1
        if (
            not above.strip(_DECORATION)
            or length > MAX_LENGTH
            or _SENTENCE.search(above, len(above) - 6)
        ):
            break
        if quoted and quoted[start - 1]:
            break
        start -= 1
    for first in range(start, last + 1):
        if len(lines[first]) <= MAX_LENGTH:
            text = " ".join((*lines[first:last], _without_cut(lines[last])))
            text = fold(text.strip(_DECORATION))
            text = _GLUED.sub(" ", text) if ">" in text else text
            yield _Candidate(first, text, len(text) if first == last else len(lines[first]))


def is_cut(text: str) -> bool:
    """Return whether a text only says that the beginning of a quote was left out."""
    return bool(_CUT.match(text.strip()))


def _without_cut(line: str) -> str:
    return _CUT.sub("", line) if "[" in line else line


def _matches_template(candidate: _Candidate) -> bool:
    dotted = candidate.text.endswith("...")  # by VMS and Outlook Express
    if dotted:
        text = candidate.text.rstrip(". ")
        candidate = candidate._replace(text=text if text.endswith(">") else f"{text}:")
    return any(
        template.matches(candidate.text) and _is_plausible(template, candidate)
        for template in load_phrases().find_templates(candidate.text)
        if not dotted or template.end != ":"
    )


def _is_plausible(template: Template, candidate: _Candidate) -> bool:
    """Return whether the author's place in a template holds a name, not words like "then he"."""
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
    if _DATED_NAME.match(text):
        return candidate.is_one_line()
    if _NAMED.match(text) or _ADDRESS_FIRST.match(text):
        return candidate.is_one_line() or _begins(text)
    if not text.endswith(":") or _DATE.search(text) is None:
        return False
    opens = text[0].isdigit() or text.startswith(load_phrases().starts)
    return opens and sum(map(str.isdigit, text)) >= _MIN_DIGITS
