"""A commit of a repository: its message, its trailers, and the mails that these name.

Pure: sources/repository.py reads commits of git, and links.py joins them to mail.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from urllib.parse import unquote

from mail_assets.mail.patches.notes import find_message_id
from mail_assets.mail.patches.patch import FileChange

#: Trailers of a commit that are kept; a message has a few dozen at most.
MOST_TRAILERS = 200

#: Keys whose value is about a report of the fault: the mail is no patch.
_REPORT_KEYS = frozenset(
    {"closes", "bug", "bugs", "reported-at", "report", "bugzilla", "reference"}
)

_KEY = re.compile(
    r"(?P<key>[A-Za-z][A-Za-z0-9-]{0,60})[ \t]{0,4}:[ \t]{1,20}(?P<value>\S.{0,2000})"
)
# a key that stands as a trailer outside of the last paragraph too
_NAMES_MAIL = re.compile(
    r"(?i)(?:link|discussion|message-?id|closes|fixes|bug|see|url|reference|in-reply-to|"
    r"patchwork-id|[a-z-]{2,40}-(?:by|to|from|through|message-id|link|url))$"
)
_LINK = re.compile(r"\bhttps?://[^\s<>\"']{4,1000}")
_NAMES_ID = re.compile(r"(?:message-?id|in-reply-to|references?|discussion|link|mail|thread)$")
# as RFC 2392, notmuch and news readers name a mail
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


class Trailer(NamedTuple):
    """One line "Key: value" at the end of a commit's message."""

    key: str
    value: str


class NamedMail(NamedTuple):
    """A mail that a commit names, the key of the trailer ("" in running text), and its purpose.

    `is_report`: the trailer is about the report of a fault rather than about the patch.
    """

    message_id: str
    key: str
    is_report: bool


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. `committed_at` decides its month; a merge has no files and no patch-id.

    `lines` are the digests of its changed lines, as those of a mailed patch. `flags` name what was
    cut or repaired: see FLAGS.
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
        """The commits, as written, that this one carries over from another branch."""
        return _shas(_CHERRY, self.body)

    @property
    def reverts(self) -> tuple[str, ...]:
        """The commits, as written, that this one takes back."""
        return _shas(_REVERT, self.body)


FLAGS = {
    "diff_capped": "the diff is longer than the limit: the commit has no patch-id, and lines and "
    "files beyond the limit are left out",
    "message_capped": "the message is longer than the limit and was cut",
    "bytes_repaired": "the message or a name is not in the charset that it claims",
}


def read_trailers(body: str) -> tuple[Trailer, ...]:
    """Return the trailers of a commit's message, in order.

    They are the lines "Key: value" of the last paragraph with such lines, and in other paragraphs
    those whose key names a mail or a person. An indented line continues the one above it.
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

    A link after `Reported-by:` is about the report, as `Closes:` is.
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

    `bare`: an id may stand alone, with angle brackets or without. Elsewhere it is an address.
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
