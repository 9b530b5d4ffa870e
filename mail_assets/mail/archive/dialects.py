"""The dialects of mbox, and the detection of the dialect of an archive.

They differ in the quoting of body lines that begin with `From `, in the blank line between two
messages, and in how addresses are written:

    plain       nothing is quoted; a blank line ends each message
    mboxo       `From ` becomes `>From `
    mboxrd      `From ` becomes `>From `, and `>From ` becomes `>>From `
    pg          as postgresql.org serves it: nothing is quoted, and no blank line is added
    pipermail   Mailman's text files, HyperKitty's too: `jo at example.org`, and a blank line
                only mostly
"""

import re
from collections.abc import Iterable, Sequence
from mmap import mmap

from mail_assets.mail.archive.boundaries import (
    FromLine,
    find_lines,
    often_omits_blank_lines,
)

DIALECTS = ("pg", "plain", "mboxrd", "mboxo", "pipermail")

SAMPLE = 16 << 20  # bytes at the beginning of an archive; most months are smaller
MOST = 0.8  # share of From_ lines that must be written by the same program
# Among 20 messages of postgresql.org at least one has no blank line above: two thirds have none.
FEW = 20

_PG_SENDER = re.compile(rb"[\w.+-]{1,100}-owner\+archive@[\w.-]{1,100}")
# pipermail without hidden addresses: From_ and From have the same one
_PIPERMAIL_HEADER = re.compile(rb"From: ([^\s()]{1,200}) \([^\n]{0,200}\)\r?\nDate: ")
MAX_DEPTH = 40  # `>` before From
_QUOTED = re.compile(rb">From ")
_UNQUOTED = re.compile(rb"\n\r?\nFrom ")
AGREEING = {("mboxrd", "mboxo"), ("pg", "plain")}  # dialect set, dialect found
_AROUND = 400  # bytes around a quoted line


def find_dialect(data: bytes | mmap) -> str | None:
    """Return the dialect that the first SAMPLE bytes of an archive show, None if they show none.

    An archive without a body line that begins with `From ` reads the same as plain, mboxo and
    mboxrd.
    """
    sample = data[:SAMPLE]
    lines = find_lines(sample)
    if not lines or lines[0].style.form == "git":
        return None
    if _is_pipermail(sample, lines):
        return "pipermail"
    senders = [line.style.sender for line in lines]
    if _most(sender == b"mboxrd@z" for sender in senders):
        return "mboxrd"
    if _most(_PG_SENDER.fullmatch(sender) is not None for sender in senders) and (
        len(lines) < FEW or not all(line.after_blank for line in lines)
    ):
        return "pg"
    return _quoting(sample, lines) or ("pg" if often_omits_blank_lines(lines) else None)


def check_dialect(dialect: str) -> None:
    """Raise ValueError if a dialect is unknown."""
    if dialect not in DIALECTS:
        raise ValueError(f"mbox dialect {dialect!r} is not known; use one of {', '.join(DIALECTS)}")


def contradicts(setting: str, found: str) -> bool:
    """Return whether an archive of the dialect `found` must not be read as `setting`.

    A month may hold nothing that distinguishes mboxrd from mboxo, or nothing that had to be quoted.
    `found` is "" if nothing shows a dialect.
    """
    return found not in ("", setting) and (setting, found) not in AGREEING


def _is_pipermail(sample: bytes, lines: Sequence[FromLine]) -> bool:
    if _most(line.style.kind == "at" for line in lines):
        return True
    return _most(
        (header := _PIPERMAIL_HEADER.match(sample, line.end)) is not None
        and header[1] == line.style.sender
        for line in lines
    )


def _quoting(sample: bytes, lines: Sequence[FromLine]) -> str | None:
    """Return the dialect that the quoting of `From ` in bodies shows, or None.

    A `>` before From is the writer's only if the lines around it have one less.
    """
    starts = {line.offset for line in lines if line.after_blank}
    if any(match.end() - len(b"From ") not in starts for match in _UNQUOTED.finditer(sample)):
        return "plain"
    found = None
    for match in _QUOTED.finditer(sample):
        line = sample.rfind(b"\n", max(0, match.start() - MAX_DEPTH), match.start()) + 1
        if not line:
            continue
        depth = match.start() + 1 - line
        if sample[line : match.start()].strip(b">") or _depth_around(sample, line) >= depth:
            continue
        if depth > 1:
            return "mboxrd"
        found = "mboxo"
    return found


def _depth_around(sample: bytes, line: int) -> int:
    before = sample[max(0, line - _AROUND) : max(0, line - 1)].rpartition(b"\n")[2]
    after = sample[line : line + _AROUND].partition(b"\n")[2]
    if before.startswith(b"From "):
        return len(after)  # UUCP's own line at the top of a header
    return max(len(text) - len(text.lstrip(b">")) for text in (before, after))


def _most(answers: Iterable[bool]) -> bool:
    given = [*answers]
    return sum(given) >= MOST * len(given)
