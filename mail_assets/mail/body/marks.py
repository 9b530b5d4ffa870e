"""Find quoted lines by their marks.

Quote marks are "> ", "JD> " and a bar. Below an attribution they are also ": ", "# " and others,
initials in brackets, or an indent. Some need no attribution in a message that answers another: the
indent of the header fields, AOL's "<< >>", and other marks in front of a wrapped paragraph.
"""

import re
from collections.abc import Callable, Iterable
from itertools import compress, groupby

from mail_assets.mail.body.attributions import (
    MAX_BLANKS,
    WHEN,
    attribution_start,
    is_attribution,
    may_attribute,
)
from mail_assets.mail.body.lines import PATCH, BodyLines, fold, is_sentence
from mail_assets.mail.body.phrases import load_phrases
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
_MIN_WRAPPED = 45  # minimum length of a line that was wrapped, in characters
_REST = re.compile(r"[ \t]*\w[^\n]{0,28}(?<!:)[ \t]*$")  # an attribution ends in a colon
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
_NO_POINTS = re.compile(rb"[^>\n]+")
_POINT = re.compile(b">")
_POINTS = re.compile(b">+")
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
        marks = [_MARKS.match(_unescape(line)) for line in lines[slice(*run.span())]]
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
        if len(lines[i - 1]) >= _MIN_WRAPPED and lines[i - 1].rstrip()[-1] not in ".?!:"
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
            or not _MIN_WRAPPED <= len(above) <= _MAX_WRAPPED
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
            not _MIN_WRAPPED <= len(line) <= _MAX_WRAPPED
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


def _unescape(line: str) -> str:
    return line.replace(_ESCAPED, ">") if line.startswith(_ESCAPED) else line


def _is_closed(line: str) -> bool:
    whole = line.strip()
    return whole.endswith("|") and ("  " in whole or whole.strip("| \t") != "")


def _is_marked(lines: list[str], run: list[int], mark: str) -> bool:
    bars = mark == "|" and all(_BAR.match(lines[i]) for i in run)
    return bars or _reads(lines, run, mark)


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
            is_full = len(lines[i - 1].strip()) >= _MIN_WRAPPED and above[-1:] not in ".?!:;"
            if is_full and text[:1].islower() and is_sentence(f"{above} {text}"):
                certain.add(mark[1])
        run.append(i)
    return [i for mark in certain for i in marked[mark]]


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


def _is_indented(line: str) -> bool:
    return line.startswith(_OUTLOOKS_INDENT) and not line.isspace()


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
