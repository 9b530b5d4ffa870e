"""What each line of a mail body is: new text, quote, attribution, signature, footer or patch.

The body is never changed: segments are spans of it, so a chunk can cite exact characters and
a reader can fold quotes. Libraries that parse replies assume top posting and cut answers
written between the quotes; here a line stays text unless there is a reason to drop it.
What does not live here: finding diffs (`mail_assets.mail.patches`), which runs first,
because a "-- " line inside a diff is code and no signature.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from mail_assets.mail.patches import patch_lines

SEGMENTER_VERSION = "1"

_MAX_SIGNATURE = 40  # lines; a longer "signature" is text under a separator
_MAX_ARMOUR = 60
_MAX_FOOTER = 8
_MAX_ATTRIBUTION = 330  # characters, over at most four lines

# "> ", ">> ", "JD> " (Supercite); a prompt such as "psql> " quotes nobody
_QUOTE = re.compile(
    r"[ \t]{0,3}(?:>|(?!(?i:psql|sql|gdb|lldb|dbx|ftp|irb|perl)>)[A-Za-z]{1,4}>(?=[> \t]|$))"
)
_BAR = re.compile(r"[ \t]{0,3}\|[^|]*$")
_TABLE = re.compile(r"[^|\n]*[^|\s][^|\n]*\||[ \t]*[-+=]{3,}[-+= \t]*$")
_SIGNATURE = re.compile(r"--[ \xa0]?$")
_SQL_COMMENT = re.compile(r"--(?!-)")  # beside a bare "--"
_SQL_COMMENT_TEXT = re.compile(r"-- \S")  # beside a "-- "
_ARMOUR = re.compile(
    r"-----(BEGIN PGP (?:SIGNED MESSAGE|SIGNATURE|PUBLIC KEY BLOCK)|END PGP SIGNATURE)-----\s*$"
)
_FOOTER = re.compile(
    r"(?i)(?:_{30,}$|-{20,}\(end of broadcast\)-{20,}$|sent via \S+ mailing list\b|"
    r"to unsubscribe from this list: send the line|[\w.+-]{2,40} mailing list$|"
    r"\S+ mailing list -- \S+@|-+ next part -+$)"
)
_NEXT_PART = re.compile(r"-+ next part -+$")  # pipermail, between flattened MIME parts
_SCRUBBED = re.compile(r"An? .{1,40} was scrubbed\.\.\.$")
_CLEAR_FOOTER = re.compile(r"(?i)-|sent via|to unsubscribe|\S+ mailing list --")
_LONE_LINK = re.compile(r"[ \t]*https?://\S+\s*$")
_LIST_LINK = re.compile(r"(?i)mailing list|https?://|@")
_MOBILE = re.compile(
    r"(?i)(?:sent from my |get outlook for |sent via my |von meinem \S+ gesendet|envoyé de mon|"
    r"sent from (?:mail|yahoo|outlook)\b).{0,100}$"
)
_VERBS = (
    r"wrote|writes|schrieb|écrit|escribió|schreef|skrev|ha\ scritto|escreveu|escreve|kirjoitti|"
    r"napisał|写道|寫道|пишет|написал"
)
_ATTRIBUTION = re.compile(
    rf"(?ix)(?:(?:on|am|le|el|op|den|il|em|w\ dniu)\b|于|於|在|\d{{1,4}}[-/.年])"
    rf".{{0,300}}?(?:{_VERBS}).{{0,60}}$"
    r"|.{3,300}(?:\b(?:wrote|writes|said|schrieb)|写道|寫道)\s*[:：]\s*$"
    r"|quoting\s.+:$|\*?from\*?:\s.+\bwrote:$"
)
_ATTRIBUTION_START = re.compile(
    r"(?i)(?:on|am|le|el|op|den|il|em|w dniu)\b|[于於在]|[^@]{0,80}<\S+@"
)
_DATED = re.compile(
    r"(?i)(?:on|am|le|el|op|den|il|em|w dniu|[于於在]|\d{1,4}[-/.年]).*\d.*[:：]\s*$"
)
_ORIGINAL = re.compile(
    r"(?i)[ \t]*(?:-{2,}\s*(?:original (?:message|appointment)|forwarded message|"
    r"ursprüngliche nachricht|message d.origine|mensaje original|原始邮件|邮件原件)\s*-{2,}|"
    r"_{20,}\s*$)"
)
_FROM_FIELD = re.compile(r"(?i)[ \t*]*(?:from|von|de|发件人)\*?\s*[:：]\s*\S")
_OTHER_FIELD = re.compile(
    r"(?i)[ \t*]*(?:sent|date|gesendet|datum|envoyé|to|an|subject|betreff|cc|"
    r"发送时间|收件人|日期)\*?\s*[:：]"
)
_GIT_MAGIC = re.compile(r"From [0-9a-f]{7,64} Mon Sep 17 00:00:00 2001")
# the first characters, or the only marks, of any line that a rule below could claim
_SUSPECT = re.compile(
    r"[ \t]*(?:[-_*]|(?i:sent|get|to|von|envoyé|from|de|on|am|le|el|op|den|il|em|w dniu)\b|"
    r"[于於在发]|\d{1,4}[-/.年])|.*(?:[:：>]\s*|mailing list.{0,80})$"
)


class Segment(NamedTuple):
    """The characters body[start:end], all of one kind.

    Kinds: "text", "quote", "attribution", "signature" (PGP armour too), "footer", "patch".
    """

    start: int
    end: int
    kind: str


def segments(body: str) -> list[Segment]:
    r"""Cover the body with segments, without gaps, each ending at a line end ("\n" only)."""
    lines = body.split("\n")  # splitlines() would also split at U+2028, form feed and others
    merged: list[Segment] = []
    start = 0
    for line, kind in zip(lines, _kinds([line.rstrip("\r") for line in lines]), strict=True):
        end = min(start + len(line) + 1, len(body))
        if merged and merged[-1].kind == kind:
            merged[-1] = Segment(merged[-1].start, end, kind)
        elif end > start:
            merged.append(Segment(start, end, kind))
        start = end
    return merged


def new_spans(body: str, parts: Sequence[Segment]) -> list[tuple[int, int]]:
    """Return what a semantic index should see: the text segments that are not blank."""
    return [
        (s.start, s.end) for s in parts if s.kind == "text" and not body[s.start : s.end].isspace()
    ]


class _Claim(NamedTuple):
    """A rule's verdict: the lines from the current one up to stop are of this kind."""

    stop: int
    kind: str


