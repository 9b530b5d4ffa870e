"""Find quoted lines by marks that are not enough alone.

Below an attribution ": ", "# " and others mark quotes, and initials in brackets, or an indent. Some
marks need no attribution in a message that answers another: the indent of the header fields, AOL's
"<< >>", and other marks in front of a wrapped paragraph. A bar marks several lines of sentences.
"""

import re
from collections.abc import Callable
from itertools import groupby

from mail_assets.mail.body.attributions import MAX_BLANKS, WHEN, attribution_start
from mail_assets.mail.body.lines import PATCH, BodyLines, fold, is_sentence
from mail_assets.mail.body.phrases import load_phrases
from mail_assets.mail.body.quotes import MAX_BLOCK

MIN_WRAPPED = 45  # minimum length of a line that was wrapped, in characters
_BAR = re.compile(r"[ \t]{0,3}\|[^|]*$")
# marks that count only below an attribution: those of newsreaders, "[JD] ", or an indent
_ANNOUNCED_STARTS = re.compile(rb"[:|}#=%+<\]!;$~^\[]")
_ANNOUNCED = re.compile(r"[ \t]{0,3}((?!:[-(){}]|\$\{|<<)[:|}#=%+<\]!;$~^]|\[[^\W\d_]{1,4}\])")
_QUOTING = frozenset(":|}[")  # the other marks also begin lines of code and lists
# marks of wrapped paragraphs; not a smiley, nor a field of a document (":Author: Jo")
_WRAPPING_STARTS = re.compile(rb"[:!-]")
_WRAPPING = re.compile(
    r"[ \t]{0,3}(:{1,2}(?!\w[\w -]{0,39}:(?:\s|$))(?=[ \t>\"]|[^\W\d_]|$)|-{1,2}>|"
    r"!(?=[ \t]|[^\W\d_]|$))"
)
_AOL_STARTS = re.compile(b"<")
_AOL = re.compile(r"[ \t]{0,3}<<([ \t]*)[^\s<=]")
_MAX_AOL = 500  # lines from "<<" to ">>"
_SENDER = re.compile(r"( {2,8}|\t{1,2})From:[ \t]*\S")
_UNINDENTED_FIELD = re.compile(r"[A-Z][\w-]{1,40}: ")
# other marks in front of a copied header: "! From: Jo Roe"
_HEADER_MARK = re.compile(r"([ \t]{0,3}[!#%*;:}~^$]{1,3}[ \t]{0,2})(\w[\w-]{1,20}):[ \t]")
_HEADER_STARTS = re.compile(rb"[!#%*;:}~^$]")
_MIN_MARKED_FIELDS = 3
_AMPERSAND = re.compile(b"&")
_ESCAPED = "&gt;"  # ">" in an archive that turned text into HTML
_DASH = re.compile(b"-")
_BLANK = re.compile(rb"[ \t]")
_BAR_STARTS = re.compile(rb"\|")
_ANY = re.compile(rb"[^\n]")
_INDENT = re.compile(r"(?:\t| {2,8})(?=\S)")
# Outlook for Mac: On 7/21/20, 8:23 AM, "Jo Roe" <jo@example.org> wrote:
_INDENTING = re.compile(
    r"\ufeff?[^\d\"]{0,12}\d{1,4}[-./]\d{1,2}[-./]\d{2,4},? [^\"“«]{0,12}\d{1,2}[:.]\d\d"
    r"[^\"“«]{0,12}[\"“«][^\"”»]{1,160}[\"”»] ?<[^<>]{3,240}>[^<>]{0,20}:\s*$"
)
_OUTLOOKS_INDENT = "    "
_MIN_BARS = 3  # lines
_AUTOCONF = "failed program was:"  # config.log puts a bar in front of each line of the program
_TABLE = re.compile(r"\s*+[^|\s][^|\n]*+\||[ \t]*+[-+=]{3}[-+= \t]*+$")
_POINTS = re.compile(b">+")


