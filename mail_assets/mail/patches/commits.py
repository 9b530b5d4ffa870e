"""A commit of a repository, the mails that it names, and mails that name or list commits.

Pure: sources/repository.py reads commits from git, and links.py links them to mail. A mail that
announces a release and lists the title of a commit is not a patch: it shows that the commit is in
that release.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from urllib.parse import unquote

from mail_assets.mail.patches.notes import find_message_id
from mail_assets.mail.patches.patch import FileChange
from mail_assets.mail.patches.subjects import fold_title, read_subject

#: Trailers kept per commit; a message has at most a few dozen.
MOST_TRAILERS = 200

#: Keys whose value names a report of the fault, not a patch.
_REPORT_KEYS = frozenset(
    {"closes", "bug", "bugs", "reported-at", "report", "bugzilla", "reference"}
)

_KEY = re.compile(
    r"(?P<key>[A-Za-z][A-Za-z0-9-]{0,60})[ \t]{0,4}:[ \t]{1,20}(?P<value>\S.{0,2000})"
)
# a key that makes a trailer also outside of the last paragraph
_NAMES_MAIL = re.compile(
    r"(?i)(?:link|discussion|message-?id|closes|fixes|bug|see|url|reference|in-reply-to|"
    r"patchwork-id|[a-z-]{2,40}-(?:by|to|from|through|message-id|link|url))$"
)
_LINK = re.compile(r"\bhttps?://[^\s<>\"']{4,1000}")
_NAMES_ID = re.compile(r"(?:message-?id|in-reply-to|references?|discussion|link|mail|thread)$")
# the forms of RFC 2392, notmuch and news readers
_MID = re.compile(r"\b(?:mid|id|news):\"?(?P<id>[^\s<>\"']{3,500})")
_ID = re.compile(r"[^\s<>@/?#&:\x00-\x1f\x7f]{1,250}@[^\s<>@/?#&\x00-\x1f\x7f]{1,250}")
_CHERRY = re.compile(
    r"\((?:cherry[ -]picked|back-?ported)\s{1,3}from\s{1,3}commit\s{1,3}([0-9a-f]{7,64})\b"
    r"|^\s{0,8}\[?\s{0,2}upstream\s{1,3}commit:?\s{1,3}([0-9a-f]{7,64})\b"
    r"|^\s{0,8}commit\s{1,3}([0-9a-f]{7,64})\s{1,3}upstream\b",
    re.MULTILINE | re.IGNORECASE,
)
_REVERT = re.compile(
    r"\bthis\s{1,3}(?:partially\s{1,3})?reverts\s{1,3}(?:commit\s{1,3})?([0-9a-f]{7,64})\b"
    r"|^revert\s{1,3}commit\s{1,3}([0-9a-f]{7,64})\b",
    re.MULTILINE | re.IGNORECASE,
)
#: What git-svn, GCC and GNOME's conversion write below the message of a commit of Subversion.
_REVISION = re.compile(
    r"^[ \t]{0,8}(?:git-svn-id: \S{1,400}@(\d{1,8}) \S{1,60}|From-SVN: r(\d{1,8})|"
    r"svn path=\S{1,200}; revision=(\d{1,8}))[ \t]*$",
    re.MULTILINE,
)


class Trailer(NamedTuple):
    """One line "Key: value" at the end of a commit's message."""

    key: str
    value: str


