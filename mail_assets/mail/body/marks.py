"""Find quoted lines by their marks.

Quote marks are "> ", "JD> " and names by Supercite; other_marks.py has those that need more than a
mark. Lines of the author's own sessions and escaped lines are not quoted. The ends of quoted lines
that a mail program wrapped again are.
"""

import re
from collections.abc import Iterable
from itertools import compress

from mail_assets.mail.body.attributions import is_attribution, may_attribute
from mail_assets.mail.body.lines import PATCH, BodyLines, is_sentence
from mail_assets.mail.body.other_marks import MIN_WRAPPED, mark_other_lines, unescape
from mail_assets.mail.body.quotes import MAX_BLOCK, find_fields, is_groupwise, separator_kind

_PROMPTS = r"(?i:(?:my|p)?sql|gdb|lldb|dbx|s?ftp|irb|perl|idl|ghci|grub|boot|hive)>"
# "> ", ">> ", "JD> ", in any script; a prompt such as "psql> " is not a quote mark
_QUOTE = re.compile(
    rf"[ \t]{{0,3}}(?:[>＞]|(?!{_PROMPTS})[^\W\d_]{{1,4}}[>＞](?=[>＞ \t]|$)"
    r"|›(?=[›\s]|$)|…\[[^\]]{1,40}\]…$)"  # a Usenet archive: "…[4 more quoted lines]…"
)
_OTHER_SIGNS = ("＞", "›", "…[")
# Supercite, https://www.gnu.org/software/emacs/manual/html_mono/sc.html, has four blanks and a name
_NAME_MARK = re.compile(rf"[ \t]{{0,8}}(?!{_PROMPTS})([^\W\d_][^\W_]{{0,29}})[>＞]+[ \t]+(?=\S)")
# attribution of Supercite: >>>>> "JD" == Jo Doe <jo@x.org> writes:
_CITER = re.compile(r'([> \t]{0,8})"([^"\s]{1,30})" == ')
_EXPLAINED = "prefixed by >>"  # a build robot marks compiler messages so
_MAX_INITIALS = 4  # letters
_MAX_NAMES = 50  # names that mark quotes in one mail, since each line is compared with all
_PROMPT = re.compile(r"[ \t]{0,3}>>>(?: |$)")  # prompt of Python
# quotes of depth 2 and more; ">>>> " and "> >>> " may be quoted prompts
_NESTED = re.compile(r"[ \t]{0,3}(?:>>(?!>)|> >(?!>>))")
# a session of R or S: a command at its prompt, lines that continue it, and what R prints below
_R_PROMPT = re.compile(r"[ \t]{0,3}[RS]?>(?: (?![ \t]?>)|$)")
_R_COMMAND = re.compile(
    r"\s?(?:\s*$|[\"'(\d#{}?!-]|[\w.]+(?:@|\[|\$|::|\s*(?:$|[(%*/+^~-]|<[-<]|=)))"
)
_R_CONTINUED = re.compile(r"[ \t]{0,3}\+(?: |$)")
_R_OUTPUT = re.compile(
    r"[ \t]*+(?:\[\[?1\]|\[1,\]|\[,1\]|Error(?: in |:)|Warning messages?:|Call:$|"
    r"(?:NULL|(?:numeric|character|integer|logical|list)\(0?\))[ \t]*$)(?![^\n]*://)"
)
_RUN = re.compile(rb"\x01+")
_MARKS = re.compile(r"[ \t]{0,3}[>＞›](?:[ \t]?[>＞›])*")
_AMBIGUOUS = (">From ", ">>>")
_ABOVE_HOLE = re.compile(rb"\x01(?=\x00\x01)")  # 1 for a quoted line, as in `quoted`
_LAST_QUOTED = re.compile(rb"\x01(?=\x00)")
_LINK = re.compile(r"[ \t]{0,8}[<(]?https?://\S+[ \t]*$")
_LAST_UNMARKED = re.compile(rb"\x00(?=\x01)")
_MAX_WRAPPED = 80  # maximum length of a line that was wrapped, in characters
_CITED = re.compile(r"[ \t]{0,8}[^\W\d_]{1,30}>|[ \t]{1,8}>|\s*$")  # line below an attribution
_CITING = ">>>>> "
_CITED_VERBS = (" writes:", " wrote:", " said:")
_WRAPPED_AT = 70  # columns: mail programs wrap at 72 or more, web mail at fewer
_MIN_BLANKS = 6  # between the words of a full line
_REST = re.compile(r"[ \t]*\w[^\n]{0,28}(?<!:)[ \t]*$")  # an attribution ends in a colon
_NO_POINTS = re.compile(rb"[^>\n]+")
_POINT = re.compile(b">")
_POINTS = re.compile(b">+")