def mark_other_lines(
    body: BodyLines, pointed: list[int], *, has_marks: bool, answers: bool
) -> None:
    """Set `quoted` to 1 for the lines with such marks.

    `pointed`: lines with a sign of quotes that do not begin with ">". `has_marks`: the body has
    common marks. `answers`: the message answers another.
    """
    quoted = body.quoted
    announced = _announced_lines(body)
    for i in (*announced, *(() if has_marks else _escaped_lines(body))):
        quoted[i] = 1
    for start, stop in _bar_runs(body):
        quoted[start:stop] = b"\x01" * (stop - start)
    for i in _lines_of_outlook(body, pointed):
        quoted[i] = 1
    if answers:
        for find_own in (_headed_lines, _lines_below_fields, _lines_of_aol, _wrapped_lines):
            for i in find_own(body):
                quoted[i] = 1
    if 1 not in quoted:
        for i in _indented_lines(body):
            quoted[i] = 1


def _announced_lines(body: BodyLines) -> list[int]:
    """Return the lines whose mark also begins the line below an attribution.

    The marked lines must read as sentences, because people also announce code and lists with such
    words. Lines with bars need not read as sentences, unless they form a table.
    """
    lines = body.lines
    marked: dict[str, list[int]] = {}
    announced = set()
    for i, mark in _marks_above_signature(body, _ANNOUNCED_STARTS, _ANNOUNCED):
        if not (mark[1] == "|" and _is_closed(lines[i])):
            marked.setdefault(mark[1], []).append(i)
            names = bool if mark[1][0] in _QUOTING else _names_mail
            if mark[1] not in announced and _is_announced(body, i, names):
                announced.add(mark[1])
    runs = [(mark, marked[mark]) for mark in announced]
    return [i for mark, run in runs if _is_marked(lines, run, mark) for i in run]


def _escaped_lines(body: BodyLines) -> list[int]:
    """Return the lines that begin with an HTML-escaped mark, if they read as sentences."""
    lines = body.lines
    run = [i for i in body.that_begin(_AMPERSAND) if lines[i].startswith(_ESCAPED)]
    texts = (lines[i].replace(_ESCAPED, "").strip() for i in run)
    return run if run and is_sentence(" ".join(texts)) else []


def _bar_runs(body: BodyLines) -> list[tuple[int, int]]:
    """Return the runs of three or more "| quoted" lines, in paragraphs without a row of a table.

    If there is such a run, shorter runs of sentences are quotes too.
    """
    lines = body.lines
    bars = {i for i in body.that_show(_BAR_STARTS) if _BAR.match(lines[i])}
    runs: list[tuple[int, int]] = []
    short: list[tuple[int, int]] = []
    if not bars:
        return runs
    stop = 0
    for visible, paragraph in groupby(body.texts, key=bool):
        start, stop = stop, stop + len(list(paragraph))
        if not visible or any(_TABLE.match(line) for line in lines[start:stop]):
            continue
        for bar, group in groupby(range(start, stop), key=bars.__contains__):
            run = list(group)
            if not bar:
                continue
            if run[0] and lines[run[0] - 1].rstrip().endswith(_AUTOCONF):
                continue
            if len(run) >= _MIN_BARS and any(lines[i].strip(" \t|") for i in run):
                runs.append((run[0], run[-1] + 1))
            elif _reads(lines, run, "|"):
                short.append((run[0], run[-1] + 1))
    return runs + short if runs else runs


def _lines_of_outlook(body: BodyLines, pointed: list[int]) -> list[int]:
    """Return the indented lines below an attribution of Outlook for Mac; answers have no indent."""
    lines = body.lines
    ends = (run.end() - 1 for run in _POINTS.finditer(body.firsts))
    for i in sorted((*pointed, *ends)):
        if body.texts[i].endswith(":") and _INDENTING.match(lines[i]):
            below = next((x for x in range(i + 1, len(lines)) if lines[x].strip()), i)
            if lines[below].startswith(_OUTLOOKS_INDENT):
                rest = range(below, len(lines))
                return [x for x in rest if _is_indented(lines[x]) and body.kinds[x] != PATCH]
    return []