@dataclass(slots=True)
class _Lines:
    """The lines of a body and what is known about them so far."""

    lines: list[str]
    kinds: list[str]
    quoted: list[bool]
    next_quoted: list[int]  # first quoted line at or after each, else the number of lines
    text_above: bool = False

    def fill(self, start: int, claim: _Claim) -> None:
        for i in range(start, claim.stop):
            if self.kinds[i] != "patch" or claim.kind == "quote":  # a quoted diff is a quote
                self.kinds[i] = claim.kind

    def next_visible(self, i: int) -> int:
        while i < len(self.lines) and not self.lines[i].strip():
            i += 1
        return i

    def quote_follows(self, i: int) -> bool:
        i = self.next_visible(i)
        return i < len(self.lines) and self.quoted[i]


def _kinds(lines: list[str]) -> list[str]:
    kinds = ["patch" if is_patch else "text" for is_patch in patch_lines(lines)]
    quoted = _quoted(lines, kinds)
    next_quoted = [len(lines)] * (len(lines) + 1)
    for i in range(len(lines) - 1, -1, -1):
        next_quoted[i] = i if quoted[i] else next_quoted[i + 1]
    seen = _Lines(lines, kinds, quoted, next_quoted)
    i = 0
    while i < len(lines):
        claim = _claim(seen, i) if kinds[i] != "patch" else None
        if claim is not None:
            seen.fill(i, claim)
            i = claim.stop
            continue
        if kinds[i] == "text" and not seen.text_above:
            seen.text_above = bool(lines[i].strip())
        i += 1
    return kinds