def mark_quoted_lines(body: BodyLines, *, answers: bool = True) -> None:
    """Set `quoted` to 1 for each line with a quote mark; lines of a patch keep 0.

    `answers`: the message answers another, so more marks count.
    """
    quoted = body.quoted
    pointed = _pointed_lines(body)
    _mark_usual(body, pointed)
    for i in _signed_marks(body):
        quoted[i] = 0
    has_marks = 1 in quoted
    for start, stop in (*_runs_in_python(body), *_runs_in_r(body)):
        quoted[start:stop] = bytes(stop - start)
    _unmark(body)
    mark_other_lines(body, pointed, has_marks=has_marks, answers=answers)
    for find in (_wrapped_rests, _lone_links, _last_rests, _lost_beginnings):
        for i in find(body):
            quoted[i] = 1


def _pointed_lines(body: BodyLines) -> list[int]:
    """Return the lines that have a sign of quotes, but do not begin with ">"."""
    lines, whole = body.lines, body.whole
    has_others = any(sign in whole for sign in _OTHER_SIGNS)
    if not has_others and ">" not in whole:
        return []
    signs = (">", *_OTHER_SIGNS) if has_others else (">",)
    runs = [run.span() for run in _NO_POINTS.finditer(body.firsts)]
    return sorted({i for sign in signs for run in runs for i in range(*run) if sign in lines[i]})


def _mark_usual(body: BodyLines, pointed: list[int]) -> None:
    """Mark the lines that begin with a common mark, or with names by Supercite."""
    lines, quoted = body.lines, body.quoted
    for run in _POINTS.finditer(body.firsts):
        start, stop = run.span()
        quoted[start:stop] = b"\x01" * (stop - start)
    marked = [*compress(lines, quoted)]
    others = [lines[i] for i in pointed]
    has_citers = _have_sign(marked, ('" == ', _CITING))
    mark = _find_mark([*others, *marked] if has_citers else others)
    for i in pointed:
        if mark.match(lines[i]):
            quoted[i] = 1
    if any(_EXPLAINED in line for line in others):
        for i in body.that_begin(_POINT):
            quoted[i] = not lines[i].startswith(">> ")


def _have_sign(lines: list[str], signs: Iterable[str]) -> bool:
    """Return whether lines have one of the signs, which are rare; faster than line by line."""
    text = "\n".join(lines)
    return any(sign in text for sign in signs)


def _find_mark(lines: list[str]) -> re.Pattern[str]:
    """Return the pattern of the quote marks in a body: the common ones and names by Supercite.

    A name counts if an attribution has it. Initials and names with a capital also count if they
    mark several lines that are sentences.
    """
    texts: dict[str, list[str]] = {}
    named = set()
    for line in lines:
        if '" == ' in line and (citer := _CITER.match(line)):
            if _names_author(citer):
                named.add(citer[2])
        elif line.startswith(_CITING) and line.rstrip().endswith(_CITED_VERBS):
            named.add("")
        elif line[:1] != ">" and (mark := _NAME_MARK.match(line)):
            texts.setdefault(mark[1], []).append(line[mark.end() :])
    for name, cited in texts.items():
        may_name = name[0].isupper() or len(name) <= _MAX_INITIALS
        if may_name and len(cited) > 1 and is_sentence(" ".join(cited)):
            named.add(name)
    if not 0 < len(named) <= _MAX_NAMES:
        return _QUOTE
    names = "|".join(map(re.escape, sorted(named)))
    return re.compile(rf"{_QUOTE.pattern}|[ \t]{{0,8}}(?:{names})?[>＞]+(?:[ \t]|$)")


def _names_author(citer: re.Match[str]) -> bool:
    """Return whether a match of `_CITER` is an attribution and not code: `"abc" == p->name`."""
    author = citer.string[citer.end() :].rstrip()
    has_address = author.endswith(">") and any(x in author for x in ("@", " at ", "(a)"))
    return ">>>>" in citer[1] or has_address or author.endswith("writes:")


def quotes_mail(body: BodyLines) -> bool:
    """Return whether the quote marks certainly mark mail, in a message that answers none.

    That is so if Supercite's names mark lines, or if a run of quoted lines has two depths or
    contains an attribution, a separator or header fields. It is also so if the body begins with a
    quote of sentences: a program's session or a document has words above it.
    """
    lines = body.lines
    if _find_mark(lines) is not _QUOTE:
        return True
    first = body.next_visible(0)
    for run in _RUN.finditer(body.quoted):
        marks = [_MARKS.match(unescape(line)) for line in lines[slice(*run.span())]]
        texts = [mark.string[mark.end() :] for mark in marks if mark]
        depths = {len(mark[0].replace(" ", "").replace("\t", "")) for mark in marks if mark}
        sentences = is_sentence(" ".join(texts))
        if len(depths) > 1 and sentences:
            return True
        if any(separator_kind(x) or (may_attribute(x) and is_attribution(x)) for x in texts):
            return True
        top = [i for i, text in enumerate(texts[:MAX_BLOCK]) if text.strip()]
        if {"from", "date", "subject"} <= {*find_fields(texts, top)[0].values()}:
            return True
        if run.start() == first and sentences:
            return True
    return False