class NamedMail(NamedTuple):
    """A mail that a commit names, and the key of the trailer ("" in running text).

    `is_report`: the trailer names the report of a fault, not the patch.
    """

    message_id: str
    key: str
    is_report: bool


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. `committed_at` determines its month; a merge has no files and no patch-id.

    `lines` are the digests of its changed lines, as in a mailed patch. `flags` name what was cut or
    repaired: see FLAGS.
    """

    sha: str
    parents: tuple[str, ...]
    author_name: str
    author_email: str
    authored_at: datetime
    committer_name: str
    committer_email: str
    committed_at: datetime
    subject: str
    body: str
    files: tuple[FileChange, ...]
    patch_id: str
    lines: tuple[int, ...]
    flags: tuple[str, ...] = ()

    @property
    def is_merge(self) -> bool:
        """True if it has several parents."""
        return len(self.parents) > 1

    @property
    def trailers(self) -> tuple[Trailer, ...]:
        """The trailers of its message."""
        return read_trailers(self.body)

    @property
    def picked_from(self) -> tuple[str, ...]:
        """The commits, as written, that this one was cherry-picked from."""
        return _shas(_CHERRY, self.body)

    @property
    def reverts(self) -> tuple[str, ...]:
        """The commits, as written, that this one reverts."""
        return _shas(_REVERT, self.body)


FLAGS = {
    "diff_capped": "the diff is longer than the limit: the commit has no patch-id, and lines and "
    "files beyond the limit are left out",
    "message_capped": "the message is longer than the limit and was cut",
    "bytes_repaired": "the message or a name is not in the charset that it claims",
}


def read_revision(body: str) -> str:
    """Return the revision of Subversion that a commit was, as "r1931"; "" if it was none."""
    found = _REVISION.search(body)
    return f"r{int(next(filter(None, found.groups())))}" if found else ""


def read_trailers(body: str) -> tuple[Trailer, ...]:
    """Return the trailers of a commit's message, in order.

    Trailers are lines "Key: value" in the last paragraph that has such lines; in other paragraphs,
    only lines whose key names a mail or a person. An indented line continues the line above.
    """
    found: list[Trailer] = []
    paragraphs = [x.splitlines() for x in re.split(r"\n[ \t]*\n", body) if x.strip()]
    for place, lines in enumerate(paragraphs):
        matches = [_KEY.match(line) for line in lines]
        is_block = place == len(paragraphs) - 1 and 2 * sum(map(bool, matches)) >= len(lines)
        open_one = False
        for line, match in zip(lines, matches, strict=True):
            if match and (is_block or _NAMES_MAIL.match(match["key"])):
                found.append(Trailer(match["key"], match["value"].strip()))
                open_one = True
            elif open_one and line[:1] in " \t" and found:
                last = found.pop()
                found.append(Trailer(last.key, f"{last.value} {line.strip()}"[:2_000]))
            else:
                open_one = False
        if len(found) >= MOST_TRAILERS:
            break
    return tuple(found[:MOST_TRAILERS])


def find_named_mails(body: str) -> list[NamedMail]:
    """Return the mails that a commit's message names, those of trailers first, each once.

    A link after `Reported-by:` names the report, like `Closes:`.
    """
    found: dict[str, NamedMail] = {}
    above = ""
    for trailer in read_trailers(body):
        key = trailer.key.lower()
        is_report = key in _REPORT_KEYS or (key == "link" and above == "reported-by")
        for one in mail_ids(trailer.value, bare=bool(_NAMES_ID.match(key))):
            found.setdefault(one, NamedMail(one, trailer.key, is_report))
        above = key
    for one in mail_ids(body):
        found.setdefault(one, NamedMail(one, "", False))
    return [*found.values()]


def mail_ids(text: str, *, bare: bool = False) -> Iterator[str]:
    """Yield the Message-IDs in the URLs of a text and after `mid:`, `id:`, `news:`, in no order.

    `bare`: an id may be alone, with or without angle brackets. In other texts it is an address.
    """
    for link in _LINK.findall(text):
        if found := find_message_id(link):
            yield found
    for match in _MID.finditer(text):
        if _ID.fullmatch(found := unquote(match["id"]).rstrip(".,;:)]")):
            yield found
    if bare:
        yield from (x for word in text.split() if _ID.fullmatch(x := word.strip("<>(),;")))


def _shas(pattern: re.Pattern[str], body: str) -> tuple[str, ...]:
    found = (next(filter(None, match.groups()), "") for match in pattern.finditer(body))
    return tuple(dict.fromkeys(sha.lower() for sha in found if sha))


SHA = r"[0-9a-f]{7,40}"
_IN_URL = re.compile(rf"(?:/c(?:ommits?)?/|[?&;](?:id|h)=)({SHA})\b")
#: In a URL: /c/SHA, /commit/SHA, ?id=SHA, ;h=SHA
SHA_URL = re.compile(rf"https?://\S{{1,300}}?{_IN_URL.pattern}")
_URL_BEFORE = re.compile(r"https?://\S{1,300}\Z")
_MOST_BEFORE = len("https://") + 300  # characters
_HAS_SHA = re.compile(SHA)
# "r14-99-gabcdef0123" is output of git describe
_SHA_WORD = re.compile(rf"(?:(?<![\w./-])|(?<=\d-g))({SHA})(?![\w/-])")
_URL = re.compile(r"https?://\S+")
_LONG_SHA = 12  # digits from which a number without letters is not a date
# "r1931", "rev. 1931", "revision 1931": a commit of Subversion, but not a range of them
_NAMED_REVISION = re.compile(
    r"(?i)(?<![\w./:@-])(?:r ?|rev(?:ision)?[.:]? ?(?:no\.? ?|r|#)?)(\d{2,7})(?![\w/]|[.-]\w)"
)


class NamedShas(NamedTuple):
    """The commits that a text names, in URLs and as words, each once."""

    in_urls: Sequence[str] = ()
    words: Sequence[str] = ()


def find_shas(text: str) -> tuple[str, ...]:
    """Return the commits that a text names, in URLs or as words, each once."""
    found = find_named_shas(text)
    return tuple(dict.fromkeys((*found.in_urls, *found.words)))


def find_named_shas(text: str) -> NamedShas:
    """Return the commits that a text names, apart by how; takes linear time."""
    if not _HAS_SHA.search(text):
        return NamedShas()
    in_urls = []
    if "http" in text:
        in_urls = [*_shas_in_urls(text)]
        text = _URL.sub(" ", text)
    words = (match[1] for match in _SHA_WORD.finditer(text))
    return NamedShas(
        tuple(dict.fromkeys(in_urls)), tuple(dict.fromkeys(one for one in words if _is_sha(one)))
    )


def _shas_in_urls(text: str) -> Iterator[str]:
    """Yield what SHA_URL finds, which takes long in a text of many URLs."""
    end = 0
    for match in _IN_URL.finditer(text):
        start = match.start()
        if _URL_BEFORE.search(text, max(end, start - _MOST_BEFORE), start):
            yield match[1]
            end = match.end()


def _is_sha(word: str) -> bool:
    """Return whether a word of hexadecimal digits is neither a date nor a word like "defaced"."""
    return not word.isalpha() and (not word.isdigit() or len(word) >= _LONG_SHA)


def find_revisions(text: str) -> tuple[str, ...]:
    """Return the revisions of Subversion that a text names, as "r1931", each once."""
    found = _NAMED_REVISION.finditer(_URL.sub(" ", text))
    return tuple(dict.fromkeys(f"r{int(match[1])}" for match in found))


#: Letters and digits of a title that is searched for; shorter titles are in many lists.
LEAST_KEY = 12
#: Lines into which a mail program may wrap a title, and characters read of a line.
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
    """Return the position of a commit's title in the list of a release, None if it is not there.

    The title must be a line: alone, after a bullet, a number or a commit, before the name of its
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
    """Return how many lines, from a line on, are the title; 0 if none."""
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
