"""Find the lines of a body that carry a quote mark: "> ", "JD> " or a bar."""

import re
from itertools import groupby

from mail_assets.mail.body.attributions import is_attribution

# "> ", ">> ", "JD> " (Supercite), in any script; a prompt such as "psql> " quotes nobody
_QUOTE = re.compile(
    r"[ \t]{0,3}(?:[>＞]"
    r"|(?!(?i:psql|sql|gdb|lldb|dbx|ftp|irb|perl)>)[^\W\d_]{1,4}[>＞](?=[>＞ \t]|$))"
)
_PROMPT = re.compile(r"[ \t]{0,3}>>>(?: |$)")  # Python's
# depth 2 and more; ">>>> " and "> >>> " may be prompts that are quoted
_NESTED = re.compile(r"[ \t]{0,3}(?:>>(?!>)|> >(?!>>))")
_RUN = re.compile(rb"\x01+")
_AMBIGUOUS = (">From ", ">>>>> ")
_ABOVE_HOLE = re.compile(rb"\x01(?=\x00\x01)")  # in a line's place 1 where it is quoted
_CITED = re.compile(r"[ \t]{0,3}[^\W\d_]{1,4}>|\s*$")  # below Supercite's attribution
_WRAPPED_AT = 70  # columns at most: mail programs wrap from 72 on, web mail earlier
_MIN_WRAPPED = 45  # characters of a line that was wrapped
_REST = re.compile(r"[ \t]*\w[^\n]{0,28}(?<!:)[ \t]*$")  # an attribution ends in a colon
_BAR = re.compile(r"[ \t]{0,3}\|[^|]*$")
_TABLE = re.compile(r"\s*+[^|\s][^|\n]*+\||[ \t]*+[-+=]{3}[-+= \t]*+$")


def find_quoted_lines(lines: list[str], kinds: list[str]) -> bytearray:
    """Return 1 for each line that is marked as a quote, else 0; lines of a patch never are."""
    quoted = bytearray(len(lines))
    marked = [
        i
        for i, line in enumerate(lines)
        if (">" in line or "＞" in line)
        and (line[0] == ">" or _QUOTE.match(line))
        and kinds[i] != "patch"
    ]
    for i in marked:
        quoted[i] = 1
    for start, stop in _session_runs(lines, marked, quoted):
        quoted[start:stop] = bytes(stop - start)
    _unmark(lines, marked, quoted)
    for start, stop in _bar_runs(lines, kinds):
        quoted[start:stop] = b"\x01" * (stop - start)
    for i in _wrapped_rests(lines, kinds, quoted):
        quoted[i] = 1
    return quoted


def _session_runs(lines: list[str], marked: list[int], quoted: bytearray) -> list[tuple[int, int]]:
    """Runs of prompts, with unmarked lines around, of the author's own Python session.

    Quotes of depth 3 come with others of depth 2, and an attribution stands above them. Beside
    quotes of depth 1 a session shows by the output that is right below a prompt.
    """
    runs = [run.span() for run in _RUN.finditer(quoted) if ">>>" in lines[run.start()]]
    if not runs or any(_NESTED.match(lines[i]) for i in marked):
        return []
    runs = [(start, stop) for start, stop in runs if all(map(_PROMPT.match, lines[start:stop]))]
    if any(start and is_attribution(lines[start - 1]) for start, _ in runs):
        return []
    answered = any("".join(lines[stop : stop + 1]).strip() for _, stop in runs)
    alone = sum(stop - start for start, stop in runs) == len(marked)
    return runs if answered or alone else []


def _unmark(lines: list[str], marked: list[int], quoted: bytearray) -> None:
    """Take out what is not quoted: lines that an mbox writer escaped, Supercite's attributions."""
    for i in [i for i in marked if lines[i].startswith(_AMBIGUOUS)]:
        if lines[i][1] == "F":  # an escape of new text, unless it is among quotes
            quoted[i] = 1 in quoted[max(i - 1, 0) : i] or 1 in quoted[i + 1 : i + 2]
        elif any(map(_CITED.match, lines[i + 1 : i + 2])):
            quoted[i] = not is_attribution(lines[i])


def _wrapped_rests(lines: list[str], kinds: list[str], quoted: bytearray) -> list[int]:
    """Unmarked ends of quoted lines that the mail program had to wrap again.

    Such an end is right between two quoted lines; the one above is full, so that the first
    word had no room in it, and ends no sentence. One alone may be a short answer.
    """
    holes = [match.end() for match in _ABOVE_HOLE.finditer(quoted)]
    if len(holes) < 2:
        return []
    width = min(max(len(line) for line, q in zip(lines, quoted, strict=True) if q), _WRAPPED_AT)
    rests = [
        i
        for i in holes
        if kinds[i] != "patch" and _REST.match(lines[i])
        if len(lines[i - 1]) >= _MIN_WRAPPED and lines[i - 1].rstrip()[-1] not in ".?!:"
        if len(lines[i - 1]) + 1 + len(lines[i].split()[0]) > width
    ]
    return rests if len(rests) > 1 else []


def _bar_runs(lines: list[str], kinds: list[str]) -> list[tuple[int, int]]:
    """Runs of "| quoted" lines in paragraphs that hold no row of a table.

    Three lines make a run, one does in a body that has such a line under an attribution.
    """
    bars = {
        i
        for i, line in enumerate(lines)
        if "|" in line and kinds[i] != "patch" and _BAR.match(line) is not None
    }
    runs: list[tuple[int, int]] = []
    if not bars:
        return runs
    attributed = any(i > 0 and is_attribution(lines[i - 1]) for i in bars)
    shortest = 1 if attributed else 3
    stop = 0
    for blank, paragraph in groupby(range(len(lines)), key=lambda i: not lines[i].strip()):
        start, stop = stop, stop + len(list(paragraph))
        if blank or any(_TABLE.match(line) for line in lines[start:stop]):
            continue
        for bar, group in groupby(range(start, stop), key=bars.__contains__):
            run = list(group)
            if bar and len(run) >= shortest and any(lines[i].strip(" \t|") for i in run):
                runs.append((run[0], run[-1] + 1))
    return runs