def _signed_marks(body: BodyLines) -> list[int]:
    """Return the lines that begin with ">>> " in a signature; a quote below it has other marks."""
    lines, last = body.lines, body.quoted.rfind(1)
    if last < 0 or not _PROMPT.match(lines[last]):
        return []
    separator = next((i for i in range(last, -1, -1) if lines[i] == "-- "), len(lines))
    signed = [i for i in range(separator + 1, last + 1) if body.quoted[i]]
    is_quote = signed and is_attribution(lines[signed[0] - 1])
    return signed if all(_PROMPT.match(lines[i]) for i in signed) and not is_quote else []


def _runs_in_python(body: BodyLines) -> list[tuple[int, int]]:
    """Return the runs of prompts in the author's own Python session, between unmarked lines.

    Real quotes of depth 3 come with quotes of depth 2, and stand below an attribution. If the body
    has quotes of depth 1, a session is recognised by output right below a prompt.
    """
    lines, quoted = body.lines, body.quoted
    runs = [run.span() for run in _RUN.finditer(quoted) if ">>>" in lines[run.start()]]
    if not runs or any(map(_NESTED.match, compress(lines, quoted))):
        return []
    runs = [(start, stop) for start, stop in runs if all(map(_PROMPT.match, lines[start:stop]))]
    if any(start and is_attribution(lines[start - 1]) for start, _ in runs):
        return []
    answered = any("".join(lines[stop : stop + 1]).strip() for _, stop in runs)
    alone = sum(stop - start for start, stop in runs) == quoted.count(1)
    return runs if answered or alone else []


def _runs_in_r(body: BodyLines) -> list[tuple[int, int]]:
    """Return the runs of commands at prompts in the author's own session of R or S.

    R prints right below a command; a quoted session has marks there too. One such command makes all
    commands of its paragraph a part of the session.
    """
    lines = body.lines
    runs = [run.span() for run in _RUN.finditer(body.quoted)]
    if not any(_prints_below(lines, stop) for _, stop in runs):
        return []
    found: list[tuple[int, int]] = []
    paragraph: list[tuple[int, int]] = []
    is_session = False
    end = 0  # the line below the last run
    for start, stop in runs:
        if not all(body.texts[end:start]):
            found += paragraph if is_session else []
            paragraph, is_session = [], False
        end = stop
        first = stop
        while first > start and _is_command(lines[first - 1]):
            first -= 1
        while start < first < stop and not lines[first].strip(" \t>"):
            first += 1  # a blank line of the quote above
        if first == stop or (first and is_attribution(lines[first - 1])):
            continue
        paragraph.append((first, stop))
        is_session |= _prints_below(lines, stop)
    return found + (paragraph if is_session else [])


def _prints_below(lines: list[str], i: int) -> bool:
    """Return whether R prints at line i, or below the lines that continue a command there."""
    while i < len(lines) and _R_CONTINUED.match(lines[i]):
        i += 1
    return i < len(lines) and _R_OUTPUT.match(lines[i]) is not None


def _is_command(line: str) -> bool:
    prompt = _R_PROMPT.match(line)
    if prompt is None:
        return False
    text = line[prompt.end() :]
    return _R_COMMAND.match(text) is not None and not is_sentence(text)


def _unmark(body: BodyLines) -> None:
    """Unmark lines that an mbox writer escaped, and attributions of Supercite and GroupWise."""
    lines, quoted = body.lines, body.quoted
    if not _have_sign([*compress(lines, quoted)], _AMBIGUOUS):
        return
    cited = 0  # the line below an attribution; a second attribution there is a quote
    for i in [i for i in body.that_begin(_POINT) if lines[i].startswith(_AMBIGUOUS) and quoted[i]]:
        if lines[i][1] == "F":  # escaped new text, unless it is next to a quote
            quoted[i] = 1 in quoted[max(i - 1, 0) : i] or 1 in quoted[i + 1 : i + 2]
        elif is_groupwise(lines[i]):
            quoted[i] = 0
        elif lines[i].startswith(_CITING) and (i - cited > 1 or cited == 0):
            stop = _citer_end(lines, i)
            quoted[i:stop] = bytes(max(stop - i, 0))
            cited = stop or cited


