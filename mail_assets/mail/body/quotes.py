"""Find the lines of a body that carry a quote mark: "> ", "JD> " or a bar."""

import re
from itertools import groupby

from mail_assets.mail.body.attributions import is_attribution

# "> ", ">> ", "JD> " (Supercite); a prompt such as "psql> " quotes nobody
_QUOTE = re.compile(
    r"[ \t]{0,3}(?:>|(?!(?i:psql|sql|gdb|lldb|dbx|ftp|irb|perl)>)[A-Za-z]{1,4}>(?=[> \t]|$))"
)
_CITED = re.compile(r"[ \t]{0,3}[A-Za-z]{1,4}>|\s*$")  # below Supercite's attribution
_WRAPPED_AT = 70  # columns at most: mail programs wrap from 72 on, web mail earlier
_MIN_WRAPPED = 45  # characters of a line that was wrapped
_REST = re.compile(r"[ \t]*\w[^\n]{0,28}(?<!:)[ \t]*$")  # an attribution ends in a colon
_BAR = re.compile(r"[ \t]{0,3}\|[^|]*$")
_TABLE = re.compile(r"\s*+[^|\s][^|\n]*+\||[ \t]*+[-+=]{3}[-+= \t]*+$")


def find_quoted_lines(lines: list[str], kinds: list[str]) -> list[bool]:
    """Tell for each line whether it is marked as a quote; lines of a patch never are."""
    quoted = [
        ">" in line and kind != "patch" and _QUOTE.match(line) is not None
        for kind, line in zip(kinds, lines, strict=True)
    ]
    if any(quoted) and all(
        line.startswith(">>> ") for line, q in zip(lines, quoted, strict=True) if q
    ):
        quoted = [False] * len(lines)  # a Python session: depth 3 never comes without 1 or 2
    for i in [i for i, q in enumerate(quoted) if q and lines[i].startswith((">From ", ">>>>> "))]:
        if lines[i][1] == "F":  # an mbox writer's escape of new text, unless it is among quotes
            quoted[i] = any(quoted[max(i - 1, 0) : i]) or any(quoted[i + 1 : i + 2])
        elif any(map(_CITED.match, lines[i + 1 : i + 2])):
            quoted[i] = not is_attribution(lines[i])
    for start, stop in _bar_runs(lines, kinds):
        quoted[start:stop] = [True] * (stop - start)
    for i in _wrapped_rests(lines, kinds, quoted):
        quoted[i] = True
    return quoted


def _wrapped_rests(lines: list[str], kinds: list[str], quoted: list[bool]) -> list[int]:
    """Unmarked ends of quoted lines that the mail program had to wrap again.

    Such an end is right between two quoted lines; the one above is full, so that the first
    word had no room in it, and ends no sentence. One alone may be a short answer.
    """
    triples = zip(quoted, quoted[1:], quoted[2:], strict=False)
    holes = [i for i, (above, here, below) in enumerate(triples, 1) if above and below and not here]
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
    bars = [
        "|" in line and kind != "patch" and _BAR.match(line) is not None
        for kind, line in zip(kinds, lines, strict=True)
    ]
    runs: list[tuple[int, int]] = []
    if not any(bars):
        return runs
    attributed = any(bars[i] and is_attribution(lines[i - 1]) for i in range(1, len(lines)))
    shortest = 1 if attributed else 3
    stop = 0
    for blank, paragraph in groupby(range(len(lines)), key=lambda i: not lines[i].strip()):
        start, stop = stop, stop + len(list(paragraph))
        if blank or any(_TABLE.match(line) for line in lines[start:stop]):
            continue
        for bar, group in groupby(range(start, stop), key=bars.__getitem__):
            run = list(group)
            if bar and len(run) >= shortest and any(lines[i].strip(" \t|") for i in run):
                runs.append((run[0], run[-1] + 1))
    return runs