def _headed_lines(body: BodyLines) -> list[int]:
    """Return the lines with the same indent as the header fields above them.

    Emacs copies an answered message in this form, and answers between its paragraphs have no
    indent. Below an answer, a paragraph must have exactly that indent and read as sentences,
    because answers may contain indented code.
    """
    lines = body.lines
    senders = (i for i in body.that_begin(_BLANK) if "From:" in lines[i])
    blocks = (_indented_fields(lines, i) for i in senders)
    found = next((block for block in blocks if block), None)
    if found is None:
        return []
    start, indent = found[0], found[1].expandtabs()
    stop = next((i for i in range(start, len(lines)) if lines[i].rstrip() == "--"), len(lines))
    goes_on = True
    run: list[int] = []
    for blank, group in groupby(range(start, stop), key=lambda i: not lines[i].strip()):
        paragraph = [*group]
        if blank:
            continue
        if not goes_on:
            texts = [lines[i].expandtabs() for i in paragraph]
            alike = all(text.startswith(indent) for text in texts)
            is_first = not texts[0].removeprefix(indent)[:1].isspace()
            goes_on = alike and is_first and _reads(lines, paragraph)
        for i in paragraph:
            goes_on = goes_on and lines[i].expandtabs().startswith(indent)
            if goes_on and body.kinds[i] != PATCH:
                run.append(i)
    return run


def _lines_below_fields(body: BodyLines) -> list[int]:
    """Return the lines with a mark that also stands in front of copied header fields."""
    lines, names = body.lines, load_phrases().fields
    kinds: dict[str, set[str]] = {}
    for i in body.that_show(_HEADER_STARTS):
        field = None if body.quoted[i] else _HEADER_MARK.match(lines[i])
        if field and (kind := names.get(fold(field[2]))):
            kinds.setdefault(field[1].rstrip(), set()).add(kind)
    found: list[int] = []
    for mark, some in kinds.items():
        run = [i for i in body.that_show(_HEADER_STARTS) if lines[i].startswith(mark)]
        if len(some) >= _MIN_MARKED_FIELDS and {"from", "subject"} <= some:
            found += run if _reads(lines, run, mark) else []
    return found


def _lines_of_aol(body: BodyLines) -> list[int]:
    """Return the lines from "<<" to ">>", AOL's quote marks, if they read as sentences.

    AOL puts a blank after the "<<". People write "<<" without the blank; that counts only if the
    body has AOL's form too.
    """
    lines = body.lines
    may_be = (i for i in body.that_show(_AOL_STARTS) if "<<" in lines[i])
    starts = {i: mark[1] for i in may_be if (mark := _AOL.match(lines[i]))}
    if not any(starts.values()):
        return []
    ends = [i for i in body.that_begin(_ANY) if lines[i].rstrip().endswith(">>")]
    found: list[int] = []
    done = at = 0
    for start in starts:
        while at < len(ends) and ends[at] < start:
            at += 1
        if start >= done and at < len(ends) and ends[at] < start + _MAX_AOL:
            done = ends[at] + 1
            run = [*range(start, done)]
            if _reads(lines, run):
                found += run
    return found


def _wrapped_lines(body: BodyLines) -> list[int]:
    """Return the lines with one of the other marks, if it begins a wrapped paragraph of sentences.

    One of its lines is full and ends no sentence, and the next one continues in lower case. Lists
    do not look like that.
    """
    lines = body.lines
    marked: dict[str, list[int]] = {}
    certain = set()
    for i, mark in _marks_above_signature(body, _WRAPPING_STARTS, _WRAPPING):
        run = marked.setdefault(mark[1], [])
        if run and run[-1] == i - 1 and mark[1] not in certain:
            above, text = (lines[x].strip().removeprefix(mark[1]).strip() for x in (i - 1, i))
            is_full = len(lines[i - 1].strip()) >= MIN_WRAPPED and above[-1:] not in ".?!:;"
            if is_full and text[:1].islower() and is_sentence(f"{above} {text}"):
                certain.add(mark[1])
        run.append(i)
    return [i for mark in certain for i in marked[mark]]