def _citer_end(lines: list[str], i: int) -> int:
    """Return the line below a Supercite attribution of one or two lines, or 0 if there is none."""
    first, below, last = [*lines[i : i + 3], "", ""][:3]
    if not below.startswith(_CITING):
        return i + 1 if _CITED.match(below) and is_attribution(first) else 0
    both = f"{first} {below.removeprefix(_CITING)}"
    is_one = _CITED.match(last) and is_attribution(both) and not is_attribution(first)
    return i + 2 if is_one else 0


def _wrapped_rests(body: BodyLines) -> list[int]:
    """Return the unmarked ends of quoted lines that a mail program wrapped again.

    Such an end is the only line between two quoted lines. The line above it is full and ends no
    sentence. If a body has only one such end, it may be a short answer, unless it ends an
    attribution.
    """
    lines, quoted = body.lines, body.quoted
    holes = [match.end() for match in _ABOVE_HOLE.finditer(quoted)]
    if not holes:
        return []
    width = min(max(map(len, compress(lines, quoted))), _WRAPPED_AT)
    rests = [
        i
        for i in holes
        if body.kinds[i] != PATCH and _REST.match(lines[i])
        if len(lines[i - 1]) >= MIN_WRAPPED and lines[i - 1].rstrip()[-1] not in ".?!:"
        if len(lines[i - 1]) + 1 + len(lines[i].split()[0]) > width
    ]
    if len(rests) > 1:
        return rests
    return [i for i in holes if may_attribute(lines[i]) and _ends_attribution(lines, i)]


def _lone_links(body: BodyLines) -> list[int]:
    """Return the unmarked lines between two quoted lines that contain only a link.

    Mail programs do not wrap a long link, and some put it on a line of its own without the mark.
    """
    lines = body.lines
    holes = [match.end() for match in _ABOVE_HOLE.finditer(body.quoted)]
    return [
        i for i in holes if "://" in lines[i] and body.kinds[i] != PATCH and _LINK.match(lines[i])
    ]


def _last_rests(body: BodyLines) -> list[int]:
    """Return the unmarked ends of the last lines of quotes that a mail program wrapped again.

    Such an end continues the sentence of a full line in lower case, and a blank line follows. A
    single word does not count, since it may be a short answer.
    """
    lines, found = body.lines, []
    for last in _LAST_QUOTED.finditer(body.quoted):
        i = last.end()
        line, above = lines[i], lines[i - 1].rstrip()
        if (
            not line[:1].islower()
            or not MIN_WRAPPED <= len(above) <= _MAX_WRAPPED
            or above[0] != ">"
            or above[-1] in ".?!:;"
            or body.kinds[i] == PATCH
            or "".join(lines[i + 1 : i + 2]).strip()
            or len(line) > _MAX_WRAPPED
        ):
            continue
        words = line.split()
        if len(words) < 2 or words[-1][-1] == ":" or len(above) + 1 + len(words[0]) <= _WRAPPED_AT:
            continue
        if is_sentence(_MARKS.sub("", above, count=1)):
            found.append(i)
    return found


def _lost_beginnings(body: BodyLines) -> list[int]:
    """Return the unmarked first lines of paragraphs that Gmail marked only from the second line on.

    Such a line stands below a blank line, is full and ends no sentence. The marked line right below
    continues the sentence in lower case. That excludes a command at a prompt.
    """
    lines, found = body.lines, []
    for begin in _LAST_UNMARKED.finditer(body.quoted):
        i = begin.start()
        line = body.texts[i]
        if (
            not MIN_WRAPPED <= len(line) <= _MAX_WRAPPED
            or body.kinds[i] == PATCH
            or line[-1] in ".?!:"
            or ">" in line
            or lines[i + 1][:2] != "> "  # "inode-" above ">i_version" is a wrapped arrow
            or (i and lines[i - 1].strip())
        ):
            continue
        below = [_MARKS.sub("", text, count=1) for text in lines[i + 1 : i + 3]]
        word = f"{below[0].strip()} ".partition(" ")[0]
        is_full = len(line) + 1 + len(word) > _WRAPPED_AT
        reads = line.count(" ") >= _MIN_BLANKS and is_sentence(" ".join((line, *below)))
        if word.islower() and is_full and reads and is_sentence(" ".join(below)):
            found.append(i)
    return found


def _ends_attribution(lines: list[str], i: int) -> bool:
    above = _MARKS.sub("", lines[i - 1], count=1)
    return len(lines[i].split()) <= 3 and is_attribution(f"{above.strip()} {lines[i].strip()}")