def _claim(seen: _Lines, i: int) -> _Claim | None:
    if seen.quoted[i]:
        return _Claim(i + 1, "quote")
    if not _SUSPECT.match(seen.lines[i]):
        return None
    for rule in _RULES:
        claim = rule(seen, i)
        if claim is not None:
            return claim
    return None


def _quoted(lines: list[str], kinds: list[str]) -> list[bool]:
    quoted = [
        kind != "patch" and _QUOTE.match(line) is not None
        for kind, line in zip(kinds, lines, strict=True)
    ]
    if any(quoted) and all(
        line.startswith(">>> ") for line, q in zip(lines, quoted, strict=True) if q
    ):
        quoted = [False] * len(lines)  # a Python session: depth 3 never comes without 1 or 2
    for i in [i for i, line in enumerate(lines) if line.startswith(">From ")]:
        # an mbox writer's escape of new text, unless it stands among quotes
        quoted[i] = any(quoted[max(i - 1, 0) : i]) or any(quoted[i + 1 : i + 2])
    for start, stop in _bar_runs(lines, kinds):
        quoted[start:stop] = [True] * (stop - start)
    return quoted


def _bar_runs(lines: list[str], kinds: list[str]) -> list[tuple[int, int]]:
    """Runs of "| quoted" lines in paragraphs that hold no row of a table.

    Three lines make a run, one does in a body that has such a line under an attribution.
    """
    bars = [
        kind != "patch" and _BAR.match(line) is not None
        for kind, line in zip(kinds, lines, strict=True)
    ]
    runs: list[tuple[int, int]] = []
    if not any(bars):
        return runs
    attributed = any(
        bars[i] and _ATTRIBUTION.match(lines[i - 1].strip()) for i in range(1, len(lines))
    )
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


def _neighbours(lines: list[str], i: int) -> list[str]:
    return lines[max(i - 1, 0) : i] + lines[i + 1 : i + 2]


def _signature(seen: _Lines, i: int) -> _Claim | None:
    """ "-- " up to a quote, a patch, another block or the end; bare "--" only near the end."""
    lines = seen.lines
    if not _SIGNATURE.match(lines[i]) or (lines[i] == "--" and len(lines) - i > 12):
        return None
    comment = _SQL_COMMENT if lines[i] == "--" else _SQL_COMMENT_TEXT
    if any(comment.match(line) for line in _neighbours(lines, i)):
        return None
    limit = min(len(lines), i + 1 + _MAX_SIGNATURE)
    stop = i + 1
    while stop < limit and not (
        seen.quoted[stop]
        or seen.kinds[stop] == "patch"
        or _SIGNATURE.match(lines[stop])
        or _ORIGINAL.match(lines[stop])
        or _FOOTER.match(lines[stop])
        or _ARMOUR.match(lines[stop])
        or _NEXT_PART.match(lines[stop])
    ):
        stop += 1
    return _Claim(stop, "signature") if stop < i + 1 + _MAX_SIGNATURE else None


def _armour(seen: _Lines, i: int) -> _Claim | None:
    """PGP: a signature or key as a whole, of a clear-signed message its frame only."""
    match = _ARMOUR.match(seen.lines[i])
    if not match:
        return None
    block = seen.lines[i : i + _MAX_ARMOUR]
    if match[1] == "BEGIN PGP SIGNED MESSAGE":  # its "Hash:" lines, up to the blank line
        stop = next((x for x, line in enumerate(block[:6]) if not line.strip()), 0)
    elif match[1].startswith("BEGIN"):
        stop = next((x for x, line in enumerate(block) if line.startswith("-----END PGP")), 0)
    else:
        stop = 0
    return _Claim(i + stop + 1, "signature")


