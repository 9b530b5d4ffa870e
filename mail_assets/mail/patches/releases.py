"""Read release announcements: the release that a mail announces, and the commits that it lists.

A mail that lists the title of a commit is no patch. It says that the commit is in a release.
"""

import re

from mail_assets.mail.patches.subjects import fold_title, read_subject

#: Letters and digits of a title that is looked for; shorter ones stand in many lists.
LEAST_KEY = 12
#: Lines that a mail program may make of one title, and characters of a line that are read.
_WRAPPED, _LONGEST = 3, 600

_VERSION = r"v?\d{1,4}(?:\.\d{1,4}){0,4}(?:[-.~]?(?:rc|beta|alpha|pre|p)[-.]?\d{0,3})?"
_SAYS = re.compile(r"\b(?:announc(?:e|es|ed|ing|ement)|ann|releas(?:e|es|ed|ing))\b", re.I)
_NUMBER = re.compile(rf"(?<![\w.]){_VERSION}(?![\w.]*\w)", re.I)
#: "Linux 6.1-rc3", "Git v2.40.0": a name of few words and a version with a dot, or with a v.
_NAMED = re.compile(
    r"(?:(?!(?:on|at|for|with|in|of|from|to|and|is) )[\w+-]{1,40} ){1,3}"
    r"(?:v\d|\d{1,4}\.\d)[\w.~-]{0,20}",
    re.I,
)
_OTHER = re.compile(
    r"\b(?:pull|fix(?:es|ed)?|bug|regression|review|schedule|plan(?:s|ned)?)\b", re.I
)
_BRACKETS = re.compile(r"\[[^\[\]]{0,60}\]\s*")
_LISTED = re.compile(
    r"[ \t]*+(?:[-*+•][ \t]++|\d{1,4}[.)][ \t]++)?(?:[\[(]?[0-9a-f]{7,40}[\])]?:?[ \t]++)?(.*+)"
)
_TAIL = re.compile(r"[(\[][^()\[\]]{1,80}[)\]][.,;]?\Z")


def read_release(subject: str) -> str:
    """Return the release that the subject of a mail announces, such as "ndctl v75"; else ""."""
    if len(subject) > _LONGEST:
        return ""
    named = read_subject(subject)
    plain = " ".join(_BRACKETS.sub("", subject).split())
    if named.is_answer or named.says_patch or _OTHER.search(subject) or "?" in subject:
        return ""
    if (_SAYS.search(subject) and _NUMBER.search(plain)) or _NAMED.fullmatch(plain):
        return plain
    return ""


def find_listed(body: str, title: str) -> tuple[int, int] | None:
    """Return the place of a commit's title in the list of a release, None if it is not there.

    The title is a line of its own: after a bullet, a number or a commit, before the name of its
    author in brackets, or wrapped. Quoted lines do not count.
    """
    key = fold_title(title)
    if len(key) < LEAST_KEY:
        return None
    at = 0
    lines = body.split("\n")
    for number, line in enumerate(lines):
        if not line.startswith(">") and (taken := _match(lines, number, key)):
            end = at + sum(len(one) + 1 for one in lines[number : number + taken]) - 1
            return at, end
        at += len(line) + 1
    return None


def _match(lines: list[str], number: int, key: str) -> int:
    """Return how many lines from one on are a title, 0 if they are not."""
    found = _LISTED.match(lines[number][:_LONGEST])
    text = found[1] if found else ""
    for taken in range(1, _WRAPPED + 1):
        folded = fold_title(text)
        if folded == key:
            return taken
        if len(folded) >= len(key):
            return (
                taken
                if folded.startswith(key) and fold_title(_TAIL.sub("", text.rstrip())) == key
                else 0
            )
        if not folded or not key.startswith(folded) or number + taken >= len(lines):
            return 0
        after = lines[number + taken][:_LONGEST].strip()
        if not after:
            return 0
        text = f"{text} {after}"
    return 0