def _indented_lines(body: BodyLines) -> list[int]:
    """Return the indented paragraphs of sentences, from the one below an attribution on.

    The attribution must have an address or a date, because a standard also "says" something.
    Further paragraphs need two lines, because authors indent the first line of a new paragraph.
    """
    lines = body.lines
    found: list[int] = []
    indent = ""
    for i in body.that_begin(_BLANK):
        mark = _INDENT.match(lines[i])
        if mark is None or (i and lines[i - 1].startswith(mark[0])):
            continue
        announced = not indent and _is_announced(body, i, _names_mail)
        if not announced and (mark[0] != indent or lines[i - 1].strip()):
            continue
        stop = next((x for x in range(i, len(lines)) if not lines[x].startswith(mark[0])), None)
        run = [*range(i, stop or len(lines))]
        if "".join(lines[run[-1] + 1 : run[-1] + 2]).strip() or not _reads(lines, run):
            continue
        if announced or len(run) > 1:
            indent = mark[0]
            found += run
    return found


def _marks_above_signature(
    body: BodyLines, characters: re.Pattern[bytes], mark: re.Pattern[str]
) -> list[tuple[int, re.Match[str]]]:
    """Return the unquoted lines above a "-- " line that begin with a mark, with the match.

    `characters` matches the first visible characters of such lines.
    """
    lines = body.lines
    found = [
        (i, match)
        for i in body.that_show(characters)
        if (match := mark.match(lines[i])) and not body.quoted[i]
    ]
    if found:
        dashes = body.that_begin(_DASH)
        end = next((i for i in dashes if lines[i].rstrip() == "--"), found[-1][0])
        found = [one for one in found if one[0] <= end]
    return found


def _is_announced(body: BodyLines, i: int, names: Callable[[str], bool]) -> bool:
    """Return whether an attribution without an indent stands above line i.

    An indented attribution belongs to a quote. `names` tests the text of the attribution.
    """
    lines, last = body.lines, i - 1
    while last >= 0 and i - last < MAX_BLANKS and not body.texts[last]:
        last -= 1
    if last < 0 or lines[last][:1].isspace():
        return False
    start = attribution_start(lines, body.quoted, last, blanks=i - 1 - last)
    return start is not None and names(fold(" ".join(lines[start : last + 1])))


def _names_mail(attribution: str) -> bool:
    templates = load_phrases().find_templates(attribution)
    dated = any(t.dated and t.matches(attribution) for t in templates)
    return "@" in attribution or (dated and WHEN.search(attribution) is not None)


def _reads(lines: list[str], run: list[int], mark: str = "") -> bool:
    return is_sentence(" ".join(lines[i].strip().removeprefix(mark) for i in run))


def _is_marked(lines: list[str], run: list[int], mark: str) -> bool:
    bars = mark == "|" and all(_BAR.match(lines[i]) for i in run)
    return bars or _reads(lines, run, mark)


def _is_closed(line: str) -> bool:
    whole = line.strip()
    return whole.endswith("|") and ("  " in whole or whole.strip("| \t") != "")


def unescape(line: str) -> str:
    """Return a line with its first HTML-escaped mark as ">"."""
    return line.replace(_ESCAPED, ">") if line.startswith(_ESCAPED) else line


def _indented_fields(lines: list[str], i: int) -> tuple[int, str] | None:
    """Return the line below the block of fields around an indented From, and the indent."""
    sender = _SENDER.match(lines[i])
    if sender is None:
        return None
    indent = sender[1]
    top = stop = i
    while top > max(i - MAX_BLOCK, 0) and lines[top - 1].strip():
        top -= 1
    while stop < min(i + MAX_BLOCK, len(lines)) and lines[stop].strip():
        stop += 1
    block = lines[top:stop]
    if _UNINDENTED_FIELD.match(block[0]):  # the indent began in the middle of the first field
        block = block[1:]
    is_whole = any(line.startswith(f"{indent}Date:") for line in block)
    width = indent.expandtabs()
    alike = all(x.expandtabs().startswith(width) for x in block)
    return (stop, indent) if is_whole and alike else None


def _is_indented(line: str) -> bool:
    return line.startswith(_OUTLOOKS_INDENT) and not line.isspace()