def _footer(seen: _Lines, i: int) -> _Claim | None:
    """The list's footer: to the blank line, and over one when a link stands alone below."""
    lines = seen.lines
    text = lines[i].strip()
    if _NEXT_PART.match(text) and not any(_SCRUBBED.match(line) for line in lines[i + 1 : i + 2]):
        return _Claim(i + 1, "footer")
    if not _FOOTER.match(text):
        return None
    limit = min(seen.next_quoted[i], i + _MAX_FOOTER)
    below = lines[i + 1 : limit]
    if not _CLEAR_FOOTER.match(text):
        near = [line for line in below if line.strip()][: 4 if text.startswith("_") else 1]
        if not any(_LIST_LINK.search(line) for line in near):
            return None
    stop = i + 1
    while stop < limit and lines[stop].strip():
        stop += 1
    link = seen.next_visible(stop)
    if link < limit and _LONE_LINK.match(lines[link]):
        stop = link + 1
    return _Claim(stop, "footer")


def _mobile(seen: _Lines, i: int) -> _Claim | None:
    """ "Sent from my phone", alone between blank lines; a wrapped sentence can start so too."""
    lines = seen.lines
    alone = not any(line.strip() for line in _neighbours(lines, i))
    return _Claim(i + 1, "signature") if alone and _MOBILE.match(lines[i].strip()) else None


def _outlook(seen: _Lines, i: int) -> _Claim | None:
    """ "Original Message" or From/Sent/To/Subject: all below is quoted, if nothing says otherwise.

    Otherwise means marked quotes below, or no text above: then it is a forwarded message.
    The same block under git's magic line opens a commit message, which is text.
    """
    if i and _GIT_MAGIC.search(seen.lines[i - 1]):
        return None
    stop = _outlook_header_end(seen.lines, i)
    if stop == i:
        return None
    if seen.text_above and seen.next_quoted[i] == len(seen.lines):
        return _Claim(len(seen.lines), "quote")
    return _Claim(stop, "attribution")


def _outlook_header_end(lines: list[str], i: int) -> int:
    below = lines[i + 1 : i + 12]
    if _ORIGINAL.match(lines[i]):
        ruled = lines[i].lstrip().startswith("_")
        found = not ruled or any(_FROM_FIELD.match(line) for line in below[:2])
    else:
        found = _FROM_FIELD.match(lines[i]) is not None
        found = found and sum(_OTHER_FIELD.match(line) is not None for line in below[:5]) >= 2
    if not found:
        return i
    fields = [
        x for x, line in enumerate(below) if _FROM_FIELD.match(line) or _OTHER_FIELD.match(line)
    ]
    return i + 1 + (fields[-1] + 1 if fields else 0)


def _attribution(seen: _Lines, i: int) -> _Claim | None:
    """ "On ... X wrote:" over a quote; over unmarked text it quotes all the rest of a top post."""
    width = _attribution_width(seen.lines, i)
    if width and seen.quote_follows(i + width):
        return _Claim(i + width, "attribution")
    if width == 1 and seen.text_above and seen.next_quoted[i] == len(seen.lines):
        below = seen.next_visible(i + 1)
        if below < len(seen.lines) and _DATED.match(seen.lines[i].strip()):
            return _Claim(len(seen.lines), "quote")
    return None


def _attribution_width(lines: list[str], i: int) -> int:
    """Count the lines, 1 to 4, that form an attribution from line i on; 0 for none."""
    joined = lines[i].strip()
    for width in range(1, 5):
        if _ATTRIBUTION.match(joined):
            return width
        if i + width >= len(lines) or not _ATTRIBUTION_START.match(joined):
            return 0
        joined = f"{joined} {lines[i + width].strip()}"
        if len(joined) > _MAX_ATTRIBUTION:
            return 0
    return 0


_RULES: tuple[Callable[[_Lines, int], _Claim | None], ...] = (
    _signature,
    _armour,
    _footer,
    _mobile,
    _outlook,
    _attribution,
)
